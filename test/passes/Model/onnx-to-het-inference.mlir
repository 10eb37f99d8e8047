// What only inference accepts: any element type, nodes that are formulas, and
// branches and loops that fold.
//
// RUN: autohet-opt %s --onnx-to-het=inference --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @types
// CHECK-SAME: tensor<2xf16> {het.batch_dim = -1
func.func @types(%x: tensor<2xf16> {onnx.name = "x"}, %y: tensor<2xui8> {onnx.name = "y"}) -> (!onnx.value, !onnx.value) {
  %1 = onnx.initializer "like" value dense<0.0> : tensor<1xf64> : tensor<1xf64>
  // CHECK: het.cast %{{.*}} {to = f64}
  %0 = onnx.node "CastLike"(%x, %1) opset 19 {} : (tensor<2xf16>, tensor<1xf64>) -> !onnx.value
  // CHECK: het.shift_left
  %2 = onnx.node "BitShift"(%y, %y) opset 19 {direction = "LEFT"} : (tensor<2xui8>, tensor<2xui8>) -> !onnx.value
  return %0, %2 : !onnx.value, !onnx.value
}

// -----

// A weight of a type that training does not have.
// CHECK-LABEL: func.func @weights
func.func @weights(%x: tensor<2x32xf16> {onnx.name = "x"}) -> !onnx.value {
  %w = onnx.initializer "w" file "m" offset 0 bytes 2048 : tensor<32x32xf16>
  // CHECK: het.parameter "w" : tensor<32x32xf16>
  %0 = onnx.node "MatMul"(%x, %w) opset 18 {} : (tensor<2x32xf16>, tensor<32x32xf16>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// A node that is several steps rounds to a half type once, at its end; a node
// that is one op stays as it is.
// CHECK-LABEL: func.func @rounded_once
func.func @rounded_once(%x: tensor<2x32xf16> {onnx.name = "x"}, %y: tensor<32xbf16> {onnx.name = "y"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %w = onnx.initializer "w" file "m" offset 0 bytes 2048 : tensor<32x32xf16>
  %b = onnx.initializer "b" file "m" offset 2048 bytes 64 : tensor<32xf16>
  // CHECK: %[[P:.*]] = het.matmul {{.*}} -> tensor<2x32xf32>
  // CHECK: %[[S:.*]] = het.add %[[P]], %{{.*}} -> tensor<2x32xf32>
  // CHECK: het.cast %[[S]] {to = f16}
  %0 = onnx.node "Gemm"(%x, %w, %b) opset 18 {} : (tensor<2x32xf16>, tensor<32x32xf16>, tensor<32xf16>) -> !onnx.value
  // CHECK: het.reduce sum {{.*}} -> tensor<f32>
  // CHECK: %[[R:.*]] = het.sqrt
  // CHECK: het.cast %[[R]] {to = bf16}
  %1 = onnx.node "ReduceL2"(%y) opset 18 {keepdims = 0 : i64} : (tensor<32xbf16>) -> !onnx.value
  // CHECK: het.matmul {{.*}} -> tensor<2x32xf16>
  %2 = onnx.node "MatMul"(%x, %w) opset 18 {} : (tensor<2x32xf16>, tensor<32x32xf16>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// Norms give the type of their scale, where operand and scale may differ.
// CHECK-LABEL: func.func @type_of_scale
func.func @type_of_scale(%x: tensor<2x4xf16> {onnx.name = "x"}, %g: tensor<4xf32> {onnx.name = "g"}, %h: tensor<4xbf16> {onnx.name = "h"}) -> (!onnx.value, !onnx.value) {
  // CHECK: %[[X:.*]] = het.cast %arg0 {to = f32}
  // CHECK: het.layer_norm %[[X]], %arg1
  %0 = onnx.node "LayerNormalization"(%x, %g) opset 11 {} : (tensor<2x4xf16>, tensor<4xf32>) -> !onnx.value
  // CHECK: %[[R:[^,]*]], %{{.*}} = het.rms_norm {{.*}} (tensor<2x4xf32>, tensor<4xf32>)
  // CHECK: %[[B:.*]] = het.cast %[[R]] {to = bf16}
  // CHECK: return %{{.*}}, %[[B]] : tensor<2x4xf32>, tensor<2x4xbf16>
  %1 = onnx.node "RMSNormalization"(%x, %h) opset 23 {} : (tensor<2x4xf16>, tensor<4xbf16>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// A value that is bound is no argument.
// CHECK-LABEL: func.func @bound
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>
// CHECK-NOT: tensor<1xi64>
func.func @bound(%x: tensor<2x3xf32> {onnx.name = "x"},
                 %shape: tensor<1xi64> {onnx.name = "shape", onnx.value = dense<6> : tensor<1xi64>}) -> !onnx.value {
  // CHECK: het.reshape %[[X]] to [6]
  %0 = onnx.node "Reshape"(%x, %shape) opset 18 {} : (tensor<2x3xf32>, tensor<1xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<2x3xf32> {onnx.name = "x"}, %i: tensor<2x1xi64> {onnx.name = "i"}) -> (!onnx.value, !onnx.value, !onnx.value, !onnx.value) {
  %axis = onnx.initializer "axis" value dense<1> : tensor<i64> : tensor<i64>
  %k = onnx.initializer "k" value dense<2> : tensor<1xi64> : tensor<1xi64>
  // CHECK: het.arg_reduce max %{{.*}} dim 1 :
  %0 = onnx.node "ArgMax"(%x) opset 13 {axis = 1 : i64, keepdims = 0 : i64} : (tensor<2x3xf32>) -> !onnx.value
  // CHECK: het.cumulative_sum %{{.*}} dim 1 reverse
  %1 = onnx.node "CumSum"(%x, %axis) opset 14 {reverse = 1 : i64} : (tensor<2x3xf32>, tensor<i64>) -> !onnx.value
  // CHECK: het.top_k %{{.*}} {k = 2 : i64, largest}
  %2:2 = onnx.node "TopK"(%x, %k) opset 11 {} : (tensor<2x3xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  // CHECK: %[[TUPLES:.*]] = het.concat %{{.*}} {dim = 2 : i64}
  // CHECK: het.gather_nd %{{.*}}, %[[TUPLES]] {batch_dims = 0 : i64}
  %3 = onnx.node "GatherElements"(%x, %i) opset 13 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>) -> !onnx.value
  return %0, %1, %2#1, %3 : !onnx.value, !onnx.value, !onnx.value, !onnx.value
}

// -----

// Places that an order has found are written one after another; others are tuples.
// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: tensor<2x5xf32> {onnx.name = "x"}, %i: tensor<2x2xi64> {onnx.name = "i"}) -> (!onnx.value, !onnx.value) {
  %k = onnx.initializer "k" value dense<2> : tensor<1xi64> : tensor<1xi64>
  // CHECK: %[[V:.*]], %[[I:.*]] = het.top_k
  // CHECK: %[[ONE:.*]] = het.slice %[[I]] offsets [0, 0] sizes [2, 1]
  // CHECK: %[[HIT:.*]] = het.compare eq %[[ONE]], %{{.*}} : (tensor<2x1xi64>, tensor<1x5xi64>) -> tensor<2x5xi1>
  // CHECK: %[[U:.*]] = het.slice %[[V]] offsets [0, 0] sizes [2, 1]
  // CHECK: %[[FIRST:.*]] = het.select %[[HIT]], %[[U]], %arg0
  // CHECK: het.select %{{.*}}, %{{.*}}, %[[FIRST]]
  // CHECK-NOT: het.scatter_nd replace
  %0:2 = onnx.node "TopK"(%x, %k) opset 11 {} : (tensor<2x5xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %1 = onnx.node "ScatterElements"(%x, %0#1, %0#0) opset 18 {axis = -1 : i64} : (tensor<2x5xf32>, !onnx.value, !onnx.value) -> !onnx.value
  // CHECK: het.scatter_nd add
  %2 = onnx.node "ScatterElements"(%x, %i, %0#0) opset 18 {axis = 1 : i64, reduction = "add"} : (tensor<2x5xf32>, tensor<2x2xi64>, !onnx.value) -> !onnx.value
  return %1, %2 : !onnx.value, !onnx.value
}

// -----

// The branch that is not taken may be wrong.
// CHECK-LABEL: func.func @branch
func.func @branch(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %c = onnx.initializer "c" value dense<true> : tensor<i1> : tensor<i1>
  // CHECK: het.neg
  // CHECK-NOT: het.matmul
  %0 = onnx.node "If"(%c) opset 13 {else_branch = "<GRAPH>", then_branch = "<GRAPH>"} : (tensor<i1>) -> !onnx.value
  bodies {
    %1 = onnx.node "MatMul"(%x, %x) opset 13 {} : (tensor<2x3xf32>, tensor<2x3xf32>) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }, {
    %1 = onnx.node "Neg"(%x) opset 13 {} : (tensor<2x3xf32>) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

// Two iterations, each of which gives a row.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %n = onnx.initializer "n" value dense<2> : tensor<i64> : tensor<i64>
  %none = onnx.none : none
  // CHECK: %[[A:.*]] = het.add %[[X:.*]], %[[X]]
  // CHECK: %[[R:.*]] = het.reshape %[[A]] to [1, 3]
  // CHECK: %[[B:.*]] = het.add %[[A]], %[[A]]
  // CHECK: %[[S:.*]] = het.reshape %[[B]] to [1, 3]
  // CHECK: %[[ROWS:.*]] = het.concat %[[R]], %[[S]] {dim = 0 : i64}
  // CHECK: return %[[B]], %[[ROWS]]
  %0:2 = onnx.node "Loop"(%n, %none, %x) opset 13 {body = "<GRAPH>"} : (tensor<i64>, none, tensor<3xf32>) -> (!onnx.value, !onnx.value)
  bodies {
  ^bb0(%i: !onnx.value, %c: !onnx.value, %v: !onnx.value):
    %1 = onnx.node "Add"(%v, %v) opset 13 {} : (!onnx.value, !onnx.value) -> !onnx.value
    onnx.yield %c, %1, %1 : !onnx.value, !onnx.value, !onnx.value
  }
  return %0#0, %0#1 : !onnx.value, !onnx.value
}

// -----

// Which elements of a constant are not 0 is a constant: [rank, count].
// CHECK-LABEL: func.func @places
func.func @places(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %shape = onnx.node "Shape"(%x) opset 13 {} : (tensor<2x3xf32>) -> !onnx.value
  %ones = onnx.node "ConstantOfShape"(%shape) opset 13 {value = dense<1> : tensor<1xi64>} : (!onnx.value) -> !onnx.value
  // CHECK: {{\[\[}}0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]> : tensor<2x6xi64>
  %0 = onnx.node "NonZero"(%ones) opset 13 {} : (!onnx.value) -> !onnx.value
  %c = onnx.initializer "c" value dense<[0.0, -1.5, 0.0, 2.0]> : tensor<4xf32> : tensor<4xf32>
  // CHECK: {{\[\[}}1, 3]]> : tensor<1x2xi64>
  %1 = onnx.node "NonZero"(%c) opset 13 {} : (tensor<4xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// Megatron's mask has a row and a column for every place that there can be: of
// two queries behind one key, rows 1 and 2, and the first three columns.
// CHECK-LABEL: func.func @mask_of_all_places
func.func @mask_of_all_places(%x: tensor<1x2x4xf32> {onnx.name = "x"}, %m: tensor<1x1x8x8xi32> {onnx.name = "m"}, %p: tensor<2x1x2x1x2xf32> {onnx.name = "p"}) -> !onnx.value {
  %w = onnx.initializer "w" file "m" offset 0 bytes 192 : tensor<4x12xf32>
  %b = onnx.initializer "b" file "m" offset 192 bytes 48 : tensor<12xf32>
  // CHECK: %[[ROWS:.*]] = het.slice %arg1 offsets [0, 0, 1, 0] sizes [1, 1, 2, 8]
  // CHECK: het.slice %[[ROWS]] offsets [0, 0, 0, 0] sizes [1, 1, 2, 3]
  %0 = onnx.node "Attention"(%x, %w, %b, %m, %p) opset 1 domain "com.microsoft" {num_heads = 2 : i64, unidirectional = 1 : i64} : (tensor<1x2x4xf32>, tensor<4x12xf32>, tensor<12xf32>, tensor<1x1x8x8xi32>, tensor<2x1x2x1x2xf32>) -> !onnx.value
  return %0 : !onnx.value
}
