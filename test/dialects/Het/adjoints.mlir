// The form of adjoints; their values are tested by test/unit/adjoints.
//
// RUN: autohet-opt %s --het-differentiate --split-input-file --verify-diagnostics | FileCheck %s

// No gradient of a weight, in whichever layout it is, needs a transpose.
// CHECK-LABEL: func.func @layouts
// CHECK-NOT: het.transpose
// CHECK: return
func.func @layouts(%x: tensor<2x3x4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %w = het.parameter "nk" : tensor<5x4xf32>
  %v = het.parameter "kn" : tensor<5x6xf32>
  %y = het.matmul %x, %w contract [2] [1] : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
  %z = het.matmul %y, %v contract [2] [0] : (tensor<2x3x5xf32>, tensor<5x6xf32>) -> tensor<2x3x6xf32>
  %loss = het.reduce sum %z dims [0, 1, 2] : (tensor<2x3x6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Attention from two products: only gradients of operands whose batch dims are
// not in front need their dims put in order.
// CHECK-LABEL: func.func @batches
func.func @batches() -> (tensor<f32> {het.name = "loss"}) {
  %q = het.parameter "q" : tensor<2x4x3x5xf32>
  %k = het.parameter "k" : tensor<2x6x3x5xf32>
  %s = het.matmul %q, %k batch [0, 2] [0, 2] contract [3] [3] : (tensor<2x4x3x5xf32>, tensor<2x6x3x5xf32>) -> tensor<2x3x4x6xf32>
  %loss = het.reduce sum %s dims [0, 1, 2, 3] : (tensor<2x3x4x6xf32>) -> tensor<f32>
  // CHECK: %[[DQ:.*]] = het.matmul %[[G:.*]], %{{.*}} batch [0, 1] [0, 2] contract [3] [1] {{.*}} -> tensor<2x3x4x5xf32>
  // CHECK: het.transpose %[[DQ]] by [0, 2, 1, 3]
  // CHECK: %[[DK:.*]] = het.matmul %[[G]], %{{.*}} batch [0, 1] [0, 2] contract [2] [1] {{.*}} -> tensor<2x3x6x5xf32>
  // CHECK: het.transpose %[[DK]] by [0, 2, 1, 3]
  return %loss : tensor<f32>
}

// -----

// Broadcasting is undone by one sum.
// CHECK-LABEL: func.func @bias
func.func @bias(%x: tensor<2x3x4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %b = het.parameter "b" : tensor<3x1xf32>
  %y = het.add %x, %b : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %loss = het.reduce sum %y dims [0, 1, 2] : (tensor<2x3x4xf32>) -> tensor<f32>
  // CHECK: %[[S:.*]] = het.reduce sum %{{.*}} dims [0, 2] {{.*}} -> tensor<3xf32>
  // CHECK: het.reshape %[[S]] to [3, 1]
  return %loss : tensor<f32>
}

// -----

// The adjoint of dropout is dropout with the same mask.
// CHECK-LABEL: func.func @dropout
func.func @dropout() -> (tensor<f32> {het.name = "loss"}) {
  %x = het.parameter "x" : tensor<4xf32>
  %y = het.dropout %x {p = 0.1 : f64, op_id = 7 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %loss = het.reduce sum %y dims [0] : (tensor<4xf32>) -> tensor<f32>
  // CHECK: %[[DX:.*]] = het.dropout %{{.*}}het.phase = "backward", op_id = 7 : i64, p = 1.000000e-01
  // CHECK: het.gradient "x" %[[DX]]
  return %loss : tensor<f32>
}

// -----

// Equals share the gradient of a maximum, as in PyTorch.
// CHECK-LABEL: func.func @ties
func.func @ties(%y: tensor<4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %x = het.parameter "x" : tensor<4xf32>
  %m = het.max %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = het.reduce sum %m dims [0] : (tensor<4xf32>) -> tensor<f32>
  // CHECK-DAG: %[[EQ:.*]] = het.compare eq %[[X:.*]], %arg0
  // CHECK-DAG: %[[HALF:.*]] = het.constant {{.*}}dense<5.000000e-01>
  // CHECK-DAG: %[[SHARED:.*]] = het.select %[[EQ]]
  // CHECK-DAG: %[[LT:.*]] = het.compare lt %[[X]], %arg0
  // CHECK: het.select %[[LT]], %{{.*}}, %[[SHARED]]
  return %loss : tensor<f32>
}

// -----

func.func @prod() -> (tensor<f32> {het.name = "loss"}) {
  %x = het.parameter "x" : tensor<4xf32>
  // expected-error @+1 {{has no adjoint for prod, and a trained parameter is reached through it}}
  %loss = het.reduce prod %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @mod(%x: tensor<4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %y = het.parameter "y" : tensor<4xf32>
  // expected-error @+1 {{has no adjoint by its right operand, which depends on a trained parameter}}
  %m = het.mod %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %loss = het.reduce sum %m dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @mean(%g: tensor<4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %x = het.parameter "x" : tensor<3x4xf32>
  // expected-error @+1 {{has no adjoint by its mean, on which the loss depends}}
  %y:3 = het.layer_norm %x, %g, %g {epsilon = 1.0e-5 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %loss = het.reduce sum %y#1 dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @rstd(%g: tensor<4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %x = het.parameter "x" : tensor<3x4xf32>
  // expected-error @+1 {{has no adjoint by its rstd, on which the loss depends}}
  %y:2 = het.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
  %loss = het.reduce sum %y#1 dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @log_sum_exp(%l: tensor<3xi64>) -> (tensor<f32> {het.name = "loss"}) {
  %x = het.parameter "x" : tensor<3x4xf32>
  // expected-error @+1 {{has no adjoint by its log_sum_exp, on which the loss depends}}
  %y:2 = het.cross_entropy %x, %l {ignore_index = -100 : i64} : (tensor<3x4xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  %loss = het.reduce sum %y#1 dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @mask(%q: tensor<1x1x3x4xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %m = het.parameter "bias" : tensor<3x3xf32>
  // expected-error @+1 {{has no adjoint for its mask, which depends on a trained parameter}}
  %y:2 = het.attention %q, %q, %q, %m {scale = 1.0 : f64, kv_heads = array<i64: 0>} : (tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<1x1x3x4xf32>, tensor<3x3xf32>) -> (tensor<1x1x3x4xf32>, tensor<1x1x3xf32>)
  %loss = het.reduce sum %y#0 dims [0, 1, 2, 3] : (tensor<1x1x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @rotary(%x: tensor<1x1x3x4xf32>, %s: tensor<3x2xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %c = het.parameter "cos" : tensor<3x2xf32>
  // expected-error @+1 {{has no adjoint for its cos, which depends on a trained parameter}}
  %y = het.rotary %x, %c, %s : (tensor<1x1x3x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x1x3x4xf32>
  %loss = het.reduce sum %y dims [0, 1, 2, 3] : (tensor<1x1x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
