// State is spread by the holders' shares: n0/0, which would own the larger slice, owns nothing.
//
// RUN: autohet-opt %s --dist-synchronize-gradients | FileCheck %s --check-prefix=EVEN
// RUN: autohet-opt %s --dist-synchronize-gradients=state-shares=n0/0=0,n0/1=2 | FileCheck %s
//
// EVEN-LABEL:  func.func @"n0/0"
// EVEN:          dist.update "w" at [0, 0] of [8, 6]
// CHECK-LABEL: func.func @"n0/0"
// CHECK-NOT:     dist.update
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         dist.update "w" at [0, 0] of [8, 6]
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         dist.update "w" at [0, 4] of [8, 6]

func.func @"n0/0"(%g: tensor<8x6xf32>) -> tensor<8x6xf32> attributes {dist.program = #dist.program<device = "n0/0",
    rank = 0, world = 3, replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 0, global_batch = 4>} {
  %w = het.parameter "w" : tensor<8x6xf32>
  het.gradient "w" %g {het.phase = "backward"} : tensor<8x6xf32>
  return %w : tensor<8x6xf32>
}
func.func @"n0/1"(%g: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {dist.program = #dist.program<device = "n0/1",
    rank = 1, world = 3, replica = 1, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 2, global_batch = 4>} {
  %w = het.parameter "w" offsets [0, 0] of [8, 6] : tensor<8x4xf32>
  het.gradient "w" %g offsets [0, 0] of [8, 6] {het.phase = "backward"} : tensor<8x4xf32>
  return %w : tensor<8x4xf32>
}
func.func @"n0/2"(%g: tensor<8x2xf32>) -> tensor<8x2xf32> attributes {dist.program = #dist.program<device = "n0/2",
    rank = 2, world = 3, replica = 1, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 2, global_batch = 4>} {
  %w = het.parameter "w" offsets [0, 4] of [8, 6] : tensor<8x2xf32>
  het.gradient "w" %g offsets [0, 4] of [8, 6] {het.phase = "backward"} : tensor<8x2xf32>
  return %w : tensor<8x2xf32>
}
