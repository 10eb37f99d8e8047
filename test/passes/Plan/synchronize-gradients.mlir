// Cells, owners, and what goes where.
//
// RUN: autohet-opt %s --dist-synchronize-gradients --split-input-file | FileCheck %s
// RUN: autohet-opt %s --dist-synchronize-gradients=state-owner=first --split-input-file \
// RUN:   | FileCheck %s --check-prefix=FIRST
// RUN: autohet-opt %s --dist-synchronize-gradients=state-owner=n0/2 --split-input-file \
// RUN:   | FileCheck %s --check-prefix=DEVICE
// RUN: autohet-opt %s --dist-synchronize-gradients=bucket-bytes=16 --split-input-file \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: not autohet-opt %s --dist-synchronize-gradients=state-owner=sprad --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OWNER

// OWNER: error: unknown state owner 'sprad', wanted spread, first or a device of the plan

// Two replicas: one holds "w" whole, the other as 4 and 2 columns. The common
// refinement is two cells, each with two holders; the second goes to who owns less.
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.gradient "w"
// CHECK:         %[[G1:.*]] = dist.local_gradient "w" at [0, 0] of [8, 6] {het.phase = "reduce"} : tensor<8x6xf32>
// CHECK:         %[[S1:.*]] = het.slice %[[G1]] offsets [0, 4] sizes [8, 2]
// CHECK:         dist.send %[[S1]] to 2 channel [[B:[0-9]+]] inline {{.*}}het.phase = "reduce"}
// CHECK:         %[[R0:.*]] = dist.recv from 1 channel [[A:[0-9]+]] inline {{.*}}het.phase = "reduce"} : tensor<8x4xf32>
// CHECK:         %[[G0:.*]] = dist.local_gradient "w"
// CHECK:         %[[S0:.*]] = het.slice %[[G0]] offsets [0, 0] sizes [8, 4]
// The parts are added in the order of ranks.
// CHECK:         %[[T0:.*]] = het.add %[[S0]], %[[R0]]
// CHECK:         dist.norm %[[T0]]
// CHECK-NOT:     dist.norm
// CHECK:         dist.agree
// CHECK:         %[[P1:.*]] = dist.recv from 2 channel [[D:[0-9]+]] inline {{.*}}het.phase = "update"} : tensor<8x2xf32>
// CHECK:         %[[P0:.*]] = dist.update "w" at [0, 0] of [8, 6] by %[[T0]] {het.phase = "update"} : tensor<8x4xf32>
// CHECK:         dist.send %[[P0]] to 1 channel [[C:[0-9]+]] inline
// CHECK:         %[[P:.*]] = het.concat %[[P0]], %[[P1]] {dim = 1 : i64
// CHECK:         dist.store_parameter "w" %[[P]] at [0, 0] of [8, 6]
// CHECK-LABEL: func.func @"n0/1"
// CHECK:         dist.send %{{.*}} to 0 channel [[A]] inline
// CHECK-NOT:     dist.update
// CHECK:         %[[N:.*]] = dist.recv from 0 channel [[C]] inline
// CHECK:         dist.store_parameter "w" %[[N]] at [0, 0] of [8, 6] {het.phase = "update"} : tensor<8x4xf32>
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         %[[R:.*]] = dist.recv from 0 channel [[B]] inline
// CHECK:         %[[G:.*]] = dist.local_gradient "w" at [0, 4] of [8, 6]
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
// CHECK:         %[[Z:.*]] = het.constant
// CHECK:         %[[ZEROS:.*]] = het.broadcast %[[Z]] to [2, 3]
// CHECK:         dist.norm %[[ZEROS]]
// CHECK:         dist.norm
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

// Slices of equal parties share a message, which starts where the last of its
// gradients is complete; the update goes the other way round, first parameters
// first. The first device owns "b", the largest, the second "a" and "c".
// CHECK-LABEL: func.func @"n0/0"
// CHECK:         het.gradient "c"
// CHECK-NEXT:    het.gradient "b"
// CHECK-NEXT:    %[[R:.*]] = dist.recv from 1 channel [[GB:[0-9]+]] inline {{.*}}het.phase = "reduce"} : tensor<8xf32>
// CHECK-NEXT:    het.gradient "a"
// CHECK-NEXT:    %[[A:.*]] = dist.local_gradient "a"
// CHECK-NEXT:    %[[C:.*]] = dist.local_gradient "c"
// CHECK-NEXT:    dist.send %[[A]], %[[C]] to 1 channel [[GA:[0-9]+]] inline {dist.label = "gradient of a and 1 more", het.phase = "reduce"} : tensor<2xf32>, tensor<4xf32>
// CHECK:         dist.agree
// CHECK-NEXT:    dist.recv from 1 channel [[PA:[0-9]+]] inline {dist.label = "new a and 1 more", het.phase = "update"} : tensor<2xf32>, tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = dist.update "b"
// CHECK-NEXT:    dist.send %[[B]] to 1 channel [[PB:[0-9]+]] inline
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         dist.send %{{.*}} to 0 channel [[GB]] inline
// CHECK:         %[[R:.*]]:2 = dist.recv from 0 channel [[GA]] inline
// CHECK:         dist.agree
// CHECK-NEXT:    dist.recv from 0 channel [[PB]] inline {{.*}}het.phase = "update"}
// CHECK-NEXT:    %[[A1:.*]] = dist.update "a"
// CHECK-NEXT:    %[[C1:.*]] = dist.update "c"
// CHECK-NEXT:    dist.send %[[A1]], %[[C1]] to 0 channel [[PA]] inline

