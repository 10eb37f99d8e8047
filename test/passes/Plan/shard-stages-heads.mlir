// Which products ranks divide in less plain words, each with one sum.
//
// RUN: autohet-opt %s --dist-shard-stages --split-input-file | FileCheck %s

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// An expert of a config, which begins with zeros for tokens that did not choose
// it: its products are divided like those of any gated MLP.
//
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.parameter "w1" offsets [0, 0] of [8, 6] : tensor<4x6xf32>
// CHECK:         het.parameter "w3" offsets [0, 0] of [8, 6] : tensor<4x6xf32>
// CHECK-NOT:     dist.send
// CHECK:         het.parameter "w2" offsets [0, 0] of [6, 8] : tensor<6x4xf32>
// CHECK:         dist.send
// CHECK-NOT:     dist.send
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         het.parameter "w1" offsets [4, 0] of [8, 6] : tensor<4x6xf32>
func.func @r0.s0(%x: tensor<2x6xf32>, %share: tensor<2x1xf32>) -> (tensor<2x6xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %zero = het.constant dense<0.0> : tensor<f32>
  %w1 = het.parameter "w1" : tensor<8x6xf32>
  %w2 = het.parameter "w2" : tensor<6x8xf32>
  %w3 = het.parameter "w3" : tensor<8x6xf32>
  %chosen = het.compare gt %share, %zero : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xi1>
  %g = het.matmul %x, %w1 contract [1] [1] : (tensor<2x6xf32>, tensor<8x6xf32>) -> tensor<2x8xf32>
  %gate = het.select %chosen, %g, %zero : (tensor<2x1xi1>, tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %u = het.matmul %x, %w3 contract [1] [1] : (tensor<2x6xf32>, tensor<8x6xf32>) -> tensor<2x8xf32>
  %up = het.select %chosen, %u, %zero : (tensor<2x1xi1>, tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %a = het.silu %gate : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %m = het.mul %a, %up : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %d = het.matmul %m, %w2 contract [1] [1] : (tensor<2x8xf32>, tensor<6x8xf32>) -> tensor<2x6xf32>
  %y = het.mul %d, %share : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 1, first_sample = 0, global_batch = 4>

// One weight has query, key and value head by head; queries and keys rotate in
// part, and keys are normalised.
//
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.parameter "qkv" offsets [0, 0] of [24, 8] : tensor<12x8xf32>
// CHECK-NOT:     dist.send
// CHECK:         het.attention {{.*}} kv_heads = array<i64: 0>{{.*}} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>)
// CHECK:         het.parameter "o" offsets [0, 0] of [8, 8] : tensor<8x4xf32>
// CHECK:         dist.send
// CHECK-NOT:     dist.send
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         het.parameter "qkv" offsets [12, 0] of [24, 8] : tensor<12x8xf32>
func.func @r0.s0(%x: tensor<1x3x8xf32>, %cos: tensor<3x1xf32>, %sin: tensor<3x1xf32>) -> (tensor<1x3x8xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %w = het.parameter "qkv" : tensor<24x8xf32>
  %o = het.parameter "o" : tensor<8x8xf32>
  %n = het.parameter "norm" : tensor<4xf32>
  %p = het.matmul %x, %w contract [2] [1] : (tensor<1x3x8xf32>, tensor<24x8xf32>) -> tensor<1x3x24xf32>
  %r = het.reshape %p to [1, 3, 2, 12] : (tensor<1x3x24xf32>) -> tensor<1x3x2x12xf32>
  %t = het.transpose %r by [0, 2, 1, 3] : (tensor<1x3x2x12xf32>) -> tensor<1x2x3x12xf32>
  %q0 = het.slice %t offsets [0, 0, 0, 0] sizes [1, 2, 3, 2] strides [1, 1, 1, 1] : (tensor<1x2x3x12xf32>) -> tensor<1x2x3x2xf32>
  %q1 = het.slice %t offsets [0, 0, 0, 2] sizes [1, 2, 3, 2] strides [1, 1, 1, 1] : (tensor<1x2x3x12xf32>) -> tensor<1x2x3x2xf32>
  %q2 = het.rotary %q0, %cos, %sin : (tensor<1x2x3x2xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<1x2x3x2xf32>
  %q = het.concat %q2, %q1 {dim = 3 : i64} : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x4xf32>
  %k0 = het.slice %t offsets [0, 0, 0, 4] sizes [1, 2, 3, 4] strides [1, 1, 1, 1] : (tensor<1x2x3x12xf32>) -> tensor<1x2x3x4xf32>
  %k, %rstd = het.rms_norm %k0, %n {epsilon = 1.0e-6 : f64} : (tensor<1x2x3x4xf32>, tensor<4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %v = het.slice %t offsets [0, 0, 0, 8] sizes [1, 2, 3, 4] strides [1, 1, 1, 1] : (tensor<1x2x3x12xf32>) -> tensor<1x2x3x4xf32>
  %a, %lse = het.attention %q, %k, %v {causal, kv_heads = array<i64: 0, 1>, scale = 0.5 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %b = het.transpose %a by [0, 2, 1, 3] : (tensor<1x2x3x4xf32>) -> tensor<1x3x2x4xf32>
  %c = het.reshape %b to [1, 3, 8] : (tensor<1x3x2x4xf32>) -> tensor<1x3x8xf32>
  %y = het.matmul %c, %o contract [2] [1] : (tensor<1x3x8xf32>, tensor<8x8xf32>) -> tensor<1x3x8xf32>
  return %y : tensor<1x3x8xf32>
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 1, first_sample = 0, global_batch = 4>

// Attention in other words, with a bias of scores: its products are of heads.
//
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.parameter "q" offsets [0, 0] of [8, 8] : tensor<4x8xf32>
// CHECK:         het.parameter "k" offsets [0, 0] of [8, 8] : tensor<4x8xf32>
// CHECK:         het.parameter "v" offsets [0, 0] of [8, 8] : tensor<4x8xf32>
// CHECK-NOT:     dist.send
// CHECK:         het.softmax {{.*}} -> tensor<1x1x3x3xf32>
// CHECK:         het.parameter "o" offsets [0, 0] of [8, 8] : tensor<8x4xf32>
// CHECK:         dist.send
// CHECK-NOT:     dist.send
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         het.parameter "q" offsets [4, 0] of [8, 8] : tensor<4x8xf32>
func.func @r0.s0(%x: tensor<1x3x8xf32>, %bias: tensor<2x3x3xf32>) -> (tensor<1x3x8xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %wq = het.parameter "q" : tensor<8x8xf32>
  %wk = het.parameter "k" : tensor<8x8xf32>
  %wv = het.parameter "v" : tensor<8x8xf32>
  %wo = het.parameter "o" : tensor<8x8xf32>
  %q0 = het.matmul %x, %wq contract [2] [1] : (tensor<1x3x8xf32>, tensor<8x8xf32>) -> tensor<1x3x8xf32>
  %k0 = het.matmul %x, %wk contract [2] [1] : (tensor<1x3x8xf32>, tensor<8x8xf32>) -> tensor<1x3x8xf32>
  %v0 = het.matmul %x, %wv contract [2] [1] : (tensor<1x3x8xf32>, tensor<8x8xf32>) -> tensor<1x3x8xf32>
  %q = het.reshape %q0 to [1, 3, 2, 4] : (tensor<1x3x8xf32>) -> tensor<1x3x2x4xf32>
  %k = het.reshape %k0 to [1, 3, 2, 4] : (tensor<1x3x8xf32>) -> tensor<1x3x2x4xf32>
  %v = het.reshape %v0 to [1, 3, 2, 4] : (tensor<1x3x8xf32>) -> tensor<1x3x2x4xf32>
  %s = het.matmul %q, %k batch [0, 2] [0, 2] contract [3] [3] : (tensor<1x3x2x4xf32>, tensor<1x3x2x4xf32>) -> tensor<1x2x3x3xf32>
  %sb = het.add %s, %bias : (tensor<1x2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %p = het.softmax %sb : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %a = het.matmul %p, %v batch [0, 1] [0, 2] contract [3] [1] : (tensor<1x2x3x3xf32>, tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32>
  %b = het.transpose %a by [0, 2, 1, 3] : (tensor<1x2x3x4xf32>) -> tensor<1x3x2x4xf32>
  %c = het.reshape %b to [1, 3, 8] : (tensor<1x3x2x4xf32>) -> tensor<1x3x8xf32>
  %y = het.matmul %c, %wo contract [2] [1] : (tensor<1x3x8xf32>, tensor<8x8xf32>) -> tensor<1x3x8xf32>
  return %y : tensor<1x3x8xf32>
}
