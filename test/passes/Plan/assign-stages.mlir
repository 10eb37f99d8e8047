// A model cut between two devices, from the short form and from a plan.
//
// RUN: autohet-opt %s --dist-assign-stages=stages='4x2:embed@n0/0,head@n1/0' | FileCheck %s
// RUN: autohet-opt %s --dist-assign-stages=stages='4x2:embed@n0/0,head@n1/0;1x2:embed&head@n0/1' \
// RUN:   | FileCheck %s --check-prefix=REPLICAS

// Only the arguments that a stage reads, only the results that it computes.
// CHECK-NOT:   @model
// CHECK-LABEL: func.func @r0.s0
// CHECK-SAME:    (%[[X:.*]]: tensor<2x6xf32> {het.name = "x"})
// CHECK-SAME:    dist.stage = #dist.stage<replica = 0, stage = 0, stages = 2, world = 2, ranks = [0], weights = [1], devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
// The chain of unit `inputs` is computed where it is read, not sent.
// CHECK:         %[[M0:.*]] = het.neg %[[X]]
// CHECK:         %[[W0:.*]] = het.parameter "w"
// CHECK:         %[[Y:.*]] = het.matmul %[[M0]], %[[W0]]
// CHECK-NEXT:    dist.send %[[Y]] to 1 channel 0 {het.unit = "embed"}
// CHECK-NOT:     dist.send
// CHECK:         %[[DY:.*]] = dist.recv from 1 channel 1 {het.phase = "backward", het.unit = "embed"}
// CHECK:         %[[DW:.*]] = het.matmul %[[M0]], %[[DY]]
// CHECK:         het.gradient "w" %[[DW]]
// CHECK:         return{{$}}

// CHECK-LABEL: func.func @r0.s1
// CHECK-SAME:    (%[[X1:.*]]: tensor<2x6xf32> {het.name = "x"}, %[[I:.*]]: tensor<f32> {het.role = "inverse_label_count"})
// CHECK-SAME:    -> (tensor<f32> {het.name = "loss"})
// CHECK-SAME:    stage = 1, stages = 2, world = 2, ranks = [1], weights = [1], devices = ["n1/0"]
// CHECK:         %[[YR:.*]] = dist.recv from 0 channel 0 {het.unit = "head"}
// CHECK:         %[[M1:.*]] = het.neg %[[X1]]
// CHECK:         %[[Z:.*]] = het.add %[[YR]], %[[M1]]
// CHECK:         %[[L:.*]] = het.reduce sum %[[Z]]
// CHECK:         %[[LOSS:.*]] = het.mul %[[L]], %[[I]]
// CHECK:         %[[DZ:.*]] = het.broadcast %[[I]]
// CHECK-NEXT:    dist.send %[[DZ]] to 0 channel 1 {het.phase = "backward", het.unit = "head"}
// The tied use of "w" is this stage's own.
// CHECK:         het.gradient "w" %{{.*}} {het.phase = "backward", het.unit = "head"}
// CHECK:         return %[[LOSS]]

// Ranks go node by node; a replica starts where the samples of the one before end.
// REPLICAS-DAG: @r0.s0{{.*}}ranks = [0], weights = [1], devices = ["n0/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 10>
// REPLICAS-DAG: @r0.s1{{.*}}ranks = [2], weights = [1], devices = ["n1/0"], microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 10>
// REPLICAS-DAG: @r1.s0{{.*}}ranks = [1], weights = [1], devices = ["n0/1"], microbatches = 1, microbatch_size = 2, first_sample = 8, global_batch = 10>
func.func @model(%x: tensor<2x6xf32> {het.name = "x"}, %inv: tensor<f32> {het.role = "inverse_label_count"})
    -> (tensor<f32> {het.name = "loss"}) attributes {het.batch_size = 2 : i64, het.units = ["embed", "head"]} {
  %m = het.neg %x {het.unit = "inputs"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %w = het.parameter "w" : tensor<6x6xf32>
  %y = het.matmul %m, %w contract [1] [0] {het.unit = "embed"} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
  %z = het.add %y, %m {het.unit = "head"} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %l = het.reduce sum %z dims [0, 1] {het.unit = "head"} : (tensor<2x6xf32>) -> tensor<f32>
  %loss = het.mul %l, %inv {het.unit = "head"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dz = het.broadcast %inv to [2, 6] {het.unit = "head", het.phase = "backward"} : (tensor<f32>) -> tensor<2x6xf32>
  %dv = het.matmul %dz, %z contract [0] [0] {het.unit = "head", het.phase = "backward"} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
  het.gradient "w" %dv {het.unit = "head", het.phase = "backward"} : tensor<6x6xf32>
  %dw = het.matmul %m, %dz contract [0] [0] {het.unit = "embed", het.phase = "backward"} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
  het.gradient "w" %dw {het.unit = "embed", het.phase = "backward"} : tensor<6x6xf32>
  return %loss : tensor<f32>
}
