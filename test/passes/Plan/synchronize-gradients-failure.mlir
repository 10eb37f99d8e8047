// What devices' functions written by hand can have wrong between them.
//
// RUN: autohet-opt %s --dist-synchronize-gradients --split-input-file --verify-diagnostics
// RUN: not autohet-opt %S/synchronize-gradients.mlir --dist-synchronize-gradients=state-shares=n0/0 --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TEXT
// RUN: not autohet-opt %S/synchronize-gradients.mlir --dist-synchronize-gradients=state-shares=n0/9=1 --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DEVICE

// TEXT: error: 'n0/0' is no share in state, wanted DEVICE=N, N 0 to 1000000
// DEVICE: error: 'n0/9=1' is of no device of the plan

func.func @"n0/0"(%g: tensor<2xf32>) attributes {dist.program = #dist.program<device = "n0/0", rank = 0, world = 2, replica = 0,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 4>} {
  %0 = het.parameter "a" : tensor<2xf32>
  het.gradient "a" %g : tensor<2xf32>
  return
}
func.func @"n0/1"(%g: tensor<2xf32>) attributes {dist.program = #dist.program<device = "n0/1", rank = 1, world = 2, replica = 1,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 2, global_batch = 4>} {
  // expected-error @+1 {{is of "a" with shape [3] of 'f32', but another use has shape [2] of 'f32'}}
  %0 = het.parameter "a" : tensor<3xf32>
  het.gradient "a" %g : tensor<2xf32>
  return
}

// -----

func.func @unlike_elements(%g: tensor<2xf32>) attributes {dist.program = #dist.program<device = "n0/0", rank = 0, world = 1, replica = 0,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 4>} {
  %0 = het.parameter "a" : tensor<2xi64>
  // expected-error @+1 {{is of "a" with shape [2] of 'f32', but another use has shape [2] of 'i64'}}
  het.gradient "a" %g : tensor<2xf32>
  return
}

// -----

#program = #dist.program<device = "n0/0", rank = 0, world = 1, replica = 0, stage = 0, stages = 1, microbatches = 1,
    microbatch_size = 2, first_sample = 0, global_batch = 4>
func.func @one() attributes {dist.program = #program} {
  return
}
// expected-error @+1 {{has rank 0 like 'one'}}
func.func @other() attributes {dist.program = #program} {
  return
}
