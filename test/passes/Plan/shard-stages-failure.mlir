// What stages written by hand can have wrong between them.
//
// RUN: autohet-opt %s --dist-shard-stages --split-input-file --verify-diagnostics

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 0, stage = 1, stages = 2, world = 2, ranks = [1], weights = [1],
    devices = ["n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @unlike_channels(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  // expected-error @+1 {{has no other end: nothing receives channel 0 from stage 0 to stage 1 of replica 0}}
  dist.send %x to 1 channel 0 : tensor<2x6xf32>
  return
}
func.func @r0.s1() attributes {dist.stage = #second} {
  %y = dist.recv from 0 channel 1 : tensor<2x6xf32>
  return
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 1, stage = 1, stages = 2, world = 2, ranks = [1], weights = [1],
    devices = ["n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @no_such_stage(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  // expected-error @+1 {{has no other end: nothing receives channel 0 from stage 0 to stage 1 of replica 0}}
  dist.send %x to 1 channel 0 : tensor<2x6xf32>
  return
}
func.func @r1.s1() attributes {dist.stage = #second} {
  %y = dist.recv from 0 channel 0 : tensor<2x6xf32>
  return
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 0, stage = 1, stages = 2, world = 2, ranks = [1], weights = [1],
    devices = ["n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @unlike_types(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  // expected-error @+1 {{moves 'tensor<2x6xf32>', but the other end 'tensor<2x7xf32>'}}
  dist.send %x to 1 channel 0 : tensor<2x6xf32>
  return
}
func.func @r0.s1() attributes {dist.stage = #second} {
  %y = dist.recv from 0 channel 0 : tensor<2x7xf32>
  return
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @twice(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  dist.send %x to 1 channel 0 : tensor<2x6xf32>
  // expected-error @+1 {{uses channel 0 from stage 0 to stage 1 a second time}}
  dist.send %x to 1 channel 0 : tensor<2x6xf32>
  return
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 2, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @two_values(%x: tensor<2x6xf32>) attributes {dist.stage = #first} {
  // expected-error @+1 {{moves 2 values between stages, wanted one}}
  dist.send %x, %x to 1 channel 0 : tensor<2x6xf32>, tensor<2x6xf32>
  return
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @one() attributes {dist.stage = #stage} {
  return
}
// expected-error @+1 {{is stage 0 of replica 0 like 'one'}}
func.func @other() attributes {dist.stage = #stage} {
  return
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 1, stage = 0, stages = 1, world = 2, ranks = [0], weights = [1],
    devices = ["n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @one() attributes {dist.stage = #first} {
  return
}
// expected-error @+1 {{has rank 0, which serves 'one' already}}
func.func @other() attributes {dist.stage = #second} {
  return
}

// -----

#first = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
#second = #dist.stage<replica = 1, stage = 0, stages = 1, world = 3, ranks = [1], weights = [1],
    devices = ["n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @one() attributes {dist.stage = #first} {
  return
}
// expected-error @+1 {{is of a world of 3, others of one of 2}}
func.func @other() attributes {dist.stage = #second} {
  return
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 1, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

func.func @other_dialects(%x: tensor<2xf32>) attributes {dist.stage = #stage} {
  // expected-error @+1 {{is no op of het or dist, and 'other_dialects' is placed}}
  %y = math.exp %x : tensor<2xf32>
  return
}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 1, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// expected-error @+1 {{must be one block that ends in 'func.return'}}
func.func private @declaration(tensor<2xf32>) attributes {dist.stage = #stage}

// -----

#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 1, ranks = [0], weights = [1],
    devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>

// expected-error @+1 {{must have static tensors of numbers as arguments and results, but has 'index'}}
func.func @scalars(%i: index) attributes {dist.stage = #stage} {
  return
}
