// RUN: autohet-opt %s --het-unflatten --split-input-file | FileCheck %s

// GPT-2's MLP: Gemm on [batch * sequence, hidden], with reshapes around.
// CHECK-LABEL: func @conv1d
// CHECK-NOT: het.reshape
// CHECK: %[[P:.*]] = het.matmul %arg0, %{{.*}} contract [2] [0] : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
// CHECK: %[[A:.*]] = het.add %{{.*}}, %[[P]] : (tensor<8xf32>, tensor<2x3x8xf32>)
// CHECK: %[[G:.*]] = het.gelu tanh %[[A]]
// CHECK: %[[D:.*]] = het.dropout %[[G]]
// CHECK: return %[[D]]
func.func @conv1d(%x: tensor<2x3x4xf32>) -> tensor<2x3x8xf32> {
  %w = het.parameter "c_fc.weight" : tensor<4x8xf32>
  %b = het.parameter "c_fc.bias" : tensor<8xf32>
  %f = het.reshape %x to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %p = het.matmul %f, %w contract [1] [0] : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %a = het.add %b, %p : (tensor<8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %g = het.gelu tanh %a : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %d = het.dropout %g {p = 0.1 : f64, op_id = 0 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = het.reshape %d to [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// One reshape that merges the batch and, at once, the heads: only the latter
// merging stays.
// CHECK-LABEL: func @merged_heads
// CHECK: %[[R:.*]] = het.reshape %arg0 to [2, 3, 8]
// CHECK: het.matmul %[[R]], %{{.*}} contract [2] [0] : {{.*}} -> tensor<2x3x8xf32>
// CHECK-NOT: het.reshape
func.func @merged_heads(%x: tensor<2x3x2x4xf32>) -> tensor<2x3x8xf32> {
  %w = het.parameter "c_proj.weight" : tensor<8x8xf32>
  %f = het.reshape %x to [6, 8] : (tensor<2x3x2x4xf32>) -> tensor<6x8xf32>
  %p = het.matmul %f, %w contract [1] [0] : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %y = het.reshape %p to [2, 3, 8] : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// bmm on [batch * heads, ...]: both sides are taken apart. The transposed keys
// go into the product.
// CHECK-LABEL: func @bmm
// CHECK-NEXT: %[[S:.*]] = het.matmul %arg0, %arg1 batch [0, 1] [0, 1] contract [3] [3]
// CHECK-NEXT: return %[[S]]
func.func @bmm(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32> {
  %qf = het.reshape %q to [8, 3, 8] : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
  %kf = het.reshape %k to [8, 3, 8] : (tensor<2x4x3x8xf32>) -> tensor<8x3x8xf32>
  %kt = het.transpose %kf by [0, 2, 1] : (tensor<8x3x8xf32>) -> tensor<8x8x3xf32>
  %s = het.matmul %qf, %kt batch [0] [0] contract [2] [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
  %y = het.reshape %s to [2, 4, 3, 3] : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
  return %y : tensor<2x4x3x3xf32>
}

// -----

// A folded weight is the transpose of the parameter.
// CHECK-LABEL: func @linear
// CHECK: %[[W:.*]] = het.parameter
// CHECK-NEXT: het.matmul %arg0, %[[W]] contract [2] [1]
func.func @linear(%x: tensor<2x3x4xf32>) -> tensor<2x3x8xf32> {
  %w = het.parameter "weight" : tensor<8x4xf32>
  %t = het.transpose %w by [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = het.matmul %x, %t contract [2] [0] : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Kept dims that a transpose exchanges are the result's order: it stays.
// CHECK-LABEL: func @kept_order
// CHECK: het.transpose
func.func @kept_order(%x: tensor<3x2x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x3x8xf32> {
  %t = het.transpose %x by [1, 0, 2] : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
  %y = het.matmul %t, %w contract [2] [0] : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Everything else that a merged batch may pass.
// CHECK-LABEL: func @others
// CHECK: het.embedding %arg0, %arg1 : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
// CHECK: het.layer_norm {{.*}} -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: het.slice {{.*}} offsets [0, 0, 1] sizes [2, 3, 2]
// CHECK: het.concat {{.*}} {dim = 2 : i64}
// CHECK: het.softmax {{.*}} -> tensor<2x3x4xf32>
// CHECK: %[[R:.*]] = het.reduce sum {{.*}} dims [2] keep : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
// CHECK: %[[B:.*]] = het.broadcast %[[R]] to [2, 3, 5]
// CHECK: return %[[B]]
func.func @others(%table: tensor<9x4xf32>, %ids: tensor<2x3xi64>, %g: tensor<4xf32>) -> tensor<2x3x5xf32> {
  %fi = het.reshape %ids to [6] : (tensor<2x3xi64>) -> tensor<6xi64>
  %e = het.embedding %table, %fi : (tensor<9x4xf32>, tensor<6xi64>) -> tensor<6x4xf32>
  %n, %m, %r = het.layer_norm %e, %g, %g {epsilon = 1.0e-5 : f64} : (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<6x4xf32>, tensor<6xf32>, tensor<6xf32>)
  %s = het.slice %n offsets [0, 1] sizes [6, 2] strides [1, 1] : (tensor<6x4xf32>) -> tensor<6x2xf32>
  %c = het.concat %s, %s {dim = 1 : i64} : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %p = het.softmax %c : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %k = het.reduce sum %p dims [1] keep : (tensor<6x4xf32>) -> tensor<6x1xf32>
  %b = het.broadcast %k to [6, 5] : (tensor<6x1xf32>) -> tensor<6x5xf32>
  %y = het.reshape %b to [2, 3, 5] : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

// nn.MultiheadAttention: the batch, dim 1 here, merged with the heads, which
// lie in another dim of what is merged.
// CHECK-LABEL: func @batch_and_heads
// CHECK: het.reshape %arg0 to [3, 2, 4, 8]
// CHECK: %[[S:.*]] = het.matmul %{{.*}}, %{{.*}} batch [1, 2] [1, 2] contract [3] [3] : {{.*}} -> tensor<2x4x3x3xf32>
// CHECK: %[[P:.*]] = het.softmax %[[S]]
// CHECK: %[[A:.*]] = het.matmul %[[P]], %{{.*}} batch [0, 1] [1, 2] contract [3] [0] : {{.*}} -> tensor<2x4x3x8xf32>
// CHECK: %[[T:.*]] = het.transpose %[[A]] by [2, 0, 1, 3]
// CHECK: %[[Y:.*]] = het.reshape %[[T]] to [3, 2, 32]
// CHECK: return %[[Y]]
func.func @batch_and_heads(%x: tensor<3x2x32xf32> {het.batch_dim = 1 : i64}) -> tensor<3x2x32xf32> attributes {het.batch_size = 2 : i64} {
  %v = het.reshape %x to [3, 8, 8] : (tensor<3x2x32xf32>) -> tensor<3x8x8xf32>
  %t = het.transpose %v by [1, 0, 2] : (tensor<3x8x8xf32>) -> tensor<8x3x8xf32>
  %k = het.transpose %v by [1, 2, 0] : (tensor<3x8x8xf32>) -> tensor<8x8x3xf32>
  %s = het.matmul %t, %k batch [0] [0] contract [2] [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
  %p = het.softmax %s : (tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
  %a = het.matmul %p, %t batch [0] [0] contract [2] [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
  %b = het.transpose %a by [1, 0, 2] : (tensor<8x3x8xf32>) -> tensor<3x8x8xf32>
  %y = het.reshape %b to [3, 2, 32] : (tensor<3x8x8xf32>) -> tensor<3x2x32xf32>
  return %y : tensor<3x2x32xf32>
}

// -----

// The same with a batch of one, which a shape alone does not show.
// CHECK-LABEL: func @one_sample
// CHECK: het.matmul {{.*}} batch [1, 2] [1, 2] contract [3] [3] : {{.*}} -> tensor<1x4x3x3xf32>
func.func @one_sample(%x: tensor<1x3x32xf32> {het.batch_dim = 0 : i64}) -> tensor<4x3x3xf32> attributes {het.batch_size = 1 : i64} {
  %l = het.transpose %x by [1, 0, 2] : (tensor<1x3x32xf32>) -> tensor<3x1x32xf32>
  %v = het.reshape %l to [3, 4, 8] : (tensor<3x1x32xf32>) -> tensor<3x4x8xf32>
  %t = het.transpose %v by [1, 0, 2] : (tensor<3x4x8xf32>) -> tensor<4x3x8xf32>
  %s = het.matmul %t, %t batch [0] [0] contract [2] [2] : (tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> tensor<4x3x3xf32>
  return %s : tensor<4x3x3xf32>
}

// -----

// A mask of the merged dim, one row and one for all, beside scores.
// CHECK-LABEL: func @masks
// CHECK: het.add %arg0, %arg1 : (tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32>)
// CHECK: het.add %{{.*}}, %arg2 : (tensor<2x4x3x3xf32>, tensor<1x3x3xf32>)
func.func @masks(%s: tensor<2x4x3x3xf32> {het.batch_dim = 0 : i64}, %pad: tensor<2x1x1x3xf32> {het.batch_dim = 0 : i64}, %all: tensor<1x3x3xf32>) -> tensor<2x4x3x3xf32> attributes {het.batch_size = 2 : i64} {
  %f = het.reshape %s to [8, 3, 3] : (tensor<2x4x3x3xf32>) -> tensor<8x3x3xf32>
  %w = het.broadcast %pad to [2, 4, 1, 3] : (tensor<2x1x1x3xf32>) -> tensor<2x4x1x3xf32>
  %m = het.reshape %w to [8, 1, 3] : (tensor<2x4x1x3xf32>) -> tensor<8x1x3xf32>
  %a = het.add %f, %m : (tensor<8x3x3xf32>, tensor<8x1x3xf32>) -> tensor<8x3x3xf32>
  %b = het.add %a, %all : (tensor<8x3x3xf32>, tensor<1x3x3xf32>) -> tensor<8x3x3xf32>
  %y = het.reshape %b to [2, 4, 3, 3] : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
  return %y : tensor<2x4x3x3xf32>
}

// -----

// A router that was given all tokens in one dim, and the rows it chooses.
// CHECK-LABEL: func @experts
// CHECK: %[[V:.*]], %[[I:.*]] = het.top_k %arg0 {{.*}} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi64>)
// CHECK: %[[G:.*]] = het.gather %{{.*}}, %[[I]] {{.*}} -> tensor<2x3x2x8xf32>
// CHECK: return %[[V]], %[[G]]
func.func @experts(%x: tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2x8xf32>) {
  %w = het.parameter "experts" : tensor<4x8xf32>
  %f = het.reshape %x to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %v, %i = het.top_k %f {k = 2 : i64, largest} : (tensor<6x4xf32>) -> (tensor<6x2xf32>, tensor<6x2xi64>)
  %r = het.reshape %i to [12] : (tensor<6x2xi64>) -> tensor<12xi64>
  %g = het.gather %w, %r {dim = 0 : i64} : (tensor<4x8xf32>, tensor<12xi64>) -> tensor<12x8xf32>
  %y = het.reshape %v to [2, 3, 2] : (tensor<6x2xf32>) -> tensor<2x3x2xf32>
  %z = het.reshape %g to [2, 3, 2, 8] : (tensor<12x8xf32>) -> tensor<2x3x2x8xf32>
  return %y, %z : tensor<2x3x2xf32>, tensor<2x3x2x8xf32>
}

// -----

// Lookups in rows that are merged with heads.
// CHECK-LABEL: func @paired_lookups
// CHECK: het.gather_nd %arg0, %{{.*}} {batch_dims = 3 : i64} : (tensor<2x4x3x7xf32>, tensor<2x4x3x3x1xi64>) -> tensor<2x4x3x3xf32>
func.func @paired_lookups(%s: tensor<2x4x3x7xf32>, %i: tensor<8x3x3x1xi64>) -> tensor<2x4x3x3xf32> {
  %f = het.reshape %s to [8, 3, 7] : (tensor<2x4x3x7xf32>) -> tensor<8x3x7xf32>
  %g = het.gather_nd %f, %i {batch_dims = 2 : i64} : (tensor<8x3x7xf32>, tensor<8x3x3x1xi64>) -> tensor<8x3x3xf32>
  %y = het.reshape %g to [2, 4, 3, 3] : (tensor<8x3x3xf32>) -> tensor<2x4x3x3xf32>
  return %y : tensor<2x4x3x3xf32>
}

// -----

// A 1 in front that is dropped merges nothing: queries, keys and values were one
// tensor, of which each is a row.
// CHECK-LABEL: func @dropped_one
// CHECK: %[[Q:.*]] = het.reshape %arg0 to [2, 4, 5, 8]
// CHECK: %[[Y:.*]] = het.softmax %[[Q]] : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
// CHECK: return %[[Y]]
func.func @dropped_one(%q: tensor<1x2x4x5x8xf32>) -> tensor<2x4x5x8xf32> attributes {het.batch_size = 2 : i64} {
  %r = het.reshape %q to [2, 4, 5, 8] : (tensor<1x2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  %y = het.softmax %r : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x8xf32>
  return %y : tensor<2x4x5x8xf32>
}
