// What the pass refuses.
//
// RUN: autohet-opt %s --exec-order-microbatches --split-input-file --verify-diagnostics
// RUN: not autohet-opt %s --exec-order-microbatches=schedule=zigzag 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not autohet-opt %s --exec-order-microbatches=optimizer=newton 2>&1 | FileCheck %s --check-prefix=OPTIMIZER

// SCHEDULE: error: unknown schedule 'zigzag', known are 1f1b and gpipe
// OPTIMIZER: error: unknown optimizer 'newton', known are sgd, adam, adamw and none

func.func @not_normal(%x: tensor<2x8x5xf32> {het.name = "x"}, %w: tensor<8x6xf32> {het.name = "w"})
    attributes {dist.program = #dist.program<
    device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1, microbatches = 1,
    microbatch_size = 2, first_sample = 0, global_batch = 2>} {
  // expected-error @+1 {{is not one gemm; run exec-normalize-matmuls first}}
  %0 = het.matmul %x, %w contract [1] [0] : (tensor<2x8x5xf32>, tensor<8x6xf32>) -> tensor<2x5x6xf32>
  return
}

// -----

func.func @not_a_kernel(%x: tensor<2xf32> {het.name = "x"}) attributes {dist.program = #dist.program<
    device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1, microbatches = 1,
    microbatch_size = 2, first_sample = 0, global_batch = 2>} {
  // expected-error @+1 {{is neither a kernel nor a command; run exec-form-kernels first}}
  %0 = het.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @no_gradient() attributes {dist.program = #dist.program<device = "n0/0", rank = 0, world = 1,
    replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0,
    global_batch = 2>} {
  // expected-error @+1 {{reads the gradient of "w", which nothing on this device adds to}}
  %0 = dist.local_gradient "w" at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{reads argument #0, which has no name to be fed by}}
func.func @no_name(%x: tensor<2xf32>) -> tensor<2xf32> attributes {dist.program = #dist.program<
    device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1, microbatches = 1,
    microbatch_size = 2, first_sample = 0, global_batch = 2>} {
  return %x : tensor<2xf32>
}
