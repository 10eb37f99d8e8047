// RUN: autohet-opt %s --het-fuse-attention --split-input-file | FileCheck %s

// Keys and values in the order that the projection left them in; the scale as
// its root on either side; causality added as a constant that finfo.min fills.
// CHECK-LABEL: func @causal
// CHECK-SAME: (%[[Q:.*]]: tensor<2x2x3x4xf32>, %[[K:.*]]: tensor<2x3x2x4xf32>, %[[V:.*]]: tensor<2x3x2x4xf32>)
// CHECK-DAG: %[[KT:.*]] = het.transpose %[[K]] by [0, 2, 1, 3]
// CHECK-DAG: %[[VT:.*]] = het.transpose %[[V]] by [0, 2, 1, 3]
// CHECK: %[[Y:.*]], %{{.*}} = het.attention %[[Q]], %[[KT]], %[[VT]] {causal, kv_heads = array<i64: 0, 1>, scale = 2.5{{0*}}e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @causal(%q: tensor<2x2x3x4xf32>, %k: tensor<2x3x2x4xf32>, %v: tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32> {
  %half = het.constant dense<0.5> : tensor<f32>
  %mask = het.constant dense<[[0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %qs = het.mul %q, %half : (tensor<2x2x3x4xf32>, tensor<f32>) -> tensor<2x2x3x4xf32>
  %ks = het.mul %half, %k : (tensor<f32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %s = het.matmul %qs, %ks batch [0, 1] [0, 2] contract [3] [3] : (tensor<2x2x3x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x2x3x3xf32>
  %m = het.add %s, %mask : (tensor<2x2x3x3xf32>, tensor<3x3xf32>) -> tensor<2x2x3x3xf32>
  %p = het.softmax %m : (tensor<2x2x3x3xf32>) -> tensor<2x2x3x3xf32>
  %y = het.matmul %p, %v batch [0, 1] [0, 2] contract [3] [1] : (tensor<2x2x3x3xf32>, tensor<2x3x2x4xf32>) -> tensor<2x2x3x4xf32>
  return %y : tensor<2x2x3x4xf32>
}

// -----

// Causality and padding with -inf: the attribute and the padding mask; rows
// that see nothing give 0; dropout on the probabilities.
// CHECK-LABEL: func @padded
// CHECK: %[[Y:.*]], %{{.*}} = het.attention %arg0, %arg1, %arg2, %arg3 {causal, dropout_op_id = 7 : i64, dropout_p = 1.000000e-01 : f64, kv_heads = array<i64: 0>, scale = 1.250000e-01 : f64, zero_empty_rows}
// CHECK-SAME: tensor<2x1x1x2xi1>
// CHECK-NEXT: return %[[Y]]
func.func @padded(%q: tensor<2x1x2x4xf32>, %k: tensor<2x1x2x4xf32>, %v: tensor<2x1x2x4xf32>, %pad: tensor<2x1x1x2xi1>) -> tensor<2x1x2x4xf32> {
  %triangle = het.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %low = het.constant dense<0xFF800000> : tensor<f32>
  %zero = het.constant dense<0.0> : tensor<f32>
  %eight = het.constant dense<8.0> : tensor<f32>
  %c = het.and %triangle, %pad : (tensor<2x2xi1>, tensor<2x1x1x2xi1>) -> tensor<2x1x2x2xi1>
  %mask = het.select %c, %zero, %low : (tensor<2x1x2x2xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x2x2xf32>
  %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : (tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x2xf32>
  %d = het.div %s, %eight : (tensor<2x1x2x2xf32>, tensor<f32>) -> tensor<2x1x2x2xf32>
  %m = het.add %mask, %d : (tensor<2x1x2x2xf32>, tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %p = het.softmax %m : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %n = het.is_nan %p : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xi1>
  %z = het.select %n, %zero, %p : (tensor<2x1x2x2xi1>, tensor<f32>, tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %o = het.dropout %z {p = 0.1 : f64, op_id = 7 : i64} : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %y = het.matmul %o, %v batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x1x2x2xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x4xf32>
  return %y : tensor<2x1x2x4xf32>
}

// -----

// The same with finfo.min: a row that padding hides as a whole is the mean of
// all values, so the mask stays as numbers.
// CHECK-LABEL: func @finite_padding
// CHECK: %[[M:.*]] = het.select
// CHECK: het.attention %arg0, %arg1, %arg2, %[[M]] {kv_heads = array<i64: 0>, scale = 1.000000e+00 : f64}
func.func @finite_padding(%q: tensor<2x1x2x4xf32>, %k: tensor<2x1x2x4xf32>, %v: tensor<2x1x2x4xf32>, %pad: tensor<2x1x1x2xi1>) -> tensor<2x1x2x4xf32> {
  %triangle = het.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1>
  %low = het.constant dense<-3.40282347E+38> : tensor<f32>
  %zero = het.constant dense<0.0> : tensor<f32>
  %c = het.and %triangle, %pad : (tensor<2x2xi1>, tensor<2x1x1x2xi1>) -> tensor<2x1x2x2xi1>
  %mask = het.select %c, %zero, %low : (tensor<2x1x2x2xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x2x2xf32>
  %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : (tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x2xf32>
  %m = het.add %s, %mask : (tensor<2x1x2x2xf32>, tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %p = het.softmax %m : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %y = het.matmul %p, %v batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x1x2x2xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x4xf32>
  return %y : tensor<2x1x2x4xf32>
}

// -----

// masked_fill, scaled afterwards; no heads.
// CHECK-LABEL: func @masked_fill
// CHECK-DAG: %[[Q:.*]] = het.reshape %arg0 to [2, 1, 2, 4]
// CHECK-DAG: %[[K:.*]] = het.reshape %arg1 to [2, 1, 2, 4]
// CHECK-DAG: %[[V:.*]] = het.reshape %arg2 to [2, 1, 2, 4]
// CHECK-DAG: %[[N:.*]] = het.not %arg3
// CHECK-DAG: %[[M:.*]] = het.reshape %[[N]] to [2, 1, 1, 2]
// CHECK: %[[Y:.*]], %{{.*}} = het.attention %[[Q]], %[[K]], %[[V]], %[[M]] {kv_heads = array<i64: 0>, scale = 5.000000e-01 : f64}
// CHECK: %[[R:.*]] = het.reshape %[[Y]] to [2, 2, 4]
// CHECK: return %[[R]]
func.func @masked_fill(%q: tensor<2x2x4xf32>, %k: tensor<2x2x4xf32>, %v: tensor<2x2x4xf32>, %hidden: tensor<2x1x2xi1>) -> tensor<2x2x4xf32> {
  %low = het.constant dense<0xFF800000> : tensor<f32>
  %half = het.constant dense<0.5> : tensor<f32>
  %s = het.matmul %q, %k batch [0] [0] contract [2] [2] : (tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x2xf32>
  %f = het.select %hidden, %low, %s : (tensor<2x1x2xi1>, tensor<f32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %m = het.mul %f, %half : (tensor<2x2x2xf32>, tensor<f32>) -> tensor<2x2x2xf32>
  %p = het.softmax %m : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %y = het.matmul %p, %v batch [0] [0] contract [2] [1] : (tensor<2x2x2xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  return %y : tensor<2x2x4xf32>
}

// -----

// Repeated heads around opset 23's op, and a mask that contains causality.
// CHECK-LABEL: func @repeated_heads
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x2x3x8xf32>, %[[V:.*]]: tensor<2x2x3x8xf32>, %[[P:.*]]: tensor<2x1x1x3xi1>
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = het.attention %[[Q]], %[[K]], %[[V]], %[[P]] {causal, kv_heads = array<i64: 0, 0, 1, 1>, scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @repeated_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>, %pad: tensor<2x1x1x3xi1>) -> tensor<2x4x3x8xf32> {
  %triangle = het.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %mask = het.and %triangle, %pad : (tensor<1x1x3x3xi1>, tensor<2x1x1x3xi1>) -> tensor<2x1x3x3xi1>
  %ku = het.reshape %k to [2, 2, 1, 3, 8] : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
  %kb = het.broadcast %ku to [2, 2, 2, 3, 8] : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %kr = het.reshape %kb to [2, 4, 3, 8] : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
  %vu = het.reshape %v to [2, 2, 1, 3, 8] : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
  %vb = het.broadcast %vu to [2, 2, 2, 3, 8] : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %vr = het.reshape %vb to [2, 4, 3, 8] : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
  %y, %l = het.attention %q, %kr, %vr, %mask {scale = 0.25 : f64, kv_heads = array<i64: 0, 1, 2, 3>}
    : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x1x3x3xi1>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Keys that were transposed after their heads were repeated; the heads lie in
// turns (h mod 2), and one key head for all (broadcast in place).
// CHECK-LABEL: func @other_repetitions
// CHECK: het.attention %arg0, %arg1, %arg2 {kv_heads = array<i64: 0, 1, 0, 1>
// CHECK: het.attention %arg0, %arg3, %arg3 {kv_heads = array<i64: 0, 0, 0, 0>
func.func @other_repetitions(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>, %one: tensor<2x1x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) {
  %ku = het.reshape %k to [2, 1, 2, 3, 8] : (tensor<2x2x3x8xf32>) -> tensor<2x1x2x3x8xf32>
  %kb = het.broadcast %ku to [2, 2, 2, 3, 8] : (tensor<2x1x2x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %kr = het.reshape %kb to [2, 4, 3, 8] : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
  %kt = het.transpose %kr by [0, 1, 3, 2] : (tensor<2x4x3x8xf32>) -> tensor<2x4x8x3xf32>
  %vu = het.reshape %v to [2, 1, 2, 3, 8] : (tensor<2x2x3x8xf32>) -> tensor<2x1x2x3x8xf32>
  %vb = het.broadcast %vu to [2, 2, 2, 3, 8] : (tensor<2x1x2x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %vr = het.reshape %vb to [2, 4, 3, 8] : (tensor<2x2x2x3x8xf32>) -> tensor<2x4x3x8xf32>
  %s = het.matmul %q, %kt batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
  %p = het.softmax %s : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %y = het.matmul %p, %vr batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  %ob = het.broadcast %one to [2, 4, 3, 8] : (tensor<2x1x3x8xf32>) -> tensor<2x4x3x8xf32>
  %z, %l = het.attention %q, %ob, %ob {scale = 0.25 : f64, kv_heads = array<i64: 0, 1, 2, 3>}
    : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y, %z : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>
}

// -----

// A position bias is trained: het.attention has no gradient for it.
// CHECK-LABEL: func @trained_bias
// CHECK-NOT: het.attention
func.func @trained_bias(%q: tensor<2x1x2x4xf32>, %k: tensor<2x1x2x4xf32>, %v: tensor<2x1x2x4xf32>) -> tensor<2x1x2x4xf32> {
  %bias = het.parameter "relative_attention_bias" : tensor<2x2xf32>
  %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : (tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x2xf32>
  %m = het.add %s, %bias : (tensor<2x1x2x2xf32>, tensor<2x2xf32>) -> tensor<2x1x2x2xf32>
  %p = het.softmax %m : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %y = het.matmul %p, %v batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x1x2x2xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x4xf32>
  return %y : tensor<2x1x2x4xf32>
}

// -----

// -10000 does not hide for certain, in a condition that padding decides.
// CHECK-LABEL: func @mild_fill
// CHECK-NOT: het.attention
func.func @mild_fill(%q: tensor<2x1x2x4xf32>, %k: tensor<2x1x2x4xf32>, %v: tensor<2x1x2x4xf32>, %pad: tensor<2x1x1x2xi1>) -> tensor<2x1x2x4xf32> {
  %low = het.constant dense<-1.0e+04> : tensor<f32>
  %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : (tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x2xf32>
  %m = het.select %pad, %s, %low : (tensor<2x1x1x2xi1>, tensor<2x1x2x2xf32>, tensor<f32>) -> tensor<2x1x2x2xf32>
  %p = het.softmax %m : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %y = het.matmul %p, %v batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x1x2x2xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x4xf32>
  return %y : tensor<2x1x2x4xf32>
}

// -----

// Dims of one, which packed projections leave behind, do not hide it.
// CHECK-LABEL: func @unit_dims
// CHECK: %[[Y:.*]], %{{.*}} = het.attention
// CHECK: return %[[Y]]
func.func @unit_dims(%q: tensor<2x4x3x8xf32>, %kv: tensor<1x3x2x4x8xf32>) -> tensor<2x4x3x8xf32> {
  %c = het.constant dense<0.25> : tensor<f32>
  %t = het.transpose %kv by [2, 3, 0, 1, 4] : (tensor<1x3x2x4x8xf32>) -> tensor<2x4x1x3x8xf32>
  %v = het.reshape %t to [2, 4, 3, 8] : (tensor<2x4x1x3x8xf32>) -> tensor<2x4x3x8xf32>
  %s = het.matmul %q, %kv batch [0, 1] [2, 3] contract [3] [4] : (tensor<2x4x3x8xf32>, tensor<1x3x2x4x8xf32>) -> tensor<2x4x3x1x3xf32>
  %r = het.reshape %s to [2, 4, 3, 3] : (tensor<2x4x3x1x3xf32>) -> tensor<2x4x3x3xf32>
  %m = het.mul %r, %c : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %p = het.softmax %m : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %y = het.matmul %p, %v batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Causality by finfo.min beside a padding mask by finfo.min: in a row whose
// causal keys are all padding, hidden keys of either kind weigh the same.
// CHECK-LABEL: func @finite_twice
// CHECK: %[[M:.*]] = het.add
// CHECK: het.attention %arg0, %arg1, %arg2, %[[M]] {kv_heads = array<i64: 0>, scale = 1.000000e+00 : f64}
func.func @finite_twice(%q: tensor<2x1x2x4xf32>, %k: tensor<2x1x2x4xf32>, %v: tensor<2x1x2x4xf32>, %pad: tensor<2x1x1x2xi1>) -> tensor<2x1x2x4xf32> {
  %zero = het.constant dense<0.0> : tensor<f32>
  %low = het.constant dense<-3.40282347E+38> : tensor<f32>
  %triangle = het.constant dense<[[[[true, false], [true, true]]]]> : tensor<1x1x2x2xi1>
  %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : (tensor<2x1x2x4xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x2xf32>
  %c = het.select %triangle, %s, %low : (tensor<1x1x2x2xi1>, tensor<2x1x2x2xf32>, tensor<f32>) -> tensor<2x1x2x2xf32>
  %m = het.select %pad, %zero, %low : (tensor<2x1x1x2xi1>, tensor<f32>, tensor<f32>) -> tensor<2x1x1x2xf32>
  %a = het.add %c, %m : (tensor<2x1x2x2xf32>, tensor<2x1x1x2xf32>) -> tensor<2x1x2x2xf32>
  %p = het.softmax %a : (tensor<2x1x2x2xf32>) -> tensor<2x1x2x2xf32>
  %y = het.matmul %p, %v batch [0, 1] [0, 1] contract [3] [2] : (tensor<2x1x2x2xf32>, tensor<2x1x2x4xf32>) -> tensor<2x1x2x4xf32>
  return %y : tensor<2x1x2x4xf32>
}
