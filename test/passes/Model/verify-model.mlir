// RUN: autohet-opt %s --het-verify-model --split-input-file --verify-diagnostics

// Samples stay apart: the batch dim is moved, paired, kept.
func.func @apart(%ids: tensor<2x3xi64> {het.batch_dim = 0 : i64}, %pad: tensor<2x3xi1> {het.batch_dim = 0 : i64}, %labels: tensor<2x3xi64> {het.role = "labels"}, %n: tensor<f32> {het.role = "inverse_label_count"}) -> tensor<f32> {
  %table = het.parameter "wte.weight" : tensor<9x4xf32>
  %position = het.parameter "wpe.weight" : tensor<3x4xf32>
  %e = het.embedding %table, %ids : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %pb = het.broadcast %position to [2, 3, 4] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %x = het.add %e, %pb : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %r = het.reshape %x to [2, 3, 1, 4] : (tensor<2x3x4xf32>) -> tensor<2x3x1x4xf32>
  %h = het.transpose %r by [0, 2, 1, 3] : (tensor<2x3x1x4xf32>) -> tensor<2x1x3x4xf32>
  %m = het.reshape %pad to [2, 1, 1, 3] : (tensor<2x3xi1>) -> tensor<2x1x1x3xi1>
  %o, %l = het.attention %h, %h, %h, %m {scale = 0.5 : f64, kv_heads = array<i64: 0>} : (tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2x1x1x3xi1>) -> (tensor<2x1x3x4xf32>, tensor<2x1x3xf32>)
  %t = het.transpose %o by [2, 1, 0, 3] : (tensor<2x1x3x4xf32>) -> tensor<3x1x2x4xf32>
  %s = het.reduce mean %t dims [1] : (tensor<3x1x2x4xf32>) -> tensor<3x2x4xf32>
  %b = het.matmul %s, %x batch [1] [0] contract [0] [1] : (tensor<3x2x4xf32>, tensor<2x3x4xf32>) -> tensor<2x4x4xf32>
  %y = het.matmul %b, %table contract [2] [1] : (tensor<2x4x4xf32>, tensor<9x4xf32>) -> tensor<2x4x9xf32>
  %z = het.slice %y offsets [0, 0, 0] sizes [2, 3, 9] strides [1, 1, 1] : (tensor<2x4x9xf32>) -> tensor<2x3x9xf32>
  %loss, %lse = het.cross_entropy %z, %labels {ignore_index = -100 : i64} : (tensor<2x3x9xf32>, tensor<2x3xi64>) -> (tensor<f32>, tensor<2x3xf32>)
  %mean = het.mul %loss, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %mean : tensor<f32>
}

