// RUN: autohet-opt %s --het-classify-parameters --split-input-file | FileCheck %s

// A mask, unfused; a learned addend elsewhere stays trained.
// CHECK: weight_source "mask" in "m" at 0 untrained because "added to attention scores"
// CHECK: weight_source "bias" in "m" at 64 because "addend"
// CHECK-LABEL: @unfused
het.weight_source "mask" in "m" at 0 : tensor<4x4xf32>
het.weight_source "bias" in "m" at 64 : tensor<8xf32>
func.func @unfused(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  // CHECK: het.parameter "mask" untrained
  %m = het.parameter "mask" : tensor<4x4xf32>
  // CHECK: het.parameter "bias" :
  %b = het.parameter "bias" : tensor<8xf32>
  %s0 = het.constant dense<0.5> : tensor<f32>
  %e = het.softmax %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %h = het.add %e, %b : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %s = het.matmul %h, %h batch [0] [0] contract [2] [2] : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
  %t = het.mul %s, %s0 : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
  %a = het.add %t, %m : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<2x4x4xf32>
  %p = het.softmax %a : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %y = het.matmul %p, %h batch [0] [0] contract [2] [1] : (tensor<2x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// The bias of a classifier before a softmax is no mask.
// CHECK: weight_source "bias" in "m" at 0 because "addend"
// CHECK: weight_source "w" in "m" at 64 because "factor of a matrix product"
het.weight_source "bias" in "m" at 0 : tensor<4xf32>
het.weight_source "w" in "m" at 64 : tensor<4x8xf32>
func.func @classifier(%ids: tensor<2xi64>, %x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %w = het.parameter "w" : tensor<4x8xf32>
  %b = het.parameter "bias" : tensor<4xf32>
  %s = het.matmul %x, %w contract [1] [1] : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  %a = het.add %s, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %p = het.softmax %a : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %p : tensor<2x4xf32>
}

// -----

// Inverse frequencies, through a product with positions; unused sources go.
// CHECK-NOT: "unused"
// CHECK: weight_source "inv_freq" in "m" at 0 untrained because "feeds sine or cosine"
het.weight_source "inv_freq" in "m" at 0 : tensor<4xf32>
het.weight_source "unused" in "m" at 64 : tensor<4xf32>
func.func @frequencies(%pos: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  %f = het.parameter "inv_freq" : tensor<4xf32>
  %p = het.reshape %pos to [2, 3, 1] : (tensor<2x3xi64>) -> tensor<2x3x1xi64>
  %c = het.cast %p {to = f32} : (tensor<2x3x1xi64>) -> tensor<2x3x1xf32>
  %a = het.mul %c, %f : (tensor<2x3x1xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  %y = het.cos %a : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// Tied: an embedding table that is the output head. Disjoint views are one use.
// CHECK: weight_source "wte" in "m" at 0 because "embedding table and output head (tied)"
// CHECK: weight_source "qkv" in "m" at 64 because "factor of a matrix product"
het.weight_source "wte" in "m" at 0 : tensor<9x8xf32>
het.weight_source "qkv" in "m" at 64 : tensor<16x8xf32>
func.func @tied(%ids: tensor<2xi64>) -> (tensor<2x9xf32>, tensor<2x8xf32>) {
  %t = het.parameter "wte" : tensor<9x8xf32>
  %x = het.embedding %t, %ids : (tensor<9x8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  %q = het.parameter "qkv" offsets [0, 0] of [16, 8] : tensor<8x8xf32>
  %k = het.parameter "qkv" offsets [8, 0] of [16, 8] : tensor<8x8xf32>
  %0 = het.matmul %x, %q contract [1] [1] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = het.matmul %0, %k contract [1] [1] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %h = het.parameter "wte" : tensor<9x8xf32>
  %y = het.matmul %1, %h contract [1] [1] : (tensor<2x8xf32>, tensor<9x8xf32>) -> tensor<2x9xf32>
  return %y, %1 : tensor<2x9xf32>, tensor<2x8xf32>
}

// -----

// Cross-attention reads a packed projection by slices: disjoint, so one use.
// CHECK: weight_source "in_proj" in "m" at 0 because "factor of a matrix product"
het.weight_source "in_proj" in "m" at 0 : tensor<24x8xf32>
func.func @slices(%x: tensor<2x8xf32>, %memory: tensor<2x8xf32>) -> tensor<2x16xf32> {
  %a = het.parameter "in_proj" : tensor<24x8xf32>
  %q = het.slice %a offsets [0, 0] sizes [8, 8] strides [1, 1] : (tensor<24x8xf32>) -> tensor<8x8xf32>
  %b = het.parameter "in_proj" : tensor<24x8xf32>
  %kv = het.slice %b offsets [8, 0] sizes [16, 8] strides [1, 1] : (tensor<24x8xf32>) -> tensor<16x8xf32>
  %0 = het.matmul %x, %q contract [1] [1] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = het.add %0, %memory : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = het.matmul %1, %kv contract [1] [1] : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
  return %2 : tensor<2x16xf32>
}

// -----

// Two uses as one parameter, on request.
// CHECK: weight_source "w" in "m" at 0 shared because "factor of a matrix product"
het.weight_source "w" in "m" at 0 shared : tensor<8x8xf32>
func.func @shared(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %a = het.parameter "w" : tensor<8x8xf32>
  %0 = het.matmul %x, %a contract [1] [1] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %b = het.parameter "w" : tensor<8x8xf32>
  %1 = het.matmul %0, %b contract [1] [1] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// -----

// Rotary tables, before the pattern is recognised.
// CHECK: weight_source "cos" in "m" at 0 untrained because "rotates queries and keys"
// CHECK: weight_source "sin" in "m" at 64 untrained because "rotates queries and keys"
het.weight_source "cos" in "m" at 0 : tensor<3x4xf32>
het.weight_source "sin" in "m" at 64 : tensor<3x4xf32>
func.func @rotary(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %c = het.parameter "cos" : tensor<3x4xf32>
  %0 = het.mul %x, %c : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %1 = het.slice %x offsets [0, 0, 0] sizes [2, 3, 2] strides [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %2 = het.slice %x offsets [0, 0, 2] sizes [2, 3, 2] strides [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %3 = het.neg %2 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %4 = het.concat %3, %1 {dim = 2 : i64} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %s = het.parameter "sin" : tensor<3x4xf32>
  %5 = het.mul %4, %s : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %6 = het.add %0, %5 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %6 : tensor<2x3x4xf32>
}

// -----

// TorchScript's exporter gives a norm without a bias one of zeros.
// CHECK: weight_source "/norm/Constant_output_0" in "m" at 0 untrained because "added by the exporter to a norm without a bias"
het.weight_source "/norm/Constant_output_0" in "m" at 0 : tensor<8xf32>
func.func @norm_without_bias(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %g = het.constant dense<1.0> : tensor<8xf32>
  %b = het.parameter "/norm/Constant_output_0" : tensor<8xf32>
  %0, %m0, %r0 = het.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>)
  // A second use is no second parameter.
  %c = het.parameter "/norm/Constant_output_0" : tensor<8xf32>
  %1, %m1, %r1 = het.layer_norm %0, %g, %c {epsilon = 1.0e-5 : f64} : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>)
  return %1 : tensor<2x8xf32>
}

// -----

// A weight over its own norm is one use; over the norm of another it is not.
// CHECK: weight_source "direction" in "m" at 0 because "divided by its own norm"
// CHECK: weight_source "length" in "m" at 64 because "factor"
het.weight_source "direction" in "m" at 0 : tensor<4x8xf32>
het.weight_source "length" in "m" at 64 : tensor<4x1xf32>
func.func @normed_weight(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %v = het.parameter "direction" : tensor<4x8xf32>
  %q = het.mul %v, %v : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = het.reduce sum %q dims [1] keep : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %n = het.sqrt %s : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %w = het.parameter "direction" : tensor<4x8xf32>
  %d = het.div %w, %n : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %g = het.parameter "length" : tensor<4x1xf32>
  %u = het.mul %d, %g : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = het.matmul %x, %u contract [1] [1] : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
