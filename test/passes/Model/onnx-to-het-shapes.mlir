// Shape arithmetic vanishes, whatever form it is written in.
// RUN: autohet-opt %s --onnx-to-het --split-input-file | FileCheck %s

// The shape of a Reshape from an initializer, Identity, or a chain: the same IR.
// CHECK-LABEL: @chains
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>
// CHECK-NEXT: %[[A:.*]] = het.reshape %[[X]] to [2, 12]
// CHECK-NEXT: %[[B:.*]] = het.reshape %[[X]] to [2, 12]
// CHECK-NEXT: %[[C:.*]] = het.reshape %[[X]] to [2, 12]
// CHECK-NEXT: %[[D:.*]] = het.reshape %[[X]] to [2, 12]
// CHECK-NEXT: return
func.func @chains(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value, !onnx.value, !onnx.value) {
  %s = onnx.initializer "s" value dense<[2, -1]> : tensor<2xi64> : tensor<2xi64>
  %0 = onnx.node "Reshape"(%x, %s) opset 18 {} : (tensor<2x3x4xf32>, tensor<2xi64>) -> !onnx.value
  %i = onnx.node "Identity"(%s) opset 18 {} : (tensor<2xi64>) -> !onnx.value
  %1 = onnx.node "Reshape"(%x, %i) opset 18 {} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  // Shape -> Gather(-3) -> Unsqueeze -> Concat
  %sh = onnx.node "Shape"(%x) opset 18 {} : (tensor<2x3x4xf32>) -> !onnx.value
  %m3 = onnx.initializer "m3" value dense<-3> : tensor<i64> : tensor<i64>
  %g = onnx.node "Gather"(%sh, %m3) opset 18 {axis = 0 : i64} : (!onnx.value, tensor<i64>) -> !onnx.value
  %zero = onnx.initializer "zero" value dense<0> : tensor<1xi64> : tensor<1xi64>
  %u = onnx.node "Unsqueeze"(%g, %zero) opset 18 {} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %rest = onnx.initializer "rest" value dense<-1> : tensor<1xi64> : tensor<1xi64>
  %c = onnx.node "Concat"(%u, %rest) opset 18 {axis = 0 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %2 = onnx.node "Reshape"(%x, %c) opset 18 {} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  // 0 copies the extent, unless allowzero says that it is one.
  %z = onnx.initializer "z" value dense<[0, 12]> : tensor<2xi64> : tensor<2xi64>
  %3 = onnx.node "Reshape"(%x, %z) opset 18 {allowzero = 0 : i64} : (tensor<2x3x4xf32>, tensor<2xi64>) -> !onnx.value
  return %0, %1, %2, %3 : !onnx.value, !onnx.value, !onnx.value, !onnx.value
}

// -----

// Axes as a field and as an operand: the same IR.
// CHECK-LABEL: @axes
// CHECK-NEXT: het.reshape %arg0 to [2, 1, 3]
// CHECK-NEXT: het.reshape %arg0 to [2, 1, 3]
// CHECK-NEXT: het.reduce sum %arg0 dims [1] :
// CHECK-NEXT: het.reduce sum %arg0 dims [1] :
// CHECK-NEXT: het.slice %arg0 offsets [0, 0] sizes [2, 1]
// CHECK-NEXT: het.slice %arg0 offsets [0, 1] sizes [2, 2]
// CHECK-NEXT: het.slice %arg0 offsets [0, 0] sizes [2, 1]
// CHECK-NEXT: het.slice %arg0 offsets [0, 1] sizes [2, 2]
func.func @axes(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value) {
  %a = onnx.initializer "a" value dense<1> : tensor<1xi64> : tensor<1xi64>
  %0 = onnx.node "Unsqueeze"(%x) opset 11 {axes = array<i64: 1>} : (tensor<2x3xf32>) -> !onnx.value
  %1 = onnx.node "Unsqueeze"(%x, %a) opset 13 {} : (tensor<2x3xf32>, tensor<1xi64>) -> !onnx.value
  %2 = onnx.node "ReduceSum"(%x) opset 11 {axes = array<i64: -1>, keepdims = 0 : i64} : (tensor<2x3xf32>) -> !onnx.value
  %3 = onnx.node "ReduceSum"(%x, %a) opset 13 {keepdims = 0 : i64} : (tensor<2x3xf32>, tensor<1xi64>) -> !onnx.value
  %p = onnx.initializer "p" value dense<[1, 2]> : tensor<2xi64> : tensor<2xi64>
  %4:2 = onnx.node "Split"(%x) opset 11 {axis = 1 : i64, split = array<i64: 1, 2>} : (tensor<2x3xf32>) -> (!onnx.value, !onnx.value)
  %5:2 = onnx.node "Split"(%x, %p) opset 13 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> (!onnx.value, !onnx.value)
  return %0, %1, %2, %3, %4#0, %4#1, %5#0, %5#1 : !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value
}

// -----

// Ends beyond the tensor are clamped; steps may be negative; Range and Expand
// of shapes are constants.
// CHECK-LABEL: @slices
// CHECK-DAG: het.slice %arg0 offsets [0, 2] sizes [2, 2] strides [1, 1]
// CHECK-DAG: het.slice %arg0 offsets [0, 3] sizes [2, 4] strides [1, -1]
// CHECK-DAG: het.constant dense<[1, 3]> : tensor<2xi64>
// CHECK-DAG: het.constant dense<1.000000e+00> : tensor<2x4xf32>
// CHECK-DAG: het.constant dense<{{\[\[}}true, false], [true, true]]> : tensor<2x2xi1>
func.func @slices(%x: tensor<2x4xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value) {
  %two = onnx.initializer "two" value dense<2> : tensor<1xi64> : tensor<1xi64>
  %far = onnx.initializer "far" value dense<9223372036854775807> : tensor<1xi64> : tensor<1xi64>
  %near = onnx.initializer "near" value dense<-9223372036854775807> : tensor<1xi64> : tensor<1xi64>
  %axis = onnx.initializer "axis" value dense<-1> : tensor<1xi64> : tensor<1xi64>
  %back = onnx.initializer "back" value dense<-1> : tensor<1xi64> : tensor<1xi64>
  %0 = onnx.node "Slice"(%x, %two, %far, %axis) opset 18 {} : (tensor<2x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %1 = onnx.node "Slice"(%x, %far, %near, %axis, %back) opset 18 {} : (tensor<2x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %one = onnx.initializer "one" value dense<1> : tensor<i64> : tensor<i64>
  %five = onnx.initializer "five" value dense<5> : tensor<i64> : tensor<i64>
  %step = onnx.initializer "step" value dense<2> : tensor<i64> : tensor<i64>
  %2 = onnx.node "Range"(%one, %five, %step) opset 18 {} : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.value
  %f = onnx.initializer "f" value dense<1.0> : tensor<f32> : tensor<f32>
  %sh = onnx.node "Shape"(%x) opset 18 {} : (tensor<2x4xf32>) -> !onnx.value
  %3 = onnx.node "Expand"(%f, %sh) opset 18 {} : (tensor<f32>, !onnx.value) -> !onnx.value
  %s22 = onnx.initializer "s22" value dense<2> : tensor<2xi64> : tensor<2xi64>
  %true = onnx.node "ConstantOfShape"(%s22) opset 18 {value = dense<true> : tensor<1xi1>} : (tensor<2xi64>) -> !onnx.value
  %4 = onnx.node "Trilu"(%true) opset 18 {upper = 0 : i64} : (!onnx.value) -> !onnx.value
  return %0, %1, %2, %3, %4 : !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value
}

// -----

// Gathers in disguise: a padding mask read element by element, one position, an
// embedding with negative indices.
// CHECK-LABEL: @gathers
// CHECK-DAG: het.reshape %arg0 to [2, 1, 1, 3] : (tensor<2x3xi64>) -> tensor<2x1x1x3xi64>
// CHECK-DAG: %[[S:.*]] = het.slice %arg1 offsets [0, 0, 0] sizes [2, 1, 4]
// CHECK-DAG: het.reshape %[[S]] to [2, 4]
// CHECK-DAG: %[[I:.*]] = het.constant dense<[2, 0]> : tensor<2xi64>
// CHECK-DAG: het.embedding %arg2, %[[I]]
func.func @gathers(%m: tensor<2x3xi64> {onnx.name = "m"}, %h: tensor<2x3x4xf32> {onnx.name = "h"}, %t: tensor<3x4xf32> {onnx.name = "t"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %i = onnx.initializer "i" value dense<[[[[[0, 0], [0, 1], [0, 2]]]], [[[[1, 0], [1, 1], [1, 2]]]]]> : tensor<2x1x1x3x2xi64> : tensor<2x1x1x3x2xi64>
  %0 = onnx.node "GatherND"(%m, %i) opset 18 {} : (tensor<2x3xi64>, tensor<2x1x1x3x2xi64>) -> !onnx.value
  %z = onnx.initializer "z" value dense<0> : tensor<i64> : tensor<i64>
  %1 = onnx.node "Gather"(%h, %z) opset 18 {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<i64>) -> !onnx.value
  %n = onnx.initializer "n" value dense<[-1, 0]> : tensor<2xi64> : tensor<2xi64>
  %2 = onnx.node "Gather"(%t, %n) opset 18 {} : (tensor<3x4xf32>, tensor<2xi64>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// The positions of each sample are looked up once, whatever the batch.
// CHECK-LABEL: @positions
// CHECK: %[[S:.*]] = het.slice %{{.*}} offsets [1, 0] sizes [3, 4]
// CHECK: %[[O:.*]] = het.reshape %[[S]] to [1, 3, 4]
// CHECK: het.broadcast %[[O]] to [2, 3, 4]
// CHECK: %[[I:.*]] = het.constant dense<{{.*}}2, 0]{{.*}}> : tensor<1x2xi64>
// CHECK: %[[E:.*]] = het.embedding %{{.*}}, %[[I]]
// CHECK: het.broadcast %[[E]] to [2, 2, 4]
func.func @positions(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %t = onnx.initializer "wpe" file "m" offset 0 bytes 80 : tensor<5x4xf32>
  %i = onnx.initializer "i" value dense<[[1, 2, 3], [1, 2, 3]]> : tensor<2x3xi64> : tensor<2x3xi64>
  %j = onnx.initializer "j" value dense<[[2, 0], [2, 0]]> : tensor<2x2xi64> : tensor<2x2xi64>
  %0 = onnx.node "Gather"(%t, %i) opset 14 {} : (tensor<5x4xf32>, tensor<2x3xi64>) -> !onnx.value
  %1 = onnx.node "Gather"(%t, %j) opset 14 {} : (tensor<5x4xf32>, tensor<2x2xi64>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// A file's numbers may be as far apart as 64 bits allow, and further. A step
// that nothing takes is 1.
// CHECK-LABEL: @far
// CHECK-DAG: het.slice %{{.*}} offsets [2, 0] sizes [1, 3] strides [1, 1]
// CHECK-DAG: het.constant dense<[-9223372036854775808, -1, 9223372036854775806]> : tensor<3xi64>
// CHECK-DAG: het.constant dense<9223372036854775807> : tensor<1xi64>
func.func @far(%x: tensor<3x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %last = onnx.initializer "last" value dense<[9223372036854775807]> : tensor<1xi64> : tensor<1xi64>
  %first = onnx.initializer "first" value dense<[-9223372036854775808]> : tensor<1xi64> : tensor<1xi64>
  %axis = onnx.initializer "axis" value dense<[0]> : tensor<1xi64> : tensor<1xi64>
  %0 = onnx.node "Slice"(%x, %last, %first, %axis, %first) opset 18 {} : (tensor<3x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %most = onnx.initializer "most" value dense<9223372036854775807> : tensor<i64> : tensor<i64>
  %least = onnx.initializer "least" value dense<-9223372036854775808> : tensor<i64> : tensor<i64>
  %zero = onnx.initializer "zero" value dense<0> : tensor<i64> : tensor<i64>
  %1 = onnx.node "Range"(%least, %most, %most) opset 18 {} : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.value
  %2 = onnx.node "Range"(%most, %zero, %least) opset 18 {} : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// No band begins there: the run-time error names the index.
// CHECK-LABEL: @scattered_far
// CHECK: het.scatter_nd replace
func.func @scattered_far(%x: tensor<3x4xf32> {onnx.name = "x"}, %y: tensor<1x4xf32> {onnx.name = "y"}) -> !onnx.value {
  %i = onnx.initializer "i" value dense<[[[9223372036854775807, 0], [9223372036854775807, 1], [9223372036854775807, 2], [9223372036854775807, 3]]]> : tensor<1x4x2xi64> : tensor<1x4x2xi64>
  %0 = onnx.node "ScatterND"(%x, %i, %y) opset 18 {} : (tensor<3x4xf32>, tensor<1x4x2xi64>, tensor<1x4xf32>) -> !onnx.value
  return %0 : !onnx.value
}
