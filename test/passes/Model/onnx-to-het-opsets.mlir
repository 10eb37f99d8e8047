// RUN: autohet-opt %s --onnx-to-het=inference --split-input-file --verify-diagnostics

// What is a field before an opset is an operand from there on: a file that has
// the other form has no meaning, and a default would be a guess.

func.func @clip(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{Clip has its min as a field before opset 11 only, but the file says that it is of opset 13}}
  %0 = onnx.node "Clip"(%x) opset 13 {min = 0.0 : f32} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @reshape(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{Reshape has its shape as a field before opset 5 only, but the file says that it is of opset 13}}
  %0 = onnx.node "Reshape"(%x) opset 13 {shape = array<i64: 6>} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @slice(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %s = onnx.initializer "s" value dense<0> : tensor<1xi64> : tensor<1xi64>
  // expected-error @+1 {{Slice has its starts as an operand from opset 10 on, but the file says that it is of opset 9}}
  %0 = onnx.node "Slice"(%x, %s, %s) opset 9 {} : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @largest(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %k = onnx.initializer "k" value dense<2> : tensor<1xi64> : tensor<1xi64>
  // expected-error @+1 {{TopK has largest from opset 11 on, but the file says that it is of opset 10}}
  %0:2 = onnx.node "TopK"(%x, %k) opset 10 {largest = 0 : i64} : (tensor<2x3xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}

// -----

// Nodes of bodies, too.
func.func @body(%x: tensor<2x3xf32> {onnx.name = "x"}, %c: tensor<i1> {onnx.name = "c"}) -> !onnx.value {
  %0 = onnx.node "If"(%c) opset 16 {else_branch = "<GRAPH>", then_branch = "<GRAPH>"} : (tensor<i1>) -> !onnx.value bodies {
    onnx.yield %x : tensor<2x3xf32>
  }, {
    // expected-error @+1 {{there is Gelu from opset 20 on, but the file says that it is of opset 16}}
    %1 = onnx.node "Gelu"(%x) opset 16 {} : (tensor<2x3xf32>) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

func.func @concat(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Concat): attribute 'axis' (INT) is missing, which has no default}}
  %0 = onnx.node "Concat"(%x, %x) opset 4 {} : (tensor<2x3xf32>, tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Old norms and dropouts train unless they say otherwise.
func.func @dropout(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Dropout): drops elements at random, which inference does not}}
  %0 = onnx.node "Dropout"(%x) opset 6 {ratio = 0.1 : f32} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @norm(%x: tensor<2x3x4x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %c = onnx.initializer "c" value dense<1.0> : tensor<3xf32> : tensor<3xf32>
  // expected-error @+1 {{node (BatchNormalization): is in training mode}}
  %0 = onnx.node "BatchNormalization"(%x, %c, %c, %c, %c) opset 6 {} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @norm_results(%x: tensor<2x3x4x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %c = onnx.initializer "c" value dense<1.0> : tensor<3xf32> : tensor<3xf32>
  // expected-error @+1 {{node (BatchNormalization): is in training mode}}
  %0:5 = onnx.node "BatchNormalization"(%x, %c, %c, %c, %c) opset 9 {} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (!onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}

// -----

func.func @norm_places(%x: tensor<1x3x1x1xf32> {onnx.name = "x"}) -> !onnx.value {
  %c = onnx.initializer "c" value dense<1.0> : tensor<3xf32> : tensor<3xf32>
  // expected-error @+1 {{node (BatchNormalization): has statistics for each place (spatial is 0), which is not supported}}
  %0 = onnx.node "BatchNormalization"(%x, %c, %c, %c, %c) opset 7 {spatial = 0 : i64} : (tensor<1x3x1x1xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @linear_attention(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (LinearAttention): has no decay, which update_rule 'gated' needs}}
  %0:2 = onnx.node "LinearAttention"(%x, %x, %x) opset 27 {q_num_heads = 2 : i64, kv_num_heads = 2 : i64, update_rule = "gated"} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (!onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}
