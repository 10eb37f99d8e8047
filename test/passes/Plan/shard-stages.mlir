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
