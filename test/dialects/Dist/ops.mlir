// Every op and attribute, read, printed and read again: in its own syntax and in
// the generic one.
//
// RUN: autohet-opt %s --verify-roundtrip | FileCheck %s
// RUN: autohet-opt %s > %t.pretty
// RUN: autohet-opt %s --mlir-print-op-generic | autohet-opt | diff %t.pretty -

// CHECK-LABEL: func.func @stage
// CHECK-SAME:    dist.stage = #dist.stage<replica = 0, stage = 1, stages = 2, world = 3, ranks = [1, 2], weights = [2, 1], devices = ["n0/1", "n1/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @stage() attributes {dist.stage = #dist.stage<replica = 0, stage = 1, stages = 2, world = 3,
    ranks = [1, 2], weights = [2, 1], devices = ["n0/1", "n1/0"], microbatches = 4, microbatch_size = 2,
    first_sample = 0, global_batch = 8>} {
  return
}

// CHECK-LABEL: func.func @"n0/1"
// CHECK-SAME:    dist.program = #dist.program<device = "n0/1", rank = 1, world = 3, replica = 0, stage = 1, stages = 2, microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
func.func @"n0/1"(%x: tensor<4x6xf32>) attributes {dist.program = #dist.program<device = "n0/1", rank = 1,
    world = 3, replica = 0, stage = 1, stages = 2, microbatches = 4, microbatch_size = 2, first_sample = 0,
    global_batch = 8>} {
  // A transfer of the pipeline runs beside computation, one of a collective does not.
  // CHECK: dist.send %[[X:.*]] to 0 channel 3 : tensor<4x6xf32>
  dist.send %x to 0 channel 3 : tensor<4x6xf32>
  // CHECK: dist.send %[[X]] to 2 channel 4 inline : tensor<4x6xf32>
  dist.send %x to 2 channel 4 inline : tensor<4x6xf32>
  // CHECK: dist.recv from 0 channel 5 : tensor<4x6xf32>
  %y = dist.recv from 0 channel 5 : tensor<4x6xf32>
  // CHECK: dist.recv from 2 channel 4 inline : tensor<4x6xf32>
  %z = dist.recv from 2 channel 4 inline : tensor<4x6xf32>

  // CHECK: %[[G:.*]] = dist.local_gradient "w" at [4, 0] of [8, 6] : tensor<4x6xf32>
  %g = dist.local_gradient "w" at [4, 0] of [8, 6] : tensor<4x6xf32>
  // CHECK: dist.norm %[[G]] : tensor<4x6xf32>
  dist.norm %g : tensor<4x6xf32>
  // CHECK: dist.agree
  dist.agree
  // CHECK: %[[P:.*]] = dist.update "w" at [4, 0] of [8, 6] by %[[G]] : tensor<4x6xf32>
  %p = dist.update "w" at [4, 0] of [8, 6] by %g : tensor<4x6xf32>
  // CHECK: dist.store_parameter "w" %[[P]] at [4, 0] of [8, 6] : tensor<4x6xf32>
  dist.store_parameter "w" %p at [4, 0] of [8, 6] : tensor<4x6xf32>
  // CHECK: dist.store_parameter "w" rows %[[P]] at [0, 0] of [8, 6] : tensor<4x6xf32>
  dist.store_parameter "w" rows %p at [0, 0] of [8, 6] : tensor<4x6xf32>
  return
}
