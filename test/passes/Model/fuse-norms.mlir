// RUN: autohet-opt %s --het-fuse-norms --split-input-file | FileCheck %s

// LayerNorm as the TorchScript exporter writes it up to opset 16.
// CHECK-LABEL: func @torchscript
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>)
// CHECK-DAG: %[[G:.*]] = het.parameter "ln.weight"
// CHECK-DAG: %[[B:.*]] = het.parameter "ln.bias"
// CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = het.layer_norm %[[X]], %[[G]], %[[B]] {epsilon = 9.9999997473787516E-6 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @torchscript(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %g = het.parameter "ln.weight" : tensor<8xf32>
  %b = het.parameter "ln.bias" : tensor<8xf32>
  %two = het.constant dense<2.0> : tensor<f32>
  %eps = het.constant dense<9.99999974e-06> : tensor<f32>
  %mean = het.reduce mean %x dims [2] keep : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %d = het.sub %x, %mean : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %sq = het.pow %d, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %var = het.reduce mean %sq dims [2] keep : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %ve = het.add %var, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %std = het.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %n = het.div %d, %std : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %s = het.mul %n, %g : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %y = het.add %s, %b : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Sums over N, dims dropped and put back, a reciprocal, operands swapped, and a
// scale as [1, 1, H].
// CHECK-LABEL: func @in_other_words
// CHECK: %[[G:.*]] = het.reshape %{{.*}} to [8]
// CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = het.layer_norm %arg0, %[[G]], %{{.*}} {epsilon
// CHECK-NEXT: return %[[Y]]
func.func @in_other_words(%x: tensor<2x3x8xf32>, %g: tensor<1x1x8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %n = het.constant dense<8.0> : tensor<f32>
  %inverse = het.constant dense<0.125> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %eps = het.constant dense<1.0e-05> : tensor<f32>
  %sum = het.reduce sum %x dims [2] : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %kept = het.reshape %sum to [2, 3, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %mean = het.div %kept, %n : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %d = het.sub %x, %mean : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %sq = het.mul %d, %d : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %total = het.reduce sum %sq dims [2] keep : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %var = het.mul %inverse, %total : (tensor<f32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %ve = het.add %eps, %var : (tensor<f32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %std = het.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = het.div %one, %std : (tensor<f32>, tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %norm = het.mul %r, %d : (tensor<2x3x1xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %s = het.mul %g, %norm : (tensor<1x1x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %y = het.add %b, %s : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// RMSNorm by Sqrt and Reciprocal, as the dynamo exporter writes it.
// CHECK-LABEL: func @rms
// CHECK: %[[G:.*]] = het.parameter
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = het.rms_norm %arg0, %[[G]]
// CHECK-NEXT: return %[[Y]]
func.func @rms(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %g = het.parameter "norm.weight" : tensor<8xf32>
  %two = het.constant dense<2.0> : tensor<f32>
  %eps = het.constant dense<1.0e-06> : tensor<f32>
  %sq = het.pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %ms = het.reduce mean %sq dims [2] keep : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %ve = het.add %ms, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %root = het.sqrt %ve : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %r = het.reciprocal %root : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %n = het.mul %x, %r : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %y = het.mul %g, %n : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// The operand is itself a product, and the variance is used elsewhere: the norm
// is recognised and what the other use needs stays.
// CHECK-LABEL: func @other_uses
// CHECK: %[[P:.*]] = het.mul %arg0, %arg1
// CHECK: %[[MS:.*]] = het.reduce mean
// CHECK: %[[Y:.*]], %{{.*}} = het.rms_norm %[[P]]
// CHECK: return %[[Y]], %[[MS]]
func.func @other_uses(%a: tensor<3x8xf32>, %b: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x1xf32>) {
  %eps = het.constant dense<1.0e-06> : tensor<f32>
  %x = het.mul %a, %b : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %sq = het.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %ms = het.reduce mean %sq dims [1] keep : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %ve = het.add %ms, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %r = het.rsqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %n = het.mul %x, %r : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  return %n, %ms : tensor<3x8xf32>, tensor<3x1xf32>
}

// -----

// Not norms: the variance with N - 1, and a scale that is not a vector.
// CHECK-LABEL: func @unbiased
// CHECK-NOT: layer_norm
func.func @unbiased(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %n = het.constant dense<7.0> : tensor<f32>
  %eps = het.constant dense<1.0e-05> : tensor<f32>
  %mean = het.reduce mean %x dims [1] keep : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %d = het.sub %x, %mean : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %sq = het.mul %d, %d : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %sum = het.reduce sum %sq dims [1] keep : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %var = het.div %sum, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %ve = het.add %var, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %r = het.rsqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = het.mul %d, %r : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// CHECK-LABEL: func @modulated
// CHECK: %[[N:.*]], %{{.*}} = het.rms_norm
// CHECK: het.mul %[[N]], %arg1
func.func @modulated(%x: tensor<3x8xf32>, %scale: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %eps = het.constant dense<1.0e-06> : tensor<f32>
  %sq = het.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %ms = het.reduce mean %sq dims [1] keep : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %ve = het.add %ms, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %r = het.rsqrt %ve : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %n = het.mul %x, %r : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %y = het.mul %n, %scale : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
