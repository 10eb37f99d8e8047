// A stage divided between two devices by two and one third.
//
// RUN: autohet-opt %s --dist-shard-stages --split-input-file | FileCheck %s

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// An MLP: the first product by columns, what follows elementwise, the second by
// rows; one sum, in rank order on both ranks. Biases go with their columns, and
// the one after the sum is added to the whole.
// CHECK-NOT:   dist.stage
// CHECK-LABEL: func.func @"n0/0"
// CHECK-SAME:    (%[[X:.*]]: tensor<2x6xf32>) -> (tensor<2x6xf32> {het.name = "y"})
// CHECK-SAME:    dist.program = #dist.program<device = "n0/0", rank = 0, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
// CHECK:         %[[W:.*]] = het.parameter "up" offsets [0, 0] of [6, 8] : tensor<6x5xf32>
// CHECK:         %[[U:.*]] = het.matmul %[[X]], %[[W]] contract [1] [0] : {{.*}} -> tensor<2x5xf32>
// CHECK:         %[[B:.*]] = het.parameter "bias" offsets [0] of [8] : tensor<5xf32>
// CHECK:         %[[H:.*]] = het.add %[[U]], %[[B]]
// CHECK:         %[[A:.*]] = het.gelu tanh %[[H]] : (tensor<2x5xf32>)
// CHECK:         %[[V:.*]] = het.parameter "down" offsets [0, 0] of [8, 6] : tensor<5x6xf32>
// CHECK:         %[[P:.*]] = het.matmul %[[A]], %[[V]] contract [1] [0]
// CHECK:         %[[D:.*]] = het.parameter "offset" : tensor<6xf32>
// CHECK:         dist.send %[[P]] to 1 channel [[C:[0-9]+]] inline
// CHECK:         %[[O:.*]] = dist.recv from 1 channel [[C]] inline
// CHECK:         %[[Y:.*]] = het.add %[[P]], %[[O]]
// CHECK:         %[[Z:.*]] = het.add %[[Y]], %[[D]]
// CHECK:         return %[[Z]]
//
// What is divided is held in parts only; the whole result is the first rank's.
// CHECK-LABEL: func.func @"n0/1"
// CHECK-SAME:    (%[[X:.*]]: tensor<2x6xf32>) attributes
// CHECK-NOT:     het.parameter "up" :
// CHECK:         het.parameter "up" offsets [0, 5] of [6, 8] : tensor<6x3xf32>
// CHECK-NOT:     het.parameter "bias" :
// CHECK:         het.parameter "bias" offsets [5] of [8] : tensor<3xf32>
// CHECK-NOT:     het.parameter "down" :
// CHECK:         het.parameter "down" offsets [5, 0] of [8, 6] : tensor<3x6xf32>
// CHECK:         %[[P:.*]] = het.matmul
// CHECK:         dist.send %[[P]] to 0 channel [[C]] inline
// CHECK:         %[[O:.*]] = dist.recv from 0 channel [[C]] inline
// CHECK:         het.add %[[O]], %[[P]]
// CHECK:         return{{$}}
func.func @r0.s0(%x: tensor<2x6xf32>) -> (tensor<2x6xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %up = het.parameter "up" : tensor<6x8xf32>
  %u = het.matmul %x, %up contract [1] [0] : (tensor<2x6xf32>, tensor<6x8xf32>) -> tensor<2x8xf32>
  %b = het.parameter "bias" : tensor<8xf32>
  %h = het.add %u, %b : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %a = het.gelu tanh %h : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %down = het.parameter "down" : tensor<8x6xf32>
  %y = het.matmul %a, %down contract [1] [0] : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %d = het.parameter "offset" : tensor<6xf32>
  %z = het.add %y, %d : (tensor<2x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  return %z : tensor<2x6xf32>
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 3, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 0, stage = 1, stages = 2, world = 3, ranks = [1, 2], weights = [1, 1],
    devices = ["n0/1", "n0/2"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// Transfers name ranks: each receiver gets its own copy. A gradient that every
// rank has counts once.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         dist.send %[[X:.*]] to 1 channel 0 :
// CHECK-NEXT:    dist.send %[[X]] to 2 channel 0 :
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         %[[Y:.*]] = dist.recv from 0 channel 0 :
// CHECK:         het.gradient "w" %[[Y]]
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         dist.recv from 0 channel 0 :
// CHECK-NOT:     het.gradient
func.func @r0.s0(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  dist.send %x to 1 channel 0 : tensor<2x6xf32>
  return
}
func.func @r0.s1() attributes {dist.stage = #second} {
  %y = dist.recv from 0 channel 0 : tensor<2x6xf32>
  het.gradient "w" %y {het.phase = "backward"} : tensor<2x6xf32>
  return
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// Three query heads over two key/value heads: the first rank has two of the
// former and reads both of the latter, the second has one and reads the head
// that the first reads too. Each names its heads anew, and draws its box of the
// mask. The gradient by the shared head is a part of a sum on either rank.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-DAG:     het.parameter "q" offsets [0, 0] of [6, 6] : tensor<6x4xf32>
// CHECK-DAG:     het.parameter "k" offsets [0, 0] of [6, 4] : tensor<6x4xf32>
// CHECK:         het.reshape %{{.*}} to [2, 5, 2, 2]
// CHECK:         het.attention {{.*}}global_shape = array<i64: 2, 3, 5, 5>, kv_heads = array<i64: 0, 1>, offsets = array<i64: 0, 0, 0, 0>
// CHECK:         %[[D:.*]] = het.slice %{{.*}} offsets [0, 0, 0, 0] sizes [2, 2, 5, 2]
// CHECK:         %{{.*}}, %[[K:.*]], %{{.*}} = het.attention_backward {{.*}}%[[D]] {{.*}}kv_heads = array<i64: 0, 1>, offsets = array<i64: 0, 0, 0, 0>
// CHECK:         het.gradient "k" %[[K]] offsets [0, 0, 0, 0] of [2, 2, 5, 2] : tensor<2x2x5x2xf32>
// CHECK-LABEL: func.func @"n0/1"
// CHECK-DAG:     het.parameter "q" offsets [0, 4] of [6, 6] : tensor<6x2xf32>
// CHECK-DAG:     het.parameter "k" offsets [0, 2] of [6, 4] : tensor<6x2xf32>
// CHECK:         het.reshape %{{.*}} to [2, 5, 1, 2]
// CHECK:         het.attention {{.*}}global_shape = array<i64: 2, 3, 5, 5>, kv_heads = array<i64: 0>, offsets = array<i64: 0, 2, 0, 0>
// CHECK:         %[[D:.*]] = het.slice %{{.*}} offsets [0, 2, 0, 0] sizes [2, 1, 5, 2]
// CHECK:         %{{.*}}, %[[K:.*]], %{{.*}} = het.attention_backward {{.*}}%[[D]] {{.*}}kv_heads = array<i64: 0>, offsets = array<i64: 0, 2, 0, 0>
// CHECK:         het.gradient "k" %[[K]] offsets [0, 1, 0, 0] of [2, 2, 5, 2] : tensor<2x1x5x2xf32>
func.func @r0.s0(%x: tensor<2x5x6xf32>, %d: tensor<2x3x5x2xf32>) attributes {dist.stage = #stage} {
  %wq = het.parameter "q" : tensor<6x6xf32>
  %wk = het.parameter "k" : tensor<6x4xf32>
  %wv = het.parameter "v" : tensor<6x4xf32>
  %q0 = het.matmul %x, %wq contract [2] [0] : (tensor<2x5x6xf32>, tensor<6x6xf32>) -> tensor<2x5x6xf32>
  %k0 = het.matmul %x, %wk contract [2] [0] : (tensor<2x5x6xf32>, tensor<6x4xf32>) -> tensor<2x5x4xf32>
  %v0 = het.matmul %x, %wv contract [2] [0] : (tensor<2x5x6xf32>, tensor<6x4xf32>) -> tensor<2x5x4xf32>
  %q1 = het.reshape %q0 to [2, 5, 3, 2] : (tensor<2x5x6xf32>) -> tensor<2x5x3x2xf32>
  %k1 = het.reshape %k0 to [2, 5, 2, 2] : (tensor<2x5x4xf32>) -> tensor<2x5x2x2xf32>
  %v1 = het.reshape %v0 to [2, 5, 2, 2] : (tensor<2x5x4xf32>) -> tensor<2x5x2x2xf32>
  %q = het.transpose %q1 by [0, 2, 1, 3] : (tensor<2x5x3x2xf32>) -> tensor<2x3x5x2xf32>
  %k = het.transpose %k1 by [0, 2, 1, 3] : (tensor<2x5x2x2xf32>) -> tensor<2x2x5x2xf32>
  %v = het.transpose %v1 by [0, 2, 1, 3] : (tensor<2x5x2x2xf32>) -> tensor<2x2x5x2xf32>
  %o, %l = het.attention %q, %k, %v {scale = 0.25 : f64, causal, kv_heads = array<i64: 0, 1, 1>, dropout_p = 0.1 : f64, dropout_op_id = 7 : i64}
    : (tensor<2x3x5x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x2xf32>) -> (tensor<2x3x5x2xf32>, tensor<2x3x5xf32>)
  %dq, %dk, %dv = het.attention_backward %q, %k, %v, %o, %l, %d {scale = 0.25 : f64, causal, kv_heads = array<i64: 0, 1, 1>, dropout_p = 0.1 : f64, dropout_op_id = 7 : i64, het.phase = "backward"}
    : (tensor<2x3x5x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x2xf32>, tensor<2x3x5x2xf32>, tensor<2x3x5xf32>, tensor<2x3x5x2xf32>) -> (tensor<2x3x5x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x2xf32>)
  het.gradient "k" %dk : tensor<2x2x5x2xf32>
  return
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// Rows of the token table and classes of the head. An embedding's part is a
// partial sum; the loss exchanges numbers of one a label, and is the first
// rank's; logits stay where they are; the table's gradient is made in boxes.
// What is built for an op is of that op's unit.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-SAME:    tensor<2x5x60xf32> {dist.global_shape = array<i64: 2, 5, 90>, dist.offsets = array<i64: 0, 0, 0>, het.name = "logits"}
// CHECK:         %[[T:.*]] = het.parameter "wte" offsets [0, 0] of [90, 6] : tensor<60x6xf32>
// CHECK:         %[[P:.*]] = het.embedding %[[T]], %[[IDS:.*]] {all_rows = 90 : i64, first_row = 0 : i64, het.unit = "embed"}
// CHECK:         dist.send %[[P]] to 1 channel {{[0-9]+}} inline {het.unit = "embed"}
// CHECK:         %[[X:.*]] = het.dropout %{{.*}} {het.unit = "embed", op_id = 3 : i64, p
// CHECK:         %[[Y:.*]] = het.matmul %[[X]], {{.*}} -> tensor<2x5x60xf32>
// CHECK-NOT:     tensor<2x5x60x
// CHECK:         %[[LSE:.*]], %[[PICKED:.*]] = het.cross_entropy_part %[[Y]], %{{.*}} {classes = 90 : i64, first_class = 0 : i64, het.unit = "head", ignore_index = -100 : i64}
// CHECK:         dist.send %[[LSE]] {{.*}} : tensor<2x5xf32>
// CHECK:         dist.send %[[PICKED]] {{.*}} : tensor<2x5xf32>
// CHECK-NOT:     tensor<2x5x60x
// CHECK:         %[[LOSS:.*]] = het.reduce sum %{{.*}} dims [0, 1] {het.unit = "head"} : (tensor<2x5xf32>) -> tensor<f32>
// CHECK:         %[[DY:.*]] = het.cross_entropy_backward %[[Y]], {{.*}} {first_class = 0 : i64, het.phase = "backward"
// CHECK:         %[[DT:.*]] = het.embedding_backward %[[IDS]], {{.*}} {first_row = 0 : i64, {{.*}}rows = 60 : i64}
// CHECK:         het.gradient "wte" %[[DT]] offsets [0, 0] of [90, 6]
// CHECK:         return %[[LOSS]], %[[Y]]
// CHECK-LABEL: func.func @"n0/1"
// CHECK-SAME:    -> (tensor<2x5x30xf32> {dist.global_shape = array<i64: 2, 5, 90>, dist.offsets = array<i64: 0, 0, 60>, het.name = "logits"})
// CHECK:         het.embedding {{.*}} {all_rows = 90 : i64, first_row = 60 : i64, het.unit = "embed"}
// CHECK:         %[[Y:.*]] = het.matmul {{.*}} -> tensor<2x5x30xf32>
// CHECK:         het.cross_entropy_part %[[Y]], %{{.*}} {classes = 90 : i64, first_class = 60 : i64
// CHECK:         het.cross_entropy_backward %[[Y]], {{.*}} {first_class = 60 : i64,
// CHECK:         het.embedding_backward {{.*}} {first_row = 60 : i64, {{.*}}rows = 30 : i64}
// CHECK:         return %[[Y]] : tensor<2x5x30xf32>
func.func @r0.s0(%ids: tensor<2x5xi64>, %labels: tensor<2x5xi64>, %inv: tensor<f32>) -> (tensor<f32> {het.name = "loss"}, tensor<2x5x90xf32> {het.name = "logits"}) attributes {dist.stage = #stage} {
  %t = het.parameter "wte" : tensor<90x6xf32>
  %x = het.embedding %t, %ids {het.unit = "embed"} : (tensor<90x6xf32>, tensor<2x5xi64>) -> tensor<2x5x6xf32>
  %dropped = het.dropout %x {p = 0.1 : f64, op_id = 3 : i64, het.unit = "embed"} : (tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %h = het.parameter "head" : tensor<90x6xf32>
  %y = het.matmul %dropped, %h contract [2] [1] {het.unit = "head"} : (tensor<2x5x6xf32>, tensor<90x6xf32>) -> tensor<2x5x90xf32>
  %loss, %lse = het.cross_entropy %y, %labels {ignore_index = -100 : i64, het.unit = "head"} : (tensor<2x5x90xf32>, tensor<2x5xi64>) -> (tensor<f32>, tensor<2x5xf32>)
  %dy = het.cross_entropy_backward %y, %labels, %lse, %inv {ignore_index = -100 : i64, het.unit = "head", het.phase = "backward"} : (tensor<2x5x90xf32>, tensor<2x5xi64>, tensor<2x5xf32>, tensor<f32>) -> tensor<2x5x90xf32>
  %dx = het.matmul %dy, %h contract [2] [0] {het.unit = "head", het.phase = "backward"} : (tensor<2x5x90xf32>, tensor<90x6xf32>) -> tensor<2x5x6xf32>
  %dt = het.embedding_backward %ids, %dx {rows = 90 : i64, het.unit = "embed", het.phase = "backward"} : (tensor<2x5xi64>, tensor<2x5x6xf32>) -> tensor<90x6xf32>
  het.gradient "wte" %dt {het.unit = "embed", het.phase = "backward"} : tensor<90x6xf32>
  return %loss, %y : tensor<f32>, tensor<2x5x90xf32>
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// The backward of a product by rows is divided as its forward: by columns. No
// rank holds the whole weight, nothing crosses.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-SAME:    (%[[X:.*]]: tensor<2x6xf32>, %[[DY:.*]]: tensor<2x6xf32>)
// CHECK-NOT:     het.parameter "down" :
// CHECK:         %[[DOWN:.*]] = het.parameter "down" offsets [0, 0] of [8, 6] : tensor<5x6xf32>
// CHECK:         %[[DA:.*]] = het.matmul %[[DY]], %[[DOWN]] contract [1] [1] {{.*}} -> tensor<2x5xf32>
// CHECK-NEXT:    %[[DU:.*]] = het.gelu_backward tanh %{{.*}}, %[[DA]]
// CHECK-NEXT:    %[[DUP:.*]] = het.matmul %[[X]], %[[DU]] contract [0] [0] {{.*}} -> tensor<6x5xf32>
// CHECK-NEXT:    het.gradient "up" %[[DUP]] offsets [0, 0] of [6, 8]
// CHECK:         het.gradient "down" %{{.*}} offsets [0, 0] of [8, 6] {{.*}} : tensor<5x6xf32>
// CHECK-LABEL: func.func @"n0/1"
// CHECK-NOT:     het.parameter "down" :
// CHECK:         het.gradient "down" %{{.*}} offsets [5, 0] of [8, 6] {{.*}} : tensor<3x6xf32>
func.func @r0.s0(%x: tensor<2x6xf32>, %dy: tensor<2x6xf32>) -> (tensor<2x6xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %up = het.parameter "up" : tensor<6x8xf32>
  %u = het.matmul %x, %up contract [1] [0] : (tensor<2x6xf32>, tensor<6x8xf32>) -> tensor<2x8xf32>
  %a = het.gelu tanh %u : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %down = het.parameter "down" : tensor<8x6xf32>
  %y = het.matmul %a, %down contract [1] [0] : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %da = het.matmul %dy, %down contract [1] [1] {het.phase = "backward"} : (tensor<2x6xf32>, tensor<8x6xf32>) -> tensor<2x8xf32>
  %du = het.gelu_backward tanh %u, %da {het.phase = "backward"} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %dup = het.matmul %x, %du contract [0] [0] {het.phase = "backward"} : (tensor<2x6xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
  het.gradient "up" %dup {het.phase = "backward"} : tensor<6x8xf32>
  %ddown = het.matmul %a, %dy contract [0] [0] {het.phase = "backward"} : (tensor<2x8xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
  het.gradient "down" %ddown {het.phase = "backward"} : tensor<8x6xf32>
  return %y : tensor<2x6xf32>
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// One weight read in two layouts is held in two boxes: it is not gathered to be
// cut again. Only the partial sum crosses.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-NOT:     dist.send
// CHECK:         %[[COLUMNS:.*]] = het.parameter "w" offsets [0, 0] of [8, 8] : tensor<8x5xf32>
// CHECK-NOT:     dist.send
// CHECK:         %[[ROWS:.*]] = het.parameter "w" offsets [0, 0] of [8, 8] : tensor<5x8xf32>
// CHECK-NEXT:    %[[P:.*]] = het.matmul %{{.*}}, %[[ROWS]]
// CHECK-NEXT:    dist.send %[[P]] to 1
// CHECK-NOT:     dist.send
// CHECK:         return
func.func @r0.s0(%x: tensor<2x8xf32>) -> (tensor<2x8xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %w = het.parameter "w" : tensor<8x8xf32>
  %u = het.matmul %x, %w contract [1] [0] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %a = het.relu %u : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = het.matmul %a, %w contract [1] [0] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 3, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 0, stage = 1, stages = 2, world = 3, ranks = [2], weights = [1],
    devices = ["n0/2"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// A stage that ends behind an activation: the product is divided all the same,
// and gathered where it leaves.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.matmul {{.*}} -> tensor<2x5xf32>
// CHECK:         %[[A:.*]] = het.relu {{.*}} : (tensor<2x5xf32>)
// CHECK:         dist.send %[[A]] to 1 channel {{[0-9]+}} inline
// CHECK:         %[[B:.*]] = dist.recv from 1 channel {{[0-9]+}} inline : tensor<2x3xf32>
// CHECK:         %[[WHOLE:.*]] = het.concat %[[A]], %[[B]] {dim = 1 : i64}
// CHECK:         dist.send %[[WHOLE]] to 2 channel 0 :
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         het.matmul {{.*}} -> tensor<2x3xf32>
func.func @r0.s0(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  %up = het.parameter "up" : tensor<6x8xf32>
  %u = het.matmul %x, %up contract [1] [0] : (tensor<2x6xf32>, tensor<6x8xf32>) -> tensor<2x8xf32>
  %a = het.relu %u : (tensor<2x8xf32>) -> tensor<2x8xf32>
  dist.send %a to 1 channel 0 : tensor<2x8xf32>
  return
}
func.func @r0.s1() attributes {dist.stage = #second} {
  %a = dist.recv from 0 channel 0 : tensor<2x8xf32>
  return
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 3, ranks = [0, 1, 2], weights = [1, 1, 1],
    devices = ["n0/0", "n0/1", "n0/2"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// A large sum among three: each rank sums a third, in rank order, and sends that
// to the others, beginning with the next. No kernel stands between a send and a
// receive, which it would wait for. The first rank has the result; what nobody
// reads on the others is not there.
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         %[[P:.*]] = het.matmul {{.*}} -> tensor<2x10000xf32>
// CHECK-NEXT:    %[[F:.*]] = het.reshape %[[P]] to [20000]
// CHECK-NEXT:    %[[A:.*]] = het.slice %[[F]] offsets [0] sizes [6667] strides [1]
// CHECK-NEXT:    %[[OWN:.*]] = het.slice %[[F]] offsets [6667] sizes [6667] strides [1]
// CHECK-NEXT:    %[[B:.*]] = het.slice %[[F]] offsets [13334] sizes [6666] strides [1]
// CHECK-NEXT:    dist.send %[[B]] to 2 channel [[C:[0-9]+]] inline
// CHECK-NEXT:    dist.send %[[A]] to 0 channel [[C]] inline
// CHECK-NEXT:    %[[R0:.*]] = dist.recv from 0 channel [[C]] inline : tensor<6667xf32>
// CHECK-NEXT:    %[[R2:.*]] = dist.recv from 2 channel [[C]] inline : tensor<6667xf32>
// CHECK-NEXT:    %[[S:.*]] = het.add %[[R0]], %[[OWN]]
// CHECK-NEXT:    %[[SUM:.*]] = het.add %[[S]], %[[R2]]
// CHECK-NEXT:    dist.send %[[SUM]] to 2 channel [[D:[0-9]+]] inline
// CHECK-NEXT:    dist.send %[[SUM]] to 0 channel [[D]] inline
// CHECK-NEXT:    %[[S0:.*]] = dist.recv from 0 channel [[D]] inline : tensor<6667xf32>
// CHECK-NEXT:    %[[S2:.*]] = dist.recv from 2 channel [[D]] inline : tensor<6666xf32>
// CHECK-NEXT:    %[[J:.*]] = het.concat %[[S0]], %[[SUM]], %[[S2]] {dim = 0 : i64}
// CHECK-NEXT:    %[[Y:.*]] = het.reshape %[[J]] to [2, 10000]
// CHECK-NEXT:    return
func.func @r0.s0(%x: tensor<2x6xf32>) -> (tensor<2x10000xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %up = het.parameter "up" : tensor<6x9xf32>
  %u = het.matmul %x, %up contract [1] [0] : (tensor<2x6xf32>, tensor<6x9xf32>) -> tensor<2x9xf32>
  %a = het.relu %u : (tensor<2x9xf32>) -> tensor<2x9xf32>
  %down = het.parameter "down" : tensor<9x10000xf32>
  %y = het.matmul %a, %down contract [1] [0] : (tensor<2x9xf32>, tensor<9x10000xf32>) -> tensor<2x10000xf32>
  %z = het.tanh %y : (tensor<2x10000xf32>) -> tensor<2x10000xf32>
  return %z : tensor<2x10000xf32>
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// Experts with one weight for all: whole experts are divided, and one sum of the
// layer's output is all that ranks exchange.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:     het.parameter "up" offsets [0, 0, 0] of [3, 8, 6] : tensor<2x8x6xf32>
// CHECK:     het.parameter "down" offsets [0, 0, 0] of [3, 6, 8] : tensor<2x6x8xf32>
// CHECK-NOT: dist.send
// CHECK:     %[[S:.*]] = het.reduce sum %{{.*}} dims [1] : (tensor<2x2x6xf32>) -> tensor<2x6xf32>
// CHECK:     dist.send %[[S]] to 1
// CHECK-NOT: dist.send
// CHECK-LABEL: func.func @"n0/1"
// CHECK:     het.parameter "up" offsets [2, 0, 0] of [3, 8, 6] : tensor<1x8x6xf32>
func.func @r0.s0(%x: tensor<2x6xf32>, %shares: tensor<2x3x1xf32>) -> (tensor<2x6xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %up = het.parameter "up" : tensor<3x8x6xf32>
  %down = het.parameter "down" : tensor<3x6x8xf32>
  %u = het.matmul %x, %up contract [1] [2] : (tensor<2x6xf32>, tensor<3x8x6xf32>) -> tensor<2x3x8xf32>
  %a = het.silu %u : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %d = het.matmul %a, %down batch [1] [0] contract [2] [2] : (tensor<2x3x8xf32>, tensor<3x6x8xf32>) -> tensor<3x2x6xf32>
  %t = het.transpose %d by [1, 0, 2] : (tensor<3x2x6xf32>) -> tensor<2x3x6xf32>
  %w = het.mul %t, %shares : (tensor<2x3x6xf32>, tensor<2x3x1xf32>) -> tensor<2x3x6xf32>
  %y = het.reduce sum %w dims [1] : (tensor<2x3x6xf32>) -> tensor<2x6xf32>
  return %y : tensor<2x6xf32>
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// Two readers of a parameter have the same part of it once.
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         %[[W:.*]] = het.parameter "w" offsets [0, 4] of [6, 8]
// CHECK-NEXT:    %[[M:.*]] = het.matmul %{{.*}}, %[[W]]
// CHECK-NEXT:    %[[R:.*]] = het.relu %[[M]]
// CHECK-NEXT:    het.matmul %[[R]], %[[W]]
func.func @r0.s0(%x: tensor<2x6xf32>, %v: tensor<2x6xf32>) -> (tensor<2x6xf32> {het.name = "y"}) attributes {dist.stage = #stage} {
  %w = het.parameter "w" : tensor<6x8xf32>
  %0 = het.matmul %x, %w contract [1] [0] : (tensor<2x6xf32>, tensor<6x8xf32>) -> tensor<2x8xf32>
  %1 = het.relu %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %w2 = het.parameter "w" : tensor<6x8xf32>
  %2 = het.matmul %1, %w2 contract [1] [1] : (tensor<2x8xf32>, tensor<6x8xf32>) -> tensor<2x6xf32>
  %3 = het.tanh %2 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  return %3 : tensor<2x6xf32>
}