// Positions that a constant repeats for each sample are the same for each.
func.func @repeated_positions(%x: tensor<2x3x4xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3x4xf32> {
  %table = het.parameter "wpe.weight" : tensor<9x4xf32>
  %ids = het.constant dense<[[0, 1, 2], [0, 1, 2]]> : tensor<2x3xi64>
  %e = het.embedding %table, %ids : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %y = het.add %x, %e : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// A mean-squared error is a loss too; what its adjoint sums over is not checked.
func.func @squared_error(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %labels: tensor<2x3xf32> {het.role = "labels"}, %n: tensor<f32> {het.role = "inverse_label_count"}) -> tensor<f32> {
  %d = het.sub %x, %labels : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %q = het.mul %d, %d : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = het.reduce sum %q dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  %loss = het.mul %s, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = het.reduce sum %d dims [0] {het.phase = "backward"} : (tensor<2x3xf32>) -> tensor<3xf32>
  return %loss : tensor<f32>
}

// -----

func.func @reduced(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<3xf32> {
  // expected-error @below {{lets one sample reach another: it reduces dim 0, the batch}}
  %m = het.reduce mean %x dims [0] : (tensor<2x3xf32>) -> tensor<3xf32>
  return %m : tensor<3xf32>
}

// -----

func.func @contracted(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %y: tensor<2x4xf32> {het.batch_dim = 0 : i64}) -> tensor<3x4xf32> {
  // expected-error @below {{lets one sample reach another: it sums over dim 0 of its lhs, the batch}}
  %m = het.matmul %x, %y contract [0] [0] : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %m : tensor<3x4xf32>
}

// -----

func.func @all_pairs(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x2xf32> {
  // expected-error @below {{each row of one operand's batch meets each of the other's}}
  %m = het.matmul %x, %x contract [1] [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  return %m : tensor<2x2xf32>
}

// -----

func.func @paired_with_weights(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x4xf32> {
  %w = het.parameter "w" : tensor<2x3x4xf32>
  // expected-error @below {{the batch of one operand, dim 0, is paired with dim 0 of the other}}
  %m = het.matmul %x, %w batch [0] [0] contract [1] [1] : (tensor<2x3xf32>, tensor<2x3x4xf32>) -> tensor<2x4xf32>
  return %m : tensor<2x4xf32>
}

// -----

func.func @crossed(%x: tensor<2x2xf32> {het.batch_dim = 0 : i64}) -> tensor<2x2xf32> {
  %t = het.transpose %x by [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
  // expected-error @below {{samples are counted by dim 0 of one operand and by dim 1 of another}}
  %y = het.add %x, %t : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

func.func @unlike(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  %c = het.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  // expected-error @below {{treats samples unlike: operand 'tensor<2x1xf32>' has rows of its own along the batch, dim 0}}
  %y = het.add %x, %c : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @merged(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<6xf32> {
  // expected-error @below {{dim 0 of 'tensor<2x3xf32>', the batch, is no dim of 'tensor<6xf32>'}}
  %y = het.reshape %x to [6] : (tensor<2x3xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

func.func @sliced(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<1x3xf32> {
  // expected-error @below {{it takes a part of dim 0, the batch}}
  %y = het.slice %x offsets [1, 0] sizes [1, 3] strides [1, 1] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// -----

func.func @appended(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<4x3xf32> {
  // expected-error @below {{it appends along dim 0, the batch}}
  %y = het.concat %x, %x {dim = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

func.func @looked_up(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %i: tensor<2xi64> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  // expected-error @below {{it looks rows up along dim 0, the batch}}
  %y = het.gather %x, %i {dim = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @looked_up_by_tuple(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %i: tensor<4x2xi64>) -> tensor<4xf32> {
  // expected-error @below {{it looks elements up along dim 0, the batch}}
  %y = het.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<2x3xf32>, tensor<4x2xi64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @normalised(%x: tensor<3x2xf32> {het.batch_dim = 1 : i64}) -> tensor<3x2xf32> {
  // expected-error @below {{it works along dim 1, the batch}}
  %y = het.softmax %x : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @as_table(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %i: tensor<4xi64>) -> tensor<4x3xf32> {
  // expected-error @below {{its table is made of samples}}
  %y = het.embedding %x, %i : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

func.func @foreign(%x: f32) -> f32 {
  // expected-error @below {{is left after the Model phase, which leaves het ops only}}
  %y = arith.addf %x, %x : f32
  return %y : f32
}

// -----

func.func @dynamic(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  // expected-error @below {{must have a static shape after the Model phase, but has 'tensor<?x3xf32>'}}
  %y = het.exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

// -----

func.func @no_gradient(%x: tensor<3xf32>) {
  // expected-error @below {{has neither a gradient nor a reason to have none}}
  %w = het.parameter "w" : tensor<3xf32>
  %u = het.parameter "u" {het.no_gradient = "the loss does not depend on it"} : tensor<3xf32>
  %t = het.parameter "t" untrained : tensor<3xf32>
  %v = het.parameter "v" : tensor<3xf32>
  het.gradient "v" %x : tensor<3xf32>
  return
}
