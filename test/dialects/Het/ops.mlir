// Every op, read, printed and read again: in its own syntax and in the generic one.
// The examples are those of HetOps.td.
//
// RUN: autohet-opt %s | FileCheck %s
// RUN: autohet-opt %s > %t.pretty
// RUN: autohet-opt %t.pretty | diff %t.pretty -
// RUN: autohet-opt %s --mlir-print-op-generic | autohet-opt | diff %t.pretty -

func.func @neg(%x: tensor<2x3xf32>) {
  // CHECK: het.neg
  %y = het.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @abs(%x: tensor<2x3xf32>) {
  // CHECK: het.abs
  %y = het.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @exp(%x: tensor<2x3xf32>) {
  // CHECK: het.exp
  %y = het.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @log(%x: tensor<2x3xf32>) {
  // CHECK: het.log
  %y = het.log %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @sqrt(%x: tensor<2x3xf32>) {
  // CHECK: het.sqrt
  %y = het.sqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @rsqrt(%x: tensor<2x3xf32>) {
  // CHECK: het.rsqrt
  %y = het.rsqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @reciprocal(%x: tensor<2x3xf32>) {
  // CHECK: het.reciprocal
  %y = het.reciprocal %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @tanh(%x: tensor<2x3xf32>) {
  // CHECK: het.tanh
  %y = het.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @erf(%x: tensor<2x3xf32>) {
  // CHECK: het.erf
  %y = het.erf %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @sigmoid(%x: tensor<2x3xf32>) {
  // CHECK: het.sigmoid
  %y = het.sigmoid %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @silu(%x: tensor<2x3xf32>) {
  // CHECK: het.silu
  %y = het.silu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @relu(%x: tensor<2x3xf32>) {
  // CHECK: het.relu
  %y = het.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @sin(%x: tensor<2x3xf32>) {
  // CHECK: het.sin
  %y = het.sin %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @cos(%x: tensor<2x3xf32>) {
  // CHECK: het.cos
  %y = het.cos %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @add(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.add
  %y = het.add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @sub(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.sub
  %y = het.sub %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @mul(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.mul
  %y = het.mul %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @div(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.div
  %y = het.div %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @mod(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.mod
  %y = het.mod %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @pow(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.pow
  %y = het.pow %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @max(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.max
  %y = het.max %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @min(%a: tensor<2x3xf32>, %b: tensor<3xf32>) {
  // CHECK: het.min
  %y = het.min %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

func.func @and(%a: tensor<2x1xi1>, %b: tensor<3xi1>) {
  // CHECK: het.and
  %y = het.and %a, %b : (tensor<2x1xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

func.func @or(%a: tensor<2x1xi1>, %b: tensor<3xi1>) {
  // CHECK: het.or
  %y = het.or %a, %b : (tensor<2x1xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

func.func @xor(%a: tensor<2x1xi1>, %b: tensor<3xi1>) {
  // CHECK: het.xor
  %y = het.xor %a, %b : (tensor<2x1xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

func.func @constant() {
  // CHECK: het.constant
  %c = het.constant dense<[1, 2]> : tensor<2xi64>
  return
}

func.func @parameter() {
  // CHECK: het.parameter
  %w = het.parameter "h.0.attn.c_attn.weight" offsets [0, 48] of [48, 144] : tensor<48x48xf32>
  // CHECK: het.parameter
  %m = het.parameter "mask" untrained : tensor<1x1x12x12xf32>
  return
}

func.func @gradient(%g: tensor<101x48xf32>) {
  // CHECK: het.gradient
  het.gradient "wte.weight" %g : tensor<101x48xf32>
  return
}

func.func @not(%x: tensor<2x3xi1>) {
  // CHECK: het.not
  %y = het.not %x : (tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

func.func @is_nan(%x: tensor<2x3xf32>) {
  // CHECK: het.is_nan
  %y = het.is_nan %x : (tensor<2x3xf32>) -> tensor<2x3xi1>
  return
}

func.func @compare(%a: tensor<1x4xi64>, %b: tensor<4x1xi64>) {
  // CHECK: het.compare
  %y = het.compare le %a, %b : (tensor<1x4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
  return
}

func.func @select(%c: tensor<4x4xi1>, %a: tensor<4x4xf32>, %b: tensor<f32>) {
  // CHECK: het.select
  %y = het.select %c, %a, %b : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return
}

func.func @cast(%x: tensor<2xi64>) {
  // CHECK: het.cast
  %y = het.cast %x {to = f32} : (tensor<2xi64>) -> tensor<2xf32>
  return
}

func.func @gelu(%x: tensor<2x3xf32>) {
  // CHECK: het.gelu
  %y = het.gelu tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @gelu_backward(%x: tensor<2xf32>, %dy: tensor<2xf32>) {
  // CHECK: het.gelu_backward
  %dx = het.gelu_backward erf %x, %dy : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

func.func @silu_backward(%x: tensor<2xf32>, %dy: tensor<2xf32>) {
  // CHECK: het.silu_backward
  %dx = het.silu_backward %x, %dy : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

func.func @dropout(%x: tensor<2x3xf32>) {
  // CHECK: het.dropout
  %y = het.dropout %x {p = 1.0e-1 : f64, op_id = 7 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @matmul(%x: tensor<2x5x8xf32>, %w: tensor<9x8xf32>, %q: tensor<2x4x5x8xf32>, %k: tensor<2x4x5x8xf32>) {
  // CHECK: het.matmul
  %y = het.matmul %x, %w contract [2] [1] : (tensor<2x5x8xf32>, tensor<9x8xf32>) -> tensor<2x5x9xf32>
  // CHECK: het.matmul
  %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3]
      : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x5xf32>
  return
}

func.func @reduce(%x: tensor<2x3x4xf32>) {
  // CHECK: het.reduce
  %m = het.reduce mean %x dims [2] : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  // CHECK: het.reduce
  %k = het.reduce sum %x dims [0, 1] keep : (tensor<2x3x4xf32>) -> tensor<1x1x4xf32>
  return
}

func.func @softmax(%x: tensor<2x3xf32>) {
  // CHECK: het.softmax
  %y = het.softmax %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @softmax_backward(%y: tensor<2x3xf32>, %dy: tensor<2x3xf32>) {
  // CHECK: het.softmax_backward
  %dx = het.softmax_backward %y, %dy : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @layer_norm(%x: tensor<2x3x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // CHECK: het.layer_norm
  %y, %mean, %rstd = het.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64}
      : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

func.func @layer_norm_backward(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %mean: tensor<2xf32>, %rstd: tensor<2xf32>, %dy: tensor<2x8xf32>) {
  // CHECK: het.layer_norm_backward
  %dx, %dg, %db = het.layer_norm_backward %x, %g, %mean, %rstd, %dy
      : (tensor<2x8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x8xf32>)
      -> (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

func.func @rms_norm(%x: tensor<2x8xf32>, %g: tensor<8xf32>) {
  // CHECK: het.rms_norm
  %y, %rstd = het.rms_norm %x, %g {epsilon = 1.0e-6 : f64}
      : (tensor<2x8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>)
  return
}

func.func @rms_norm_backward(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %rstd: tensor<2xf32>, %dy: tensor<2x8xf32>) {
  // CHECK: het.rms_norm_backward
  %dx, %dg = het.rms_norm_backward %x, %g, %rstd, %dy
      : (tensor<2x8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>)
  return
}

func.func @attention(%q: tensor<2x2x5x16xf32>, %k: tensor<2x1x5x16xf32>, %v: tensor<2x1x5x16xf32>) {
  // CHECK: het.attention
  %o, %l = het.attention %q, %k, %v {scale = 0.25 : f64, causal, kv_heads = array<i64: 0, 0>}
      : (tensor<2x2x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>)
      -> (tensor<2x2x5x16xf32>, tensor<2x2x5xf32>)
  return
}

func.func @attention_backward(%q: tensor<2x1x5x16xf32>, %k: tensor<2x1x5x16xf32>, %v: tensor<2x1x5x16xf32>, %o: tensor<2x1x5x16xf32>, %l: tensor<2x1x5xf32>, %do: tensor<2x1x5x16xf32>) {
  // CHECK: het.attention_backward
  %dq, %dk, %dv = het.attention_backward %q, %k, %v, %o, %l, %do {scale = 0.25 : f64, causal, kv_heads = array<i64: 0>}
      : (tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5xf32>, tensor<2x1x5x16xf32>)
      -> (tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>)
  return
}

func.func @rotary(%x: tensor<2x4x5x8xf32>, %cos: tensor<1x1x5x4xf32>, %sin: tensor<1x1x5x4xf32>) {
  // CHECK: het.rotary
  %y = het.rotary %x, %cos, %sin
      : (tensor<2x4x5x8xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<2x4x5x8xf32>
  return
}

func.func @embedding(%table: tensor<101x48xf32>, %ids: tensor<2x12xi64>) {
  // CHECK: het.embedding
  %y = het.embedding %table, %ids : (tensor<101x48xf32>, tensor<2x12xi64>) -> tensor<2x12x48xf32>
  return
}

func.func @embedding_backward(%ids: tensor<2x12xi64>, %dy: tensor<2x12x48xf32>) {
  // CHECK: het.embedding_backward
  %dt = het.embedding_backward %ids, %dy {rows = 101 : i64}
      : (tensor<2x12xi64>, tensor<2x12x48xf32>) -> tensor<101x48xf32>
  return
}

func.func @gather(%x: tensor<4xi64>, %i: tensor<i64>) {
  // CHECK: het.gather
  %y = het.gather %x, %i {dim = 0 : i64} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  return
}

func.func @gather_nd(%x: tensor<2x12xi1>, %i: tensor<2x1x12x12x2xi64>) {
  // CHECK: het.gather_nd
  %y = het.gather_nd %x, %i {batch_dims = 0 : i64}
      : (tensor<2x12xi1>, tensor<2x1x12x12x2xi64>) -> tensor<2x1x12x12xi1>
  return
}

func.func @iota() {
  // CHECK: het.iota
  %i = het.iota {start = 0 : i64, step = 1 : i64, count = 12 : i64, element = i64} : () -> tensor<12xi64>
  return
}

func.func @reshape(%x: tensor<2x3x4xf32>) {
  // CHECK: het.reshape
  %y = het.reshape %x to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  return
}

func.func @transpose(%x: tensor<2x3x4xf32>) {
  // CHECK: het.transpose
  %y = het.transpose %x by [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  return
}

func.func @broadcast(%x: tensor<1x3xf32>) {
  // CHECK: het.broadcast
  %y = het.broadcast %x to [2, 3] : (tensor<1x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @slice(%x: tensor<2x4xf32>) {
  // CHECK: het.slice
  %y = het.slice %x offsets [0, 2] sizes [2, 2] strides [1, 1] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return
}

func.func @slice_backward(%dy: tensor<2x2xf32>) {
  // CHECK: het.slice_backward
  %dx = het.slice_backward %dy offsets [0, 2] strides [1, 1] shape [2, 4] : (tensor<2x2xf32>) -> tensor<2x4xf32>
  return
}

func.func @concat(%a: tensor<2x3xf32>, %b: tensor<2x1xf32>) {
  // CHECK: het.concat
  %y = het.concat %a, %b {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return
}

func.func @cross_entropy(%logits: tensor<2x12x101xf32>, %labels: tensor<2x12xi64>) {
  // CHECK: het.cross_entropy
  %loss, %lse = het.cross_entropy %logits, %labels {ignore_index = -100 : i64}
      : (tensor<2x12x101xf32>, tensor<2x12xi64>) -> (tensor<f32>, tensor<2x12xf32>)
  return
}

func.func @cross_entropy_part(%logits: tensor<2x12x51xf32>, %labels: tensor<2x12xi64>) {
  // CHECK: het.cross_entropy_part
  %lse, %picked = het.cross_entropy_part %logits, %labels {classes = 101 : i64, first_class = 50 : i64, ignore_index = -100 : i64}
    : (tensor<2x12x51xf32>, tensor<2x12xi64>) -> (tensor<2x12xf32>, tensor<2x12xf32>)
  return
}

func.func @cross_entropy_backward(%logits: tensor<2x12x101xf32>, %labels: tensor<2x12xi64>, %lse: tensor<2x12xf32>, %g: tensor<f32>) {
  // CHECK: het.cross_entropy_backward
  %dx = het.cross_entropy_backward %logits, %labels, %lse, %g {ignore_index = -100 : i64}
      : (tensor<2x12x101xf32>, tensor<2x12xi64>, tensor<2x12xf32>, tensor<f32>) -> tensor<2x12x101xf32>
  return
}

func.func @floor(%x: tensor<2x3xf32>) {
  // CHECK: het.floor
  %y = het.floor %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @ceil(%x: tensor<2x3xf32>) {
  // CHECK: het.ceil
  %y = het.ceil %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @round(%x: tensor<2x3xf32>) {
  // CHECK: het.round
  %y = het.round %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @rem(%a: tensor<2x3xi32>, %b: tensor<3xi32>) {
  // CHECK: het.rem
  %y = het.rem %a, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

func.func @shifts(%a: tensor<2x3xi32>, %b: tensor<3xi32>) {
  // CHECK: het.shift_left
  %y = het.shift_left %a, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  // CHECK: het.shift_right
  %z = het.shift_right %a, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return
}

func.func @arg_reduce(%x: tensor<2x3x4xf32>) {
  // CHECK: het.arg_reduce max %{{.*}} dim 1 :
  %i = het.arg_reduce max %x dim 1 : (tensor<2x3x4xf32>) -> tensor<2x4xi64>
  // CHECK: het.arg_reduce min %{{.*}} dim 2 last :
  %j = het.arg_reduce min %x dim 2 last : (tensor<2x3x4xf32>) -> tensor<2x3xi64>
  return
}

func.func @cumulative_sum(%x: tensor<2x3xf32>) {
  // CHECK: het.cumulative_sum %{{.*}} dim 1 exclusive :
  %y = het.cumulative_sum %x dim 1 exclusive : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: het.cumulative_sum %{{.*}} dim 0 reverse :
  %z = het.cumulative_sum %x dim 0 reverse : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

func.func @top_k(%x: tensor<3x5xf32>) {
  // CHECK: het.top_k
  %v, %i = het.top_k %x {k = 2 : i64, largest} : (tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  return
}

func.func @scatter_nd(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>, %u: tensor<3x5xf32>) {
  // CHECK: het.scatter_nd add
  %y = het.scatter_nd add %x, %i, %u : (tensor<4x5xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}
