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
