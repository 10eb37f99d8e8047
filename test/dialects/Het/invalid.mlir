// One function a message of the verifiers and of shape inference, named after the
// constraint in HetOps.td that it breaks.
//
// RUN: autohet-opt %s --split-input-file --verify-diagnostics

func.func @add_c1(%a: tensor<2xf32>, %b: tensor<2xf16>) {
  // expected-error @+2 {{operands must have one element type, but have 'f32' and 'f16'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.add %a, %b : (tensor<2xf32>, tensor<2xf16>) -> tensor<2xf32>
  return
}

// -----

func.func @add_c2(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{shapes [2, 3] and [4] do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.add %a, %b : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @compare_c1(%a: tensor<2xf32>, %b: tensor<2xi64>) {
  // expected-error @+2 {{operands must have one element type, but have 'f32' and 'i64'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.compare lt %a, %b : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xi1>
  return
}

// -----

func.func @select_c1(%a: tensor<2xi1>, %b: tensor<2xf32>, %c: tensor<2xi64>) {
  // expected-error @+2 {{operands must have one element type, but have 'f32' and 'i64'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.select %a, %b, %c : (tensor<2xi1>, tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @select_c2(%a: tensor<2xi1>, %b: tensor<3xf32>, %c: tensor<3xf32>) {
  // expected-error @+2 {{shapes [2] and [3] do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.select %a, %b, %c : (tensor<2xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @gelu_backward_c1(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{operand and gradient must have one type, but have 'tensor<2xf32>' and 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.gelu_backward erf %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @parameter_c1() {
  // expected-error @+1 {{has offsets without a global shape}}
  %0 = "het.parameter"() {name = "w", offsets = array<i64: 0>} : () -> tensor<2xf32>
  return
}

// -----

func.func @parameter_c1_shape() {
  // expected-error @+1 {{has a global shape without offsets}}
  %0 = "het.parameter"() {name = "w", global_shape = array<i64: 4>} : () -> tensor<2xf32>
  return
}

// -----

func.func @parameter_c1_rank() {
  // expected-error @+1 {{describes a box of rank 1 with 2 offsets of 1 dims}}
  %0 = het.parameter "w" offsets [0, 0] of [4] : tensor<2xf32>
  return
}

// -----

func.func @parameter_c2() {
  // expected-error @+1 {{reaches outside dim 1: offset 3 and size 2, but the whole has 4}}
  %0 = het.parameter "w" offsets [0, 3] of [4, 4] : tensor<2x2xf32>
  return
}

// -----

func.func @parameter_c3() {
  // expected-error @+1 {{result #0 must be static tensor (2^40 elements at most) of number values, but got 'tensor<?xf32>'}}
  %0 = het.parameter "w" : tensor<?xf32>
  return
}

// -----

func.func @gradient_c2(%a: tensor<2xf32>) {
  // expected-error @+1 {{reaches outside dim 0: offset -1 and size 2, but the whole has 4}}
  het.gradient "w" %a offsets [-1] of [4] : tensor<2xf32>
  return
}

// -----

func.func @dropout_c1(%a: tensor<2xf32>) {
  // expected-error @+1 {{needs a probability of at least 0 and below 1, but p is 1.0}}
  %0 = het.dropout %a {p = 1.0 : f64, op_id = 0 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @dropout_box(%a: tensor<2xf32>) {
  // expected-error @+1 {{has offsets without a global shape}}
  %0 = het.dropout %a {p = 0.5 : f64, op_id = 0 : i64, offsets = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @matmul_c1(%a: tensor<2x3xf32>, %b: tensor<3x4xf16>) {
  // expected-error @+2 {{operands must have one element type, but have 'f32' and 'f16'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.matmul %a, %b contract [1] [0] : (tensor<2x3xf32>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_c2_extent(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{paired dims must have one extent, but lhs dim 1 has 3 and rhs dim 1 has 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.matmul %a, %b contract [1] [1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul_c2_twice(%a: tensor<3x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{dim 0 of rhs is listed twice}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.matmul %a, %b batch [0] [0] contract [1] [0] : (tensor<3x3xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @matmul_c2_range(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{dims 1 and 2 are paired, but the ranks are 2 and 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.matmul %a, %b contract [1] [2] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_c3(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{batch and contract lists must pair up, with at least one contracted dim, but have 0 and 0 batch, 1 and 2 contracted dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.matmul %a, %b contract [1] [0, 1] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_c1(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{dims must be rising dims of the operand of rank 2, but are [1, 0]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.reduce sum %a dims [1, 0] : (tensor<2x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @softmax_c1(%a: tensor<f32>) {
  // expected-error @+2 {{operand must have rank 1 or more, but is 'tensor<f32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.softmax %a : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @layer_norm_rank(%a: tensor<f32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{operand must have rank 1 or more, but is 'tensor<f32>'}}
  %0:3 = het.layer_norm %a, %b, %b {epsilon = 1.0e-5 : f64} : (tensor<f32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @layer_norm_c1(%a: tensor<2x3xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{scale must be [3], the operand's last extent, but is 'tensor<2xf32>'}}
  %0:3 = het.layer_norm %a, %b, %c {epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_c1_bias(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<1x3xf32>) {
  // expected-error @+1 {{bias must be [3], the operand's last extent, but is 'tensor<1x3xf32>'}}
  %0:3 = het.layer_norm %a, %b, %c {epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<1x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_backward_mean(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{mean must have the operand's shape without its last dim, but is 'tensor<3xf32>' for 'tensor<2x3xf32>'}}
  %0:3 = het.layer_norm_backward %a, %b, %b, %c, %a : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @layer_norm_backward_c3(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{gradient must have type 'tensor<2x3xf32>', but has 'tensor<3xf32>'}}
  %0:3 = het.layer_norm_backward %a, %b, %c, %c, %b : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @rms_norm_c1(%a: tensor<2x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{scale must be [3], the operand's last extent, but is 'tensor<4xf32>'}}
  %0:2 = het.rms_norm %a, %b {epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<4xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_norm_backward_rstd(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{rstd must have the operand's shape without its last dim, but is 'tensor<3xf32>' for 'tensor<2x3xf32>'}}
  %0:2 = het.rms_norm_backward %a, %b, %b, %a : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @attention_rank(%a: tensor<2x5x8xf32>) {
  // expected-error @+1 {{query [B, H, S, D], key [B, K, T, D] and value [B, K, T, Dv] do not agree: 'tensor<2x5x8xf32>', 'tensor<2x5x8xf32>', 'tensor<2x5x8xf32>'}}
  %0:2 = het.attention %a, %a, %a {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5xf32>)
  return
}

// -----

func.func @attention_c1(%a: tensor<2x1x5x8xf32>, %b: tensor<2x1x5x4xf32>) {
  // expected-error @+1 {{query [B, H, S, D], key [B, K, T, D] and value [B, K, T, Dv] do not agree: 'tensor<2x1x5x8xf32>', 'tensor<2x1x5x4xf32>', 'tensor<2x1x5x8xf32>'}}
  %0:2 = het.attention %a, %b, %a {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5xf32>)
  return
}

// -----

func.func @attention_c2_count(%a: tensor<2x1x5x8xf32>) {
  // expected-error @+1 {{maps 2 heads, but query has 1}}
  %0:2 = het.attention %a, %a, %a {scale = 1.0 : f64, kv_heads = array<i64: 0, 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5xf32>)
  return
}

// -----

func.func @attention_c2(%a: tensor<2x1x5x8xf32>) {
  // expected-error @+1 {{maps query head 0 to key/value head 1, but there are 1}}
  %0:2 = het.attention %a, %a, %a {scale = 1.0 : f64, kv_heads = array<i64: 1>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5xf32>)
  return
}

// -----

func.func @attention_c3(%a: tensor<2x1x5x8xf32>, %b: tensor<5x4xf32>) {
  // expected-error @+1 {{mask must be f32 or i1 and broadcast to [2, 1, 5, 5], but is 'tensor<5x4xf32>'}}
  %0:2 = het.attention %a, %a, %a, %b {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<5x4xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5xf32>)
  return
}

// -----

func.func @attention_c3_type(%a: tensor<2x1x5x8xf32>, %b: tensor<5x5xi64>) {
  // expected-error @+1 {{mask must be f32 or i1 and broadcast to [2, 1, 5, 5], but is 'tensor<5x5xi64>'}}
  %0:2 = het.attention %a, %a, %a, %b {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<5x5xi64>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5xf32>)
  return
}

// -----

func.func @attention_backward_c4(%a: tensor<2x1x5x8xf32>, %b: tensor<2x1x5xf32>, %c: tensor<2x1x5x4xf32>) {
  // expected-error @+1 {{gradient must have type 'tensor<2x1x5x8xf32>', but has 'tensor<2x1x5x4xf32>'}}
  %0:3 = het.attention_backward %a, %a, %a, %a, %b, %c {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5xf32>, tensor<2x1x5x4xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>)
  return
}

// -----

func.func @rotary_c1(%a: tensor<5x8xf32>, %b: tensor<5x4xf32>) {
  // expected-error @+1 {{operand must be [B, H, S, D], but is 'tensor<5x8xf32>'}}
  %0 = het.rotary %a, %b, %b : (tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @rotary_c1_sin(%a: tensor<1x1x5x8xf32>, %b: tensor<5x4xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{sin must have type 'tensor<5x4xf32>', but has 'tensor<4xf32>'}}
  %0 = het.rotary %a, %b, %c : (tensor<1x1x5x8xf32>, tensor<5x4xf32>, tensor<4xf32>) -> tensor<1x1x5x8xf32>
  return
}

// -----

func.func @rotary_c2(%a: tensor<1x1x5x8xf32>, %b: tensor<5x5xf32>) {
  // expected-error @+1 {{cos and sin must broadcast to [B, H, S, R/2] with R at most 8, but are 'tensor<5x5xf32>' for 'tensor<1x1x5x8xf32>'}}
  %0 = het.rotary %a, %b, %b : (tensor<1x1x5x8xf32>, tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<1x1x5x8xf32>
  return
}

// -----

func.func @embedding_c1(%a: tensor<7xf32>, %b: tensor<2xi64>) {
  // expected-error @+2 {{table must have rank 2, but is 'tensor<7xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.embedding %a, %b : (tensor<7xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @embedding_backward_c1(%a: tensor<2xi64>, %b: tensor<3x4xf32>) {
  // expected-error @+1 {{gradient must be ids' shape followed by one dim, but is 'tensor<3x4xf32>' for 'tensor<2xi64>'}}
  %0 = het.embedding_backward %a, %b {rows = 7 : i64} : (tensor<2xi64>, tensor<3x4xf32>) -> tensor<7x4xf32>
  return
}

// -----

func.func @embedding_backward_rank(%a: tensor<2xi64>, %b: tensor<f32>) {
  // expected-error @+1 {{gradient must have rank 1 or more, but is 'tensor<f32>'}}
  %0 = het.embedding_backward %a, %b {rows = 7 : i64} : (tensor<2xi64>, tensor<f32>) -> tensor<7xf32>
  return
}

// -----

func.func @gather_c1(%a: tensor<4xi64>, %b: tensor<2xi64>) {
  // expected-error @+2 {{dim must be one of the operand's 1, but is 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.gather %a, %b {dim = 1 : i64} : (tensor<4xi64>, tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @gather_nd_c1(%a: tensor<4xi64>, %b: tensor<3x2xi64>) {
  // expected-error @+2 {{index tuples in 'tensor<3x2xi64>' do not fit 'tensor<4xi64>' with 0 batch dims}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.gather_nd %a, %b {batch_dims = 0 : i64} : (tensor<4xi64>, tensor<3x2xi64>) -> tensor<3xi64>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @+2 {{count must not be negative, but is -1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.iota {start = 0 : i64, step = 1 : i64, count = -1 : i64, element = i64} : () -> tensor<1xi64>
  return
}

// -----

func.func @reshape_c1(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{cannot hold 6 elements of 'tensor<2x3xf32>' in [2, 2], which has 4}}
  %0 = het.reshape %a to [2, 2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @reshape_static(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{result #0 must be static tensor (2^40 elements at most) of number values, but got 'tensor<?xf32>'}}
  %0 = het.reshape %a to [-1] : (tensor<2x3xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @transpose_c1(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{permutation must hold each dim of the operand of rank 2 once, but is [0, 0]}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.transpose %a by [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @broadcast_c1(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{cannot broadcast 'tensor<2x3xf32>' to [3, 3]}}
  %0 = het.broadcast %a to [3, 3] : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @slice_c1(%a: tensor<4xf32>) {
  // expected-error @+1 {{reaches outside dim 0 of extent 4: offset 2, size 2, stride 2}}
  %0 = het.slice %a offsets [2] sizes [2] strides [2] : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @slice_c1_rank(%a: tensor<4xf32>) {
  // expected-error @+1 {{needs 1 offsets, sizes and strides, but has 2, 1 and 1}}
  %0 = het.slice %a offsets [0, 0] sizes [2] strides [1] : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @slice_backward_c1(%a: tensor<2xf32>) {
  // expected-error @+1 {{reaches outside dim 0 of extent 4: offset 3, size 2, stride 1}}
  %0 = het.slice_backward %a offsets [3] strides [1] shape [4] : (tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_c1_none() {
  // expected-error @+2 {{needs at least one operand}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "het.concat"() {dim = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @concat_dim(%a: tensor<2xf32>) {
  // expected-error @+2 {{dim must be one of the operands' 1, but is 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.concat %a, %a {dim = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_c1(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+2 {{operands must agree but for dim 0, but are 'tensor<2x3xf32>' and 'tensor<2x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.concat %a, %b {dim = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @cross_entropy_c1(%a: tensor<2x3xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{labels must have the operand's shape without its last dim, but is 'tensor<3xi64>' for 'tensor<2x3xf32>'}}
  %0:2 = het.cross_entropy %a, %b {ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @cross_entropy_part_c1(%a: tensor<2x3xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{labels must have the operand's shape without its last dim, but is 'tensor<3xi64>' for 'tensor<2x3xf32>'}}
  %0:2 = het.cross_entropy_part %a, %b {first_class = 0 : i64, classes = 3 : i64, ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<3xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @cross_entropy_part_c2(%a: tensor<2x3xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{has 3 classes from 3 on, but there are 5}}
  %0:2 = het.cross_entropy_part %a, %b {first_class = 3 : i64, classes = 5 : i64, ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @embedding_c2_together(%a: tensor<7x4xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{has first_row without all_rows}}
  %0 = het.embedding %a, %b {first_row = 3 : i64} : (tensor<7x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @embedding_c2(%a: tensor<7x4xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{has 7 rows from -1 on, but there are 9}}
  %0 = het.embedding %a, %b {first_row = -1 : i64, all_rows = 9 : i64} : (tensor<7x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @cross_entropy_rank(%a: tensor<f32>, %b: tensor<i64>) {
  // expected-error @+1 {{operand must have rank 1 or more, but is 'tensor<f32>'}}
  %0:2 = het.cross_entropy %a, %b {ignore_index = -100 : i64} : (tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @cross_entropy_backward_c1(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %c: tensor<3xf32>, %d: tensor<f32>) {
  // expected-error @+1 {{log_sum_exp must have the operand's shape without its last dim, but is 'tensor<3xf32>' for 'tensor<2x3xf32>'}}
  %0 = het.cross_entropy_backward %a, %b, %c, %d {ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<2xi64>, tensor<3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @unit(%a: tensor<2xf32>) {
  // expected-error @+1 {{attribute 'het.unit' must be a string, but is 3 : i64}}
  %0 = het.neg %a {het.unit = 3} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{argument 0: 'het.role' must be "input", "labels" or "inverse_label_count", but is "weights"}}
func.func @role(%a: tensor<2xf32> {het.role = "weights"}) {
  return
}

// -----

func.func @of_microbatch(%a: tensor<2xf32>) {
  // expected-error @+1 {{attribute 'het.of_microbatch' must be a unit attribute, but is 3 : i64}}
  %0 = het.reduce mean %a dims [0] {het.of_microbatch = 3} : (tensor<2xf32>) -> tensor<f32>
  return
}

// -----

// expected-error @+1 {{result 0: 'het.loss_factor' must be an f64, but is 3 : i64}}
func.func @loss_factor(%a: tensor<f32>) -> (tensor<f32> {het.loss_factor = 3}) {
  return %a : tensor<f32>
}

// -----

// expected-error @+1 {{result 0: 'het.loss_factor' is for 'tensor<f32>', found 'tensor<2xf32>'}}
func.func @loss_factor_of_vector(%a: tensor<2xf32>) -> (tensor<2xf32> {het.loss_factor = 0.5}) {
  return %a : tensor<2xf32>
}

//===----------------------------------------------------------------------===//
// Constraints on result types: what inference finds stands against what is
// written.
//===----------------------------------------------------------------------===//

// -----

func.func @constant_c1() {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "het.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<3xf32>
  return
}

// -----

func.func @unary_c1(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.neg %a : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @not_c1(%a: tensor<2xi1>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xi1>' are incompatible with return type(s) of operation 'tensor<3xi1>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.not %a : (tensor<2xi1>) -> tensor<3xi1>
  return
}

// -----

func.func @is_nan_c1(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xi1>' are incompatible with return type(s) of operation 'tensor<3xi1>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.is_nan %a : (tensor<2xf32>) -> tensor<3xi1>
  return
}

// -----

func.func @cast_c1(%a: tensor<2xi64>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.cast %a {to = f32} : (tensor<2xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @gelu_c1(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.gelu erf %a : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @dropout_c2(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.dropout %a {p = 0.5 : f64, op_id = 0 : i64} : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @softmax_c1_type(%a: tensor<2xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.softmax %a : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @layer_norm_c2(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2x3xf32>', 'tensor<2xf32>', 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<2x3xf32>', 'tensor<3xf32>', 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = het.layer_norm %a, %b, %b {epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_norm_c2(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2x3xf32>', 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<2x3xf32>', 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = het.rms_norm %a, %b {epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @embedding_c1_type(%a: tensor<7x4xf32>, %b: tensor<2xi64>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2x4xf32>' are incompatible with return type(s) of operation 'tensor<2x7xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.embedding %a, %b : (tensor<7x4xf32>, tensor<2xi64>) -> tensor<2x7xf32>
  return
}

// -----

func.func @embedding_backward_c1_type(%a: tensor<2xi64>, %b: tensor<2x4xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<7x4xf32>' are incompatible with return type(s) of operation 'tensor<6x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.embedding_backward %a, %b {rows = 7 : i64} : (tensor<2xi64>, tensor<2x4xf32>) -> tensor<6x4xf32>
  return
}

//===----------------------------------------------------------------------===//
// Constraints that adjoints share with their ops.
//===----------------------------------------------------------------------===//

// -----

func.func @logical_c1(%a: tensor<2xi1>, %b: tensor<3xi1>) {
  // expected-error @+2 {{shapes [2] and [3] do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.and %a, %b : (tensor<2xi1>, tensor<3xi1>) -> tensor<3xi1>
  return
}

// -----

func.func @compare_c2(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{shapes [2] and [3] do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.compare lt %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xi1>
  return
}

// -----

func.func @silu_backward_c1(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{operand and gradient must have one type, but have 'tensor<2xf32>' and 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.silu_backward %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @softmax_backward_c1(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error @+2 {{operand and gradient must have one type, but have 'tensor<2xf32>' and 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = het.softmax_backward %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gradient_c1(%a: tensor<2xf32>) {
  // expected-error @+1 {{has offsets without a global shape}}
  "het.gradient"(%a) {name = "w", offsets = array<i64: 0>} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @gradient_c3(%a: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be static tensor (2^40 elements at most) of f16, bf16, f32 or f64 values, but got 'tensor<?xf32>'}}
  het.gradient "w" %a : tensor<?xf32>
  return
}

// -----

func.func @layer_norm_backward_c1(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{scale must be [3], the operand's last extent, but is 'tensor<2xf32>'}}
  %0:3 = het.layer_norm_backward %a, %b, %b, %b, %a : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_norm_backward_c1(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{scale must be [3], the operand's last extent, but is 'tensor<2xf32>'}}
  %0:2 = het.rms_norm_backward %a, %b, %b, %a : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @rms_norm_backward_c3(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{gradient must have type 'tensor<2x3xf32>', but has 'tensor<3xf32>'}}
  %0:2 = het.rms_norm_backward %a, %b, %c, %b : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<2x1x5x8xf32>, %k: tensor<2x1x5x4xf32>, %v: tensor<2x1x5x8xf32>, %r: tensor<2x1x5x8xf32>, %l: tensor<2x1x5xf32>, %g: tensor<2x1x5x8xf32>) {
  // expected-error @+1 {{query [B, H, S, D], key [B, K, T, D] and value [B, K, T, Dv] do not agree: 'tensor<2x1x5x8xf32>', 'tensor<2x1x5x4xf32>', 'tensor<2x1x5x8xf32>'}}
  %0:3 = het.attention_backward %q, %k, %v, %r, %l, %g {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5x8xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<2x1x5x8xf32>, %k: tensor<2x1x5x8xf32>, %v: tensor<2x1x5x8xf32>, %r: tensor<2x1x5x8xf32>, %l: tensor<2x1x5xf32>, %g: tensor<2x1x5x8xf32>) {
  // expected-error @+1 {{maps 2 heads, but query has 1}}
  %0:3 = het.attention_backward %q, %k, %v, %r, %l, %g {scale = 1.0 : f64, kv_heads = array<i64: 0, 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>)
  return
}

// -----

func.func @attention_backward_c5(%q: tensor<2x1x5x8xf32>, %k: tensor<2x1x5x8xf32>, %v: tensor<2x1x5x8xf32>, %r: tensor<2x1x5x8xf32>, %l: tensor<2x5xf32>, %g: tensor<2x1x5x8xf32>) {
  // expected-error @+1 {{log_sum_exp must be [2, 1, 5], but is 'tensor<2x5xf32>'}}
  %0:3 = het.attention_backward %q, %k, %v, %r, %l, %g {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x5xf32>, tensor<2x1x5x8xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>)
  return
}

// -----

func.func @attention_backward_c5_result(%q: tensor<2x1x5x8xf32>, %k: tensor<2x1x5x8xf32>, %v: tensor<2x1x5x8xf32>, %r: tensor<2x1x5x4xf32>, %l: tensor<2x1x5xf32>, %g: tensor<2x1x5x4xf32>) {
  // expected-error @+1 {{result must be [2, 1, 5, 8], but is 'tensor<2x1x5x4xf32>'}}
  %0:3 = het.attention_backward %q, %k, %v, %r, %l, %g {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5xf32>, tensor<2x1x5x4xf32>) -> (tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x8xf32>)
  return
}

// -----

func.func @cross_entropy_backward_c2(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %c: tensor<2xf32>) {
  // expected-error @+1 {{operand #3 must be 0D tensor of 32-bit float values, but got 'tensor<2xf32>'}}
  %0 = het.cross_entropy_backward %a, %b, %c, %c {ignore_index = -100 : i64} : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @arg_reduce_c1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{finds the max or the min, not the sum}}
  %0 = het.arg_reduce sum %x dim 1 : (tensor<2x3xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @tensor_static(%a: tensor<?x3xf32>) {
  // expected-error @+1 {{operand #0 must be static tensor (2^40 elements at most) of number values, but got 'tensor<?x3xf32>'}}
  %0 = het.exp %a : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @arg_reduce_c2(%x: tensor<2x0xf32>) {
  // expected-error @+1 {{looks for a place in no elements: dim 1 of 'tensor<2x0xf32>' is empty}}
  %0 = het.arg_reduce max %x dim 1 : (tensor<2x0xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @tensor_element(%a: tensor<2xindex>) {
  // expected-error @+1 {{operand #0 must be static tensor (2^40 elements at most) of number values, but got 'tensor<2xindex>'}}
  %0 = het.neg %a : (tensor<2xindex>) -> tensor<2xindex>
  return
}

// -----

func.func @cumulative_sum_c2(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{dim must be one of the operand's 2, but is 2}}
  %0 = het.cumulative_sum %x dim 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @tensor_size(%a: tensor<4294967296x4294967296xf32>) {
  // expected-error @+1 {{operand #0 must be static tensor (2^40 elements at most) of number values}}
  %0 = het.neg %a : (tensor<4294967296x4294967296xf32>) -> tensor<4294967296x4294967296xf32>
  return
}

// -----

func.func @top_k_c1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{takes 4 of the 3 elements of a row}}
  %0, %1 = het.top_k %x {k = 4 : i64} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return
}

// -----

func.func @parameter_c2_whole() {
  // expected-error @+1 {{is of a whole of shape [9223372036854775807], wanted extents that are not negative and at most 1099511627776 elements}}
  %0 = het.parameter "w" offsets [0] of [9223372036854775807] : tensor<2xf32>
  return
}

// -----

func.func @scatter_nd_c1(%x: tensor<4xf32>, %i: tensor<3x2xi64>, %u: tensor<3xf32>) {
  // expected-error @+1 {{indexes 'tensor<4xf32>' by tuples in 'tensor<3x2xi64>'}}
  %0 = het.scatter_nd replace %x, %i, %u : (tensor<4xf32>, tensor<3x2xi64>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @slice_overflow(%a: tensor<5xf32>) {
  // expected-error @+1 {{reaches outside dim 0 of extent 5: offset 1, size 3, stride 9223372036854775807}}
  %0 = het.slice %a offsets [1] sizes [3] strides [9223372036854775807] : (tensor<5xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @scatter_nd_c2(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) {
  // expected-error @+1 {{updates must be 'tensor<3x5xf32>', but are 'tensor<3x4xf32>'}}
  %0 = het.scatter_nd replace %x, %i, %u : (tensor<4x5xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<4x5xf32>
  return
}

// -----

// expected-error @+1 {{argument 0: 'het.batch_dim' is 2, which is no dim of 'tensor<2x3xf32>'}}
func.func @batch_dim(%a: tensor<2x3xf32> {het.batch_dim = 2 : i64}) {
  return
}

// -----

// expected-error @+1 {{result 0: 'het.batch_dim' must be an i64 of -1 or more, but is -2 : i64}}
func.func @batch_dim_of_a_result(%a: tensor<2x3xf32>) -> (tensor<2x3xf32> {het.batch_dim = -2 : i64}) {
  return %a : tensor<2x3xf32>
}

// -----

// expected-error @+1 {{argument 0: 'het.kind' must be "file", "tokens", "labels", "ones", "zeros" or "arange", but is "noise"}}
func.func @kind(%a: tensor<2x3xf32> {het.kind = "noise"}) {
  return
}

// -----

// expected-error @+1 {{attribute 'het.batch_size' must be an i64 of 1 or more, but is 0 : i64}}
func.func @batch_size() attributes {het.batch_size = 0 : i64} {
  return
}

// -----

func.func @phase(%a: tensor<2xf32>) {
  // expected-error @+1 {{attribute 'het.phase' must be "backward", "reduce" or "update", but is "forward"}}
  %0 = het.neg %a {het.phase = "forward"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}
