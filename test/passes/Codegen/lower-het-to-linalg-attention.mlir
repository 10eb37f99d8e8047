// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Attention: a loop over samples and heads; a causal block multiplies only the
// keys that it sees.
// CHECK-LABEL: func.func private @attention
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tensor.extract_slice {{.*}} : tensor<1x2x64x16xf32> to tensor<?x16xf32>
// CHECK: linalg.contract
// CHECK: math.exp
// CHECK: linalg.contract
func.func private @attention(%q: tensor<1x2x64x16xf32>) -> (tensor<1x2x64x16xf32>, tensor<1x2x64xf32>) {
  %o, %l = het.attention %q, %q, %q {scale = 0.25 : f64, causal, kv_heads = array<i64: 0, 1>}
    : (tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>) -> (tensor<1x2x64x16xf32>, tensor<1x2x64xf32>)
  return %o, %l : tensor<1x2x64x16xf32>, tensor<1x2x64xf32>
}

// -----

// The adjoint makes the weights again from the kept log-sum-exp. Gradients of keys and
// values are sums over blocks of queries and begin with zeros, also where all three
// are one value; those of queries are written.
// CHECK-LABEL: func.func private @backward
// CHECK: %[[DQ:.*]] = tensor.empty() : tensor<1x2x64x16xf32>
// CHECK: %[[DK:.*]] = linalg.fill {{.*}} -> tensor<1x2x64x16xf32>
// CHECK: %[[DV:.*]] = linalg.fill {{.*}} -> tensor<1x2x64x16xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[DQ]], %{{.*}} = %[[DK]], %{{.*}} = %[[DV]])
// CHECK: math.exp
// CHECK-COUNT-4: linalg.contract
func.func private @backward(%q: tensor<1x2x64x16xf32>, %l: tensor<1x2x64xf32>)
    -> (tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>) {
  %d:3 = het.attention_backward %q, %q, %q, %q, %l, %q {scale = 0.25 : f64, causal, kv_heads = array<i64: 0, 1>}
    : (tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64xf32>, tensor<1x2x64x16xf32>)
    -> (tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>)
  return %d#0, %d#1, %d#2 : tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>, tensor<1x2x64x16xf32>
}