// SMALL-LABEL: func.func @"n0/0"(%{{.*}}: tensor<2xf32>,
// SMALL:         het.gradient "c"
// SMALL:         dist.send %{{.*}} to 1 channel {{.*}} : tensor<4xf32>
// SMALL-NEXT:    het.gradient "b"
// SMALL:         het.gradient "a"
// SMALL:         dist.send %{{.*}} to 1 channel {{.*}} : tensor<2xf32>
func.func @"n0/0"(%a: tensor<2xf32>, %b: tensor<8xf32>, %c: tensor<4xf32>) attributes {dist.program = #dist.program<device = "n0/0",
    rank = 0, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 0, global_batch = 4>} {
  %0 = het.parameter "a" : tensor<2xf32>
  %1 = het.parameter "b" : tensor<8xf32>
  %2 = het.parameter "c" : tensor<4xf32>
  het.gradient "c" %c {het.phase = "backward"} : tensor<4xf32>
  het.gradient "b" %b {het.phase = "backward"} : tensor<8xf32>
  het.gradient "a" %a {het.phase = "backward"} : tensor<2xf32>
  return
}
func.func @"n0/2"(%a: tensor<2xf32>, %b: tensor<8xf32>, %c: tensor<4xf32>) attributes {dist.program = #dist.program<device = "n0/2",
    rank = 1, world = 2, replica = 1, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 2, global_batch = 4>} {
  %0 = het.parameter "a" : tensor<2xf32>
  %1 = het.parameter "b" : tensor<8xf32>
  %2 = het.parameter "c" : tensor<4xf32>
  het.gradient "c" %c {het.phase = "backward"} : tensor<4xf32>
  het.gradient "b" %b {het.phase = "backward"} : tensor<8xf32>
  het.gradient "a" %a {het.phase = "backward"} : tensor<2xf32>
  return
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

// -----

// A table beside little else: its rows are spread over its holders, each part
// is used where it lies.
// CHECK-LABEL: func.func @"n0/5"
// CHECK:         %[[G:.*]] = dist.local_gradient "wte" at [32768, 0] of [65536, 8] {{.*}} : tensor<32768x8xf32>
// CHECK-NEXT:    dist.send %[[G]] to 1
// CHECK:         %[[NEW:.*]] = dist.recv from 1 channel {{.*}} inline {dist.label = "new wte", {{.*}} : tensor<32768x8xf32>
// CHECK:         %[[OWN:.*]] = dist.update "wte" at [0, 0] of [65536, 8] {{.*}} : tensor<32768x8xf32>
// CHECK:         dist.send %[[OWN]] to 1
// CHECK-DAG:     dist.store_parameter "wte" rows %[[OWN]] at [0, 0] of [65536, 8] {{.*}} : tensor<32768x8xf32>
// CHECK-DAG:     dist.store_parameter "wte" rows %[[NEW]] at [32768, 0] of [65536, 8] {{.*}} : tensor<32768x8xf32>
// CHECK-LABEL: func.func @"n0/2"
// CHECK:         dist.update "wte" at [32768, 0] of [65536, 8] {{.*}} : tensor<32768x8xf32>
//
// FIRST-LABEL: func.func @"n0/5"
// FIRST:         dist.update "wte" at [0, 0] of [65536, 8] {{.*}} : tensor<65536x8xf32>
// FIRST-LABEL: func.func @"n0/2"
// FIRST-NOT:     dist.update
func.func @"n0/5"(%g: tensor<65536x8xf32>) attributes {dist.program = #dist.program<device = "n0/5",
    rank = 0, world = 2, replica = 0, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 0, global_batch = 4>} {
  %0 = het.parameter "wte" : tensor<65536x8xf32>
  het.gradient "wte" %g {het.phase = "backward"} : tensor<65536x8xf32>
  return
}
func.func @"n0/2"(%g: tensor<65536x8xf32>) attributes {dist.program = #dist.program<device = "n0/2",
    rank = 1, world = 2, replica = 1, stage = 0, stages = 1, microbatches = 1, microbatch_size = 2,
    first_sample = 2, global_batch = 4>} {
  %0 = het.parameter "wte" : tensor<65536x8xf32>
  het.gradient "wte" %g {het.phase = "backward"} : tensor<65536x8xf32>
  return
}
