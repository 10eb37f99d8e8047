// RUN: autohet-opt %s --het-classify-parameters --verify-diagnostics --split-input-file

// Every merged constant is reported, not only the first.
het.weight_source "g" in "m" at 0 : tensor<8xf32>
het.weight_source "b" in "m" at 64 : tensor<8xf32>
func.func @merged(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // expected-error @+1 {{constant 'g' is used 2 times as a parameter (scale of a norm). Exporters merge constants that are equal}}
  %g = het.parameter "g" : tensor<8xf32>
  // expected-error @+1 {{constant 'b' is used 2 times as a parameter (bias of a norm)}}
  %b = het.parameter "b" : tensor<8xf32>
  %0, %m0, %r0 = het.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>)
  %g1 = het.parameter "g" : tensor<8xf32>
  %b1 = het.parameter "b" : tensor<8xf32>
  %1, %m1, %r1 = het.layer_norm %0, %g1, %b1 {epsilon = 1.0e-5 : f64} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>)
  return %1 : tensor<2x8xf32>
}

// -----

het.weight_source "w" in "m" at 64 : tensor<4x8xf32>
func.func @unlike_shapes(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %w = het.parameter "w" : tensor<4x8xf32>
  // expected-error @+1 {{is of shape [4], another use of 'w' of shape [4, 8]}}
  %b = het.parameter "w" : tensor<4xf32>
  %s = het.matmul %x, %w contract [1] [1] : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  %a = het.add %s, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %a : tensor<2x4xf32>
}

// -----

// What an exporter computed bears its names.
// expected-warning @below {{trained as they are, and saved under names that PyTorch's model does not have: 'val_3', 'onnx::Mul_7'. What was 1 + weight decays to 0, not to 1}}
// expected-warning @below {{are added to attention scores, differ by head and are not trained: '/attn/Constant_1_output_0'}}
module {
  het.weight_source "val_3" in "m" at 0 : tensor<8xf32>
  het.weight_source "onnx::Mul_7" in "m" at 32 : tensor<8xf32>
  het.weight_source "norm.weight" in "m" at 64 : tensor<8xf32>
  het.weight_source "/attn/Constant_1_output_0" in "m" at 128 : tensor<2x4x4xf32>
  het.weight_source "val_9" in "m" at 512 : tensor<1x1x4x4xf32>
  func.func @computed(%x: tensor<2x2x4x8xf32>) -> tensor<2x2x4x8xf32> {
    %a = het.parameter "val_3" : tensor<8xf32>
    %b = het.parameter "onnx::Mul_7" : tensor<8xf32>
    %c = het.parameter "norm.weight" : tensor<8xf32>
    %0 = het.exp %x : (tensor<2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
    %1, %r = het.rms_norm %0, %a {epsilon = 1.0e-06 : f64} : (tensor<2x2x4x8xf32>, tensor<8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
    %2 = het.mul %1, %b : (tensor<2x2x4x8xf32>, tensor<8xf32>) -> tensor<2x2x4x8xf32>
    %3 = het.mul %2, %c : (tensor<2x2x4x8xf32>, tensor<8xf32>) -> tensor<2x2x4x8xf32>
    %m = het.parameter "/attn/Constant_1_output_0" : tensor<2x4x4xf32>
    %n = het.parameter "val_9" : tensor<1x1x4x4xf32>
    %s = het.matmul %3, %3 batch [0, 1] [0, 1] contract [3] [3] : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> tensor<2x2x4x4xf32>
    %t = het.add %s, %m : (tensor<2x2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x2x4x4xf32>
    %u = het.add %t, %n : (tensor<2x2x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<2x2x4x4xf32>
    %p = het.softmax %u : (tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
    %y = het.matmul %p, %3 batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x2x4x4xf32>, tensor<2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
    return %y : tensor<2x2x4x8xf32>
  }
}
