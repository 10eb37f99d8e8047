// Of a parameter whose rows several devices own, no part is copied: it is sent,
// updated and received where it lies in the whole.
//
// RUN: autohet-opt %s --exec-order-microbatches --exec-plan-memory | FileCheck %s

// CHECK:      exec.program {{.*}} bytes [256, 256, 256, 0, 0, 0]
// CHECK-DAG:  %[[THERE:.*]] = exec.event "new w from rank 1" once
// CHECK-DAG:  %[[W:.*]] = exec.buffer "w" parameter at 0 : <tensor<4x16xf32>>
// CHECK-DAG:  %[[G:.*]] = exec.buffer "w.gradient" gradient at 0 : <tensor<4x16xf32>>
// CHECK-DAG:  %[[SENT:.*]] = exec.buffer "w.gradient.rows{{.*}}" gradient at 128 in %[[G]] : {{.*}} from 128 : <tensor<2x16xf32>>
// CHECK-DAG:  %[[KEPT:.*]] = exec.buffer "w.gradient.rows{{.*}}" gradient at 0 in %[[G]] : {{.*}} from 0 : <tensor<2x16xf32>>
// CHECK-DAG:  %[[OWN:.*]] = exec.buffer "w.rows{{.*}}" parameter at 0 in %[[W]] : {{.*}} from 0 : <tensor<2x16xf32>>
// CHECK-DAG:  %[[NEW:.*]] = exec.buffer "w.rows{{.*}}" parameter at 128 in %[[W]] : {{.*}} from 128 : <tensor<2x16xf32>>
// CHECK-DAG:  exec.parameter "w" of [4, 16] at [0, 0] %[[W]] gradient %[[G]]
// CHECK-DAG:  exec.parameter "w" of [4, 16] at [0, 0] owned %[[OWN]] gradient
// CHECK:      exec.stream "compute" {
// All rows of the step before are there when they are read.
// CHECK:        exec.wait %[[THERE]] {microbatch = -1 : i64}
// CHECK-NEXT:   exec.launch @double(%[[W]],
// CHECK:        exec.send %[[SENT]] to 1
// CHECK:        exec.launch @add_0(%[[KEPT]], %[[PART:.*]], %[[SUM:.*]]) writes 1
// CHECK:        exec.update %[[OWN]], %[[SUM]]
// CHECK:        exec.recv %[[NEW]] from 1 channel 524289 event %[[THERE]]
// CHECK-NOT:    exec.copy
func.func private @double(tensor<4x16xf32>) -> tensor<4x16xf32>
func.func private @add_0(tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
func.func @"n0/0"() attributes {dist.program = #dist.program<device = "n0/0", rank = 0, world = 2, replica = 0,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 0, global_batch = 4>} {
  %w = het.parameter "w" : tensor<4x16xf32>
  %g = func.call @double(%w) {het.phase = "backward"} : (tensor<4x16xf32>) -> tensor<4x16xf32>
  het.gradient "w" %g {het.phase = "backward"} : tensor<4x16xf32>
  %sent = dist.local_gradient "w" at [2, 0] of [4, 16] {het.phase = "reduce"} : tensor<2x16xf32>
  dist.send %sent to 1 channel 524290 inline {dist.label = "gradient of w", het.phase = "reduce"} : tensor<2x16xf32>
  %part = dist.recv from 1 channel 524288 inline {dist.label = "gradient of w", het.phase = "reduce"} : tensor<2x16xf32>
  %kept = dist.local_gradient "w" at [0, 0] of [4, 16] {het.phase = "update"} : tensor<2x16xf32>
  %sum = func.call @add_0(%kept, %part) {het.phase = "update"} : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  dist.norm %sum {het.phase = "update"} : tensor<2x16xf32>
  dist.agree {het.phase = "update"}
  %own = dist.update "w" at [0, 0] of [4, 16] by %sum {het.phase = "update"} : tensor<2x16xf32>
  dist.send %own to 1 channel 524291 inline {dist.label = "new w", het.phase = "update"} : tensor<2x16xf32>
  %new = dist.recv from 1 channel 524289 inline {dist.label = "new w", het.phase = "update"} : tensor<2x16xf32>
  dist.store_parameter "w" rows %own at [0, 0] of [4, 16] {het.phase = "update"} : tensor<2x16xf32>
  dist.store_parameter "w" rows %new at [2, 0] of [4, 16] {het.phase = "update"} : tensor<2x16xf32>
  return
}
