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

// They still are after ops that work on each row alike, and may be paired.
func.func @made_of_repeated_rows(%x: tensor<2x3x4xf32> {het.batch_dim = 0 : i64}) -> tensor<2x4x3xf32> {
  %frequencies = het.constant dense<[1.0, 0.5, 0.25]> : tensor<3xf32>
  %r = het.reshape %frequencies to [1, 3, 1] : (tensor<3xf32>) -> tensor<1x3x1xf32>
  %b = het.broadcast %r to [2, 3, 1] : (tensor<1x3x1xf32>) -> tensor<2x3x1xf32>
  %s = het.reshape %b to [2, 1, 3] : (tensor<2x3x1xf32>) -> tensor<2x1x3xf32>
  %c = het.cos %s : (tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
  %t = het.transpose %x by [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %y = het.add %t, %c : (tensor<2x4x3xf32>, tensor<2x1x3xf32>) -> tensor<2x4x3xf32>
  %p = het.matmul %b, %x batch [0] [0] contract [1] [1] : (tensor<2x3x1xf32>, tensor<2x3x4xf32>) -> tensor<2x1x4xf32>
  return %y : tensor<2x4x3xf32>
}

// One sample alone meets no other, wherever its dim of 1 went.
func.func @one_sample(%x: tensor<1x3xf32> {het.batch_dim = 0 : i64}) -> tensor<3x3xf32> {
  %row = het.reshape %x to [3] : (tensor<1x3xf32>) -> tensor<3xf32>
  %t = het.transpose %x by [1, 0] : (tensor<1x3xf32>) -> tensor<3x1xf32>
  %y = het.add %t, %x : (tensor<3x1xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
  %z = het.mul %y, %row : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// Dropout draws by sample; that a sample alone lost its dim does not matter.
func.func @dropout(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %one: tensor<1x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  %y = het.dropout %x {p = 1.000000e-01 : f64, op_id = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %flat = het.reshape %one to [3] : (tensor<1x3xf32>) -> tensor<3xf32>
  %back = het.reshape %flat to [1, 3] : (tensor<3xf32>) -> tensor<1x3xf32>
  %z = het.dropout %back {p = 1.000000e-01 : f64, op_id = 2 : i64} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  return %y : tensor<2x3xf32>
}

// Running sums, places, orders and updates, each along a dim other than the batch.
func.func @order(%x: tensor<2x3x4xf32> {het.batch_dim = 0 : i64}, %p: tensor<3x2x4xf32> {het.batch_dim = 1 : i64}) -> tensor<2x4xi64> {
  %c = het.cumulative_sum %x dim 1 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %v, %i = het.top_k %c {k = 2 : i64, largest} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi64>)
  %a = het.arg_reduce max %p dim 0 : (tensor<3x2x4xf32>) -> tensor<2x4xi64>
  %rows = het.constant dense<[[2], [0]]> : tensor<2x1xi64>
  %u = het.constant dense<0.0> : tensor<2x2x4xf32>
  %s = het.scatter_nd add %p, %rows, %u : (tensor<3x2x4xf32>, tensor<2x1xi64>, tensor<2x2x4xf32>) -> tensor<3x2x4xf32>
  %t = het.transpose %s by [1, 0, 2] : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
  %y = het.add %t, %x : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // The places of the largest are a sample's own.
  %o = het.broadcast %a to [2, 4] : (tensor<2x4xi64>) -> tensor<2x4xi64>
  return %o : tensor<2x4xi64>
}

// A mask of ones counts the same positions for each sample.
func.func @counted_positions(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  %one = het.constant dense<1.0> : tensor<3xf32>
  %ones = het.broadcast %one to [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %places = het.cumulative_sum %ones dim 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = het.add %x, %places : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
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
  // expected-note @below {{export with a symbolic batch}}
  %w = het.parameter "w" : tensor<2x3x4xf32>
  // expected-error @below {{treats samples unlike: operand 'tensor<2x3x4xf32>' has rows of its own along the batch, dim 0}}
  %m = het.matmul %x, %w batch [0] [0] contract [1] [1] : (tensor<2x3xf32>, tensor<2x3x4xf32>) -> tensor<2x4xf32>
  return %m : tensor<2x4xf32>
}

// -----

func.func @paired_crosswise(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %t: tensor<2x3x2xf32> {het.batch_dim = 2 : i64}) -> tensor<2x2xf32> {
  // expected-error @below {{the batch of one operand, dim 0, is paired with dim 0 of the other}}
  %m = het.matmul %x, %t batch [0] [0] contract [1] [1] : (tensor<2x3xf32>, tensor<2x3x2xf32>) -> tensor<2x2xf32>
  return %m : tensor<2x2xf32>
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

// Equal rows before an op that counts them are not equal rows behind it.
func.func @unlike_ids(%x: tensor<2x3x4xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3x4xf32> {
  %table = het.parameter "wpe.weight" : tensor<9x4xf32>
  %ids = het.constant dense<[[0, 1, 2], [0, 1, 3]]> : tensor<2x3xi64>
  %e = het.embedding %table, %ids : (tensor<9x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  // expected-error @below {{treats samples unlike: operand 'tensor<2x3x4xf32>' has rows of its own along the batch, dim 0}}
  %y = het.add %x, %e : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// One parameter for each row of the batch.
func.func @parameter_of_samples(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  // expected-note @below {{parameter 'w' has a row for each sample}}
  %w = het.parameter "w" : tensor<2x3xf32>
  // expected-error @below {{treats samples unlike: operand 'tensor<2x3xf32>' has rows of its own along the batch, dim 0}}
  %y = het.mul %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// The same, where a reshape moves other elements into the rows.
func.func @rows_of_a_reshape(%x: tensor<2x2xf32> {het.batch_dim = 0 : i64}) -> tensor<2x2xf32> {
  %c = het.constant dense<[[1.0, 1.0, 2.0, 2.0]]> : tensor<1x4xf32>
  %r = het.reshape %c to [2, 2] : (tensor<1x4xf32>) -> tensor<2x2xf32>
  // expected-error @below {{treats samples unlike: operand 'tensor<2x2xf32>'}}
  %y = het.add %x, %r : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// Only a sum is the loss: a maximum over samples is no sum of microbatches'.
func.func @largest(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %n: tensor<f32> {het.role = "inverse_label_count"}) -> tensor<f32> {
  // expected-error @below {{lets one sample reach another: it reduces dim 0, the batch}}
  %m = het.reduce max %x dims [0, 1] : (tensor<2x3xf32>) -> tensor<f32>
  %loss = het.mul %m, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @reduced_for_nobody(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) {
  // expected-error @below {{lets one sample reach another: it reduces dim 0, the batch}}
  %m = het.reduce sum %x dims [0] : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @labels_of_others(%x: tensor<3x3x4xf32> {het.batch_dim = 1 : i64}, %labels: tensor<3x3xi64> {het.role = "labels"}) -> tensor<f32> {
  // expected-error @below {{samples are counted by dim 1 of the logits and by dim 0 of the labels}}
  %loss, %lse = het.cross_entropy %x, %labels {ignore_index = -100 : i64} : (tensor<3x3x4xf32>, tensor<3x3xi64>) -> (tensor<f32>, tensor<3x3xf32>)
  return %loss : tensor<f32>
}

// -----

func.func @scaled_by_samples(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %w: tensor<3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  // expected-error @below {{its scale or shift is made of samples}}
  %y, %r = het.rms_norm %x, %w {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return %y : tensor<2x3xf32>
}

// -----

func.func @dropout_elsewhere(%x: tensor<3x2xf32> {het.batch_dim = 1 : i64}) -> tensor<3x2xf32> {
  // expected-error @below {{draws a sample's mask by dim 0, but samples are counted by dim 1}}
  %y = het.dropout %x {p = 1.000000e-01 : f64, op_id = 1 : i64} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @dropout_for_all(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  %w = het.parameter "w" : tensor<3xf32>
  // expected-error @below {{draws one mask for all samples, which would change with the microbatch}}
  %d = het.dropout %w {p = 1.000000e-01 : f64, op_id = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  %y = het.add %x, %d : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @paired_unlike(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2xf32> {
  %i = het.constant dense<[[0], [1]]> : tensor<2x1xi64>
  // expected-error @below {{treats samples unlike: operand 'tensor<2x1xi64>' has rows of its own along the batch, dim 0}}
  %y = het.gather_nd %x, %i {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>) -> tensor<2xf32>
  return %y : tensor<2xf32>
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

func.func @added_up(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  // expected-error @below {{it adds up along dim 0, the batch}}
  %y = het.cumulative_sum %x dim 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @compared(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<3xi64> {
  // expected-error @below {{it compares along dim 0, the batch}}
  %y = het.arg_reduce max %x dim 0 : (tensor<2x3xf32>) -> tensor<3xi64>
  return %y : tensor<3xi64>
}

// -----

func.func @ordered(%x: tensor<3x2xf32> {het.batch_dim = 1 : i64}) -> tensor<3x1xf32> {
  // expected-error @below {{it orders dim 1, the batch}}
  %v, %i = het.top_k %x {k = 1 : i64, largest} : (tensor<3x2xf32>) -> (tensor<3x1xf32>, tensor<3x1xi64>)
  return %v : tensor<3x1xf32>
}

// -----

func.func @updated(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  %i = het.constant dense<1> : tensor<1x1xi64>
  %u = het.constant dense<1.0> : tensor<1x3xf32>
  // expected-error @below {{it updates elements by their place along dim 0 of its operand, the batch}}
  %y = het.scatter_nd add %x, %i, %u : (tensor<2x3xf32>, tensor<1x1xi64>, tensor<1x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @updated_by_samples(%x: tensor<4x3xf32>, %u: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<4x3xf32> {
  %i = het.constant dense<[[0], [2]]> : tensor<2x1xi64>
  // expected-error @below {{it updates elements by their place along dim 0 of its updates, the batch}}
  %y = het.scatter_nd add %x, %i, %u : (tensor<4x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

func.func @updated_where_samples_say(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}, %i: tensor<2x1xi64> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  // expected-error @below {{each sample's indices point into all samples}}
  %y = het.scatter_nd add %x, %i, %x : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @updated_unlike(%p: tensor<3x2x4xf32> {het.batch_dim = 1 : i64}) -> tensor<3x2x4xf32> {
  %i = het.constant dense<[[0]]> : tensor<1x1xi64>
  %u = het.constant dense<[[[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]]> : tensor<1x2x4xf32>
  // expected-error @below {{treats samples unlike: operand 'tensor<1x2x4xf32>' has rows of its own along the batch, dim 1}}
  %y = het.scatter_nd replace %p, %i, %u : (tensor<3x2x4xf32>, tensor<1x1xi64>, tensor<1x2x4xf32>) -> tensor<3x2x4xf32>
  return %y : tensor<3x2x4xf32>
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
  // expected-error @below {{operand #0 must be static tensor (2^40 elements at most)}}
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

// -----

// What is meant to be of the whole microbatch leads to the loss alone.
func.func @balance(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<f32> {
  %m = het.reduce mean %x dims [0] {het.of_microbatch} : (tensor<2x3xf32>) -> tensor<3xf32>
  %p = het.mul %m, %m : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %y = het.reduce sum %p dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func @normed_by_batch(%x: tensor<2x3xf32> {het.batch_dim = 0 : i64}) -> tensor<2x3xf32> {
  %m = het.reduce mean %x dims [0] {het.of_microbatch} : (tensor<2x3xf32>) -> tensor<3xf32>
  %n = het.neg %m : (tensor<3xf32>) -> tensor<3xf32>
  // expected-error @below {{lets one sample reach another: what is of the whole microbatch meets single samples}}
  %y = het.add %x, %n : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
