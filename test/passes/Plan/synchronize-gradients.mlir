// Cells, owners, and what goes where.
//
// RUN: autohet-opt %s --dist-synchronize-gradients --split-input-file | FileCheck %s
// RUN: autohet-opt %s --dist-synchronize-gradients=state-owner=first --split-input-file \
// RUN:   | FileCheck %s --check-prefix=FIRST
// RUN: autohet-opt %s --dist-synchronize-gradients=state-owner=n0/2 --split-input-file \
// RUN:   | FileCheck %s --check-prefix=DEVICE
// RUN: not autohet-opt %s --dist-synchronize-gradients=state-owner=sprad --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OWNER

// OWNER: error: unknown state owner 'sprad', wanted spread, first or a device of the plan

// Two replicas: one holds "w" whole, the other as 4 and 2 columns. The common
// refinement is two cells, each with two holders; the second goes to who owns less.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         %[[G0:.*]] = dist.local_gradient "w" at [0, 0] of [8, 6] {het.phase = "update"} : tensor<8x6xf32>
// CHECK:         %[[S0:.*]] = het.slice %[[G0]] offsets [0, 0] sizes [8, 4]
// CHECK:         %[[R0:.*]] = dist.recv from 1 channel [[A:[0-9]+]] inline {het.phase = "update"} : tensor<8x4xf32>
// The parts are added in the order of ranks.
// CHECK:         %[[T0:.*]] = het.add %[[S0]], %[[R0]]
// CHECK:         dist.norm %[[T0]]
// CHECK:         %[[G1:.*]] = dist.local_gradient "w"
// CHECK:         %[[S1:.*]] = het.slice %[[G1]] offsets [0, 4] sizes [8, 2]
// CHECK:         dist.send %[[S1]] to 2 channel [[B:[0-9]+]] inline
// CHECK-NOT:     dist.norm
// CHECK:         dist.agree
// CHECK:         %[[P0:.*]] = dist.update "w" at [0, 0] of [8, 6] by %[[T0]] {het.phase = "update"} : tensor<8x4xf32>
// CHECK:         dist.send %[[P0]] to 1 channel [[C:[0-9]+]] inline
// CHECK:         %[[P1:.*]] = dist.recv from 2 channel [[D:[0-9]+]] inline {het.phase = "update"} : tensor<8x2xf32>
// CHECK:         %[[P:.*]] = het.concat %[[P0]], %[[P1]] {dim = 1 : i64
// CHECK:         dist.store_parameter "w" %[[P]] at [0, 0] of [8, 6]
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         dist.send %{{.*}} to 0 channel [[A]] inline
// CHECK-NOT:     dist.update
// CHECK:         %[[N:.*]] = dist.recv from 0 channel [[C]] inline
// CHECK:         dist.store_parameter "w" %[[N]] at [0, 0] of [8, 6] {het.phase = "update"} : tensor<8x4xf32>
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         %[[G:.*]] = dist.local_gradient "w" at [0, 4] of [8, 6]
// CHECK:         %[[R:.*]] = dist.recv from 0 channel [[B]] inline
// CHECK:         het.add %[[R]], %[[G]]
// CHECK:         %[[Q:.*]] = dist.update "w" at [0, 4] of [8, 6]
// CHECK:         dist.send %[[Q]] to 0 channel [[D]] inline
// CHECK:         dist.store_parameter "w" %[[Q]] at [0, 4] of [8, 6]

// FIRST-LABEL:  func.func @"n0/0"
// FIRST-COUNT-2:  dist.update "w"
// FIRST-LABEL:  func.func @"n0/2"
// FIRST-NOT:      dist.update
// FIRST:          return
// DEVICE-LABEL: func.func @"n0/2"
// DEVICE:         dist.update "w" at [0, 4] of [8, 6]

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

// -----

// Positions beyond the sequence are read by no op. They are a part of the
// parameter all the same: their gradient is zero, and they have weight decay.
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         dist.norm
// CHECK:         %[[Z:.*]] = het.constant
// CHECK:         %[[ZEROS:.*]] = het.broadcast %[[Z]] to [2, 3]
// CHECK:         dist.norm %[[ZEROS]]
// CHECK:         dist.agree
// CHECK:         dist.update "wpe" at [0, 0] of [6, 3]
// CHECK:         dist.update "wpe" at [4, 0] of [6, 3] by %[[ZEROS]]
// CHECK:         dist.store_parameter "wpe" %{{.*}} at [0, 0] of [6, 3] {het.phase = "update"} : tensor<4x3xf32>
func.func @"n0/2"(%g: tensor<4x3xf32>) -> tensor<4x3xf32> attributes {dist.program = #dist.program<device = "n0/2",
    rank = 0, world = 1, replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 0, global_batch = 2>} {
  %w = het.parameter "wpe" offsets [0, 0] of [6, 3] : tensor<4x3xf32>
  het.gradient "wpe" %g offsets [0, 0] of [6, 3] {het.phase = "backward"} : tensor<4x3xf32>
  return %w : tensor<4x3xf32>
}

// -----

// A program that is not trained is left as it is.
// CHECK-LABEL: func.func @"n0/0"
// CHECK-NEXT:    return
func.func @"n0/0"() attributes {dist.program = #dist.program<device = "n0/0", rank = 0, world = 1,
    replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0,
    global_batch = 2>} {
  return
}
