// What one op or attribute can say wrongly, named after the constraint in
// DistOps.td that it breaks. A transfer without its other end cannot be seen in
// one function.
//
// RUN: autohet-opt %s --split-input-file --verify-diagnostics

func.func @update_c2(%g: tensor<4xf32>) {
  // expected-error @+1 {{failed to verify that all of {gradient, result} have same type}}
  %0 = "dist.update"(%g) <{name = "w", offsets = array<i64: 0>, global_shape = array<i64: 4>}> : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @send_ranked(%x: tensor<*xf32>) {
  // expected-error @+1 {{operand #0 must be variadic of static tensor (2^40 elements at most) of number values, but got 'tensor<*xf32>'}}
  "dist.send"(%x) <{peer = 1 : i64, channel = 0 : i64}> : (tensor<*xf32>) -> ()
  return
}

// -----

func.func @recv_ranked() {
  // expected-error @+1 {{result #0 must be variadic of static tensor (2^40 elements at most) of number values, but got 'tensor<*xf32>'}}
  %0 = "dist.recv"() <{peer = 1 : i64, channel = 0 : i64}> : () -> tensor<*xf32>
  return
}

// -----

func.func @local_gradient_c1() {
  // expected-error @+1 {{reaches outside dim 0: offset 3 and size 4, but the whole has 6}}
  %0 = dist.local_gradient "w" at [3] of [6] : tensor<4xf32>
  return
}

// -----

func.func @update_c1(%g: tensor<4xf32>) {
  // expected-error @+1 {{describes a box of rank 1 with 2 offsets of 1 dims}}
  %0 = dist.update "w" at [0, 0] of [4] by %g : tensor<4xf32>
  return
}

// -----

func.func @store_parameter_c1(%v: tensor<4xf32>) {
  // expected-error @+1 {{reaches outside dim 0: offset -1 and size 4, but the whole has 6}}
  dist.store_parameter "w" %v at [-1] of [6] : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{rank 2 in a world of 2}}
#program = #dist.program<device = "n0/0", rank = 2, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @program_c1() attributes {dist.program = #program}

// -----

// expected-error @+1 {{stage 1 of 1}}
#program = #dist.program<device = "n0/0", rank = 0, world = 2, replica = 0, stage = 1, stages = 1, microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @program_c1_stage() attributes {dist.program = #program}

// -----

// expected-error @+1 {{needs positive counts, but has 0 microbatches of 2}}
#program = #dist.program<device = "n0/0", rank = 0, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 0, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @program_c2() attributes {dist.program = #program}

// -----

// expected-error @+1 {{4 microbatches of 2 samples from sample 2 on reach outside a batch of 8}}
#program = #dist.program<device = "n0/0", rank = 0, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 4, microbatch_size = 2, first_sample = 2, global_batch = 8>
func.func @program_c2_batch() attributes {dist.program = #program}

// -----

// expected-error @+1 {{rank 2 in a world of 2}}
#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 2], weights = [1, 1], devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @stage_c1() attributes {dist.stage = #stage}

// -----

// expected-error @+1 {{needs positive counts, but has 4 microbatches of 0}}
#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 1], devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 0, first_sample = 0, global_batch = 8>
func.func @stage_c2() attributes {dist.stage = #stage}

// -----

// expected-error @+1 {{has 2 ranks, 1 weights and 2 devices}}
#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1], devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @stage_c3() attributes {dist.stage = #stage}

// -----

// expected-error @+1 {{a weight is 0, wanted 1 or more}}
#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 0], devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @stage_c3_weight() attributes {dist.stage = #stage}

// -----

// expected-error @+1 {{devices are named by strings, but are ["n0/0", 1]}}
#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [1, 1], devices = ["n0/0", 1], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @stage_c3_name() attributes {dist.stage = #stage}

// -----

func.func @send_c1() {
  // expected-error @+1 {{moves no value, wanted at least one}}
  "dist.send"() <{peer = 1 : i64, channel = 0 : i64}> : () -> ()
  return
}

// -----

func.func @send_c2(%x: tensor<2xf32>) {
  // expected-error @+1 {{has peer -1, wanted 0 to 65535}}
  dist.send %x to -1 channel 0 : tensor<2xf32>
  return
}

// -----

func.func @recv_c2() {
  // expected-error @+1 {{has channel 1048576, wanted 0 to 1048575}}
  %x = dist.recv from 0 channel 1048576 : tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{attribute 'dist.program' must be a #dist.program of a function, but is 3 : i64}}
func.func @program_attribute() attributes {dist.program = 3 : i64} {
  return
}

// -----

// expected-error @+1 {{result 0: 'dist.offsets' must be an array of i64, one a dim, but is array<i64: 0>}}
func.func @offsets(%x: tensor<2x3xf32>) -> (tensor<2x3xf32> {dist.offsets = array<i64: 0>}) {
  return %x : tensor<2x3xf32>
}

// -----

// expected-error @+1 {{stage 0 of 3 in a world of 2}}
#program = #dist.program<device = "n0/0", rank = 1, world = 2, replica = 0, stage = 0, stages = 3, microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @program_c1_stages() attributes {dist.program = #program}

// -----

// expected-error @+1 {{reach outside a batch of 9223372036854775807, which is too large}}
#program = #dist.program<device = "n0/0", rank = 1, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 4, microbatch_size = 9223372036854775807, first_sample = 0, global_batch = 9223372036854775807>
func.func @program_c2_overflow() attributes {dist.program = #program}

// -----

// expected-error @+1 {{the weights [2147483647, 1] add up to 2^31 or more}}
#stage = #dist.stage<replica = 0, stage = 0, stages = 1, world = 2, ranks = [0, 1], weights = [2147483647, 1],
    devices = ["n0/0", "n0/1"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @stage_c4() attributes {dist.stage = #stage}
