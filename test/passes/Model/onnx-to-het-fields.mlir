// RUN: autohet-opt %s --onnx-to-het=inference --split-input-file --verify-diagnostics

// Attributes are of the type that their operator wants, whatever they hold.

func.func @float(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Softmax): attribute 'axis' is FLOAT, wanted INT}}
  %0 = onnx.node "Softmax"(%x) opset 13 {axis = 1.0 : f32} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @several(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Transpose): attribute 'perm' is STRING, wanted INTS}}
  %0 = onnx.node "Transpose"(%x) opset 13 {perm = "1, 0"} : (tensor<2x3xf32>) -> !onnx.value
  // expected-error @+1 {{node (Transpose): attribute 'perm' is FLOATS, wanted INTS}}
  %1 = onnx.node "Transpose"(%0) opset 13 {perm = array<f32: 1.0, 0.0>} : (!onnx.value) -> !onnx.value
  // expected-error @+1 {{node (Gemm): attribute 'alpha' is INT, wanted FLOAT}}
  %2 = onnx.node "Gemm"(%1, %x) opset 13 {alpha = 2 : i64, transA = 1 : i64} : (!onnx.value, tensor<2x3xf32>) -> !onnx.value
  // expected-error @+1 {{node (Gelu): attribute 'approximate' is TENSOR, wanted STRING}}
  %3 = onnx.node "Gelu"(%2) opset 20 {approximate = dense<1.0> : tensor<f32>} : (!onnx.value) -> !onnx.value
  // expected-error @+1 {{node (Gelu): attribute 'approximate' is GRAPHS, wanted STRING}}
  %4 = onnx.node "Gelu"(%3) opset 20 {approximate = "<GRAPHS>"} : (!onnx.value) -> !onnx.value
  return %4 : !onnx.value
}

// -----

func.func @contrib(%x: tensor<2x3xf32> {onnx.name = "x"}, %w: tensor<3x3xf32> {onnx.name = "w"}) -> !onnx.value {
  // expected-error @+1 {{node (FusedMatMul): attribute 'transB' is INTS, wanted INT}}
  %0 = onnx.node "FusedMatMul"(%x, %w) opset 1 domain "com.microsoft" {transB = array<i64: 1>} : (tensor<2x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Types may change between versions: a name here, a number from opset 6 on.
func.func @cast(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  // expected-error @+1 {{node (Cast): attribute 'to' is INT, wanted STRING}}
  %0 = onnx.node "Cast"(%x) opset 5 {to = 7 : i64} : (tensor<2x3xf32>) -> !onnx.value
  // expected-error @+1 {{node (Cast): attribute 'to' is STRING, wanted INT}}
  %1 = onnx.node "Cast"(%x) opset 6 {to = "INT64"} : (tensor<2x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

func.func @in_a_body(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %c = onnx.initializer "c" value dense<true> : tensor<i1> : tensor<i1>
  %0 = onnx.node "If"(%c) opset 13 {else_branch = "<GRAPH>", then_branch = "<GRAPH>"} : (tensor<i1>) -> !onnx.value bodies {
    onnx.yield %x : tensor<2x3xf32>
  }, {
    // expected-error @+1 {{node (Softmax): attribute 'axis' is STRING, wanted INT}}
    %1 = onnx.node "Softmax"(%x) opset 13 {axis = "1"} : (tensor<2x3xf32>) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

func.func @missing(%x: tensor<1x4x2x2xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (DepthToSpace): attribute 'blocksize' (INT) is missing, which has no default}}
  %0 = onnx.node "DepthToSpace"(%x) opset 13 {} : (tensor<1x4x2x2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Between opset 1 and 7, the second operand was broadcast from this axis on.
func.func @gone(%x: tensor<2x3xf32> {onnx.name = "x"}, %b: tensor<2xf32> {onnx.name = "b"}) -> !onnx.value {
  // expected-error @+1 {{Add has axis before opset 7 only, but the file says that it is of opset 13}}
  %0 = onnx.node "Add"(%x, %b) opset 13 {axis = 0 : i64, broadcast = 1 : i64} : (tensor<2x3xf32>, tensor<2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Files that people have hold such, which onnxruntime runs.
func.func @unknown(%x: tensor<2x3xf32> {onnx.name = "x"}, %w: tensor<3xf32> {onnx.name = "w"}) -> !onnx.value {
  // expected-warning @+1 {{node (LayerNormalization): there is no attribute 'epsion' (it has axis, epsilon, stash_type): it changes nothing (and 1 others likewise)}}
  %0 = onnx.node "LayerNormalization"(%x, %w) opset 17 {epsion = 1.0e-5 : f32} : (tensor<2x3xf32>, tensor<3xf32>) -> !onnx.value
  // Of opset 1 to 5, but in files of later ones.
  %1 = onnx.node "Relu"(%0) opset 13 {consumed_inputs = array<i64: 0>} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "Relu"(%1) opset 13 {slope = 1.0 : f32} : (!onnx.value) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// What is added to extents is bounded before anything is.
func.func @far(%x: tensor<1x2x5x5xf32> {onnx.name = "x"}, %w: tensor<3x2x3x3xf32> {onnx.name = "w"}) -> !onnx.value {
  // expected-error @+1 {{node (Conv): attribute 'pads' has 9223372036854775807, wanted at most 2^40}}
  %0 = onnx.node "Conv"(%x, %w) opset 11 {pads = array<i64: 0, 9223372036854775807, 0, 0>} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> !onnx.value
  // expected-error @+1 {{node (Softmax): attribute 'axis' has -9223372036854775808, wanted at most 2^40}}
  %1 = onnx.node "Softmax"(%0) opset 13 {axis = -9223372036854775808 : i64} : (!onnx.value) -> !onnx.value
  return %1 : !onnx.value
}

// -----

func.func @dilated(%x: tensor<1x2x5x5xf32> {onnx.name = "x"}, %w: tensor<3x2x3x3xf32> {onnx.name = "w"}) -> !onnx.value {
  // expected-error @+1 {{a kernel of 3, dilated by 1099511627776, is over more than 2^40 elements}}
  %0 = onnx.node "Conv"(%x, %w) opset 11 {dilations = array<i64: 1099511627776, 1>} : (tensor<1x2x5x5xf32>, tensor<3x2x3x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}
