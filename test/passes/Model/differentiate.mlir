// RUN: autohet-opt %s --het-differentiate --split-input-file --verify-diagnostics | FileCheck %s

// The backward half is the forward half reversed; a gradient ends in its
// het.gradient as soon as it is complete.
// CHECK-LABEL: func.func @mlp
func.func @mlp(%x: tensor<4x3xf32>, %n: tensor<f32>)
    -> (tensor<f32> {het.name = "loss"}, tensor<4x2xf32> {het.name = "y"}) {
  %w1 = het.parameter "w1" : tensor<5x3xf32>
  %w2 = het.parameter "w2" : tensor<5x2xf32>
  // CHECK: %[[W1:.*]] = het.parameter "w1" {het.id = 0 : i64}
  // CHECK-NEXT: %[[H:.*]] = het.matmul %{{.*}}, %[[W1]] contract [1] [1] {het.id = 1 : i64}
  %h = het.matmul %x, %w1 contract [1] [1] : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %a = het.gelu erf %h : (tensor<4x5xf32>) -> tensor<4x5xf32>
  // CHECK: %[[W2:.*]] = het.parameter "w2"
  %y = het.matmul %a, %w2 contract [1] [0] : (tensor<4x5xf32>, tensor<5x2xf32>) -> tensor<4x2xf32>
  %s = het.reduce sum %y dims [0, 1] : (tensor<4x2xf32>) -> tensor<f32>
  %loss = het.mul %s, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[LOSS:.*]] = het.mul
  // The 1 that starts the chain leaves no product behind.
  // CHECK-NEXT: %[[R:.*]] = het.reshape %arg1 to [1, 1] {het.adjoint_of = 5 : i64, het.phase = "backward"}
  // CHECK-NEXT: %[[DY:.*]] = het.broadcast %[[R]] to [4, 2]
  // CHECK-NEXT: %[[DA:.*]] = het.matmul %[[DY]], %[[W2]] contract [1] [1]
  // CHECK-NEXT: %[[DW2:.*]] = het.matmul %{{.*}}, %[[DY]] contract [0] [0] {{.*}} -> tensor<5x2xf32>
  // CHECK-NEXT: het.gradient "w2" %[[DW2]]
  // CHECK-NEXT: %[[DH:.*]] = het.gelu_backward erf %[[H]], %[[DA]]
  // CHECK-NEXT: %[[DW1:.*]] = het.matmul %[[DH]], %arg0 contract [0] [0] {{.*}} -> tensor<5x3xf32>
  // CHECK-NEXT: het.gradient "w1" %[[DW1]]
  // The input is not trained: it has no gradient.
  // CHECK-NEXT: return %[[LOSS]]
  return %loss, %y : tensor<f32>, tensor<4x2xf32>
}

// -----

// Two uses of one op (CSE merged them) become two ops with a gradient each.
// CHECK-LABEL: func.func @tied
func.func @tied(%x: tensor<3xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %w = het.parameter "w" offsets [3] of [9] : tensor<3xf32>
  // CHECK-COUNT-2: het.parameter "w" offsets [3] of [9]
  %y = het.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %z = het.mul %y, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = het.reduce sum %z dims [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK-COUNT-2: het.gradient "w" %{{.*}} offsets [3] of [9]
  // CHECK-NOT: het.gradient
  return %loss : tensor<f32>
}

// -----

// Gradients of a value's uses are added, from the last use to the first.
// CHECK-LABEL: func.func @residual
func.func @residual() -> (tensor<f32> {het.name = "loss"}) {
  %w = het.parameter "w" : tensor<3xf32>
  %x = het.exp %w : (tensor<3xf32>) -> tensor<3xf32>
  %y = het.tanh %x : (tensor<3xf32>) -> tensor<3xf32>
  %z = het.add %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = het.reduce sum %z dims [0] : (tensor<3xf32>) -> tensor<f32>
  // CHECK: %[[G:.*]] = het.broadcast
  // CHECK: %[[T:.*]] = het.mul %[[G]]
  // CHECK: %[[SUM:.*]] = het.add %[[G]], %[[T]] {het.adjoint_of = 2 : i64
  // CHECK: %[[DW:.*]] = het.mul %[[SUM]]
  // CHECK: het.gradient "w" %[[DW]]
  return %loss : tensor<f32>
}

// -----

// Weights that are only rearranged move to their use, and with them the place
// where their gradient is complete.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<2x3xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %w = het.parameter "w" : tensor<3x3xf32>
  %t = het.transpose %w by [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  // CHECK: het.exp
  // CHECK-NEXT: het.parameter "w"
  // CHECK-NEXT: het.transpose
  %e = het.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = het.matmul %e, %t contract [1] [0] : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %loss = het.reduce mean %y dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  // CHECK: het.transpose
  // CHECK-NEXT: het.gradient "w"
  return %loss : tensor<f32>
}

// -----

func.func @without_path(%x: tensor<3xf32>) -> (tensor<f32> {het.name = "loss"}, tensor<3xf32>) {
  %w = het.parameter "w" : tensor<3xf32>
  // expected-remark @+1 {{parameter 'pooler' is not trained: no differentiable path leads from it to the loss}}
  %p = het.parameter "pooler" : tensor<3xf32>
  // expected-remark @+1 {{parameter 'threshold' is not trained}}
  %t = het.parameter "threshold" : tensor<3xf32>
  %m = het.parameter "mask" untrained : tensor<3xf32>
  %q = het.mul %x, %p : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %c = het.compare gt %x, %t : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %y = het.select %c, %w, %m : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %loss = het.reduce sum %y dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss, %q : tensor<f32>, tensor<3xf32>
}

// -----

// expected-error @+1 {{has no loss to differentiate: the first result must be tensor<f32> with het.name = "loss"}}
func.func @no_loss(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

// -----

// expected-error @+1 {{the loss depends on no trained parameter}}
func.func @no_parameter(%x: tensor<f32>) -> (tensor<f32> {het.name = "loss"}) {
  return %x : tensor<f32>
}

// -----

func.func @scatter(%i: tensor<2x1xi64>, %u: tensor<2xf32>) -> (tensor<f32> {het.name = "loss"}) {
  %w = het.parameter "w" : tensor<3xf32>
  // expected-error @+1 {{has no adjoint for max, and a trained parameter is reached through it}}
  %y = het.scatter_nd max %w, %i, %u : (tensor<3xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<3xf32>
  %loss = het.reduce sum %y dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @twice(%x: tensor<f32>) -> (tensor<f32> {het.name = "loss"}) {
  // expected-error @+1 {{is differentiated already}}
  %y = het.neg %x {het.phase = "backward"} : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
