// New bytes that are sent on leave by a stream of their own, when they have
// arrived: the computing stream goes on with the next step.
//
// RUN: autohet-opt %s --exec-order-microbatches | FileCheck %s

// CHECK-DAG:  %[[HERE:.*]] = exec.event "new w from rank 0" once
// CHECK-DAG:  %[[GONE:.*]] = exec.event "new w to rank 2" once
// CHECK-DAG:  %[[W:.*]] = exec.buffer "w" {{.*}}parameter
// CHECK:      exec.stream "compute" {
// The bytes of the step before must have arrived and left.
// CHECK:        exec.wait %[[HERE]] {microbatch = -1 : i64}
// CHECK-NEXT:   exec.wait %[[GONE]] {microbatch = -1 : i64}
// CHECK-NEXT:   exec.agree
// CHECK-NEXT:   exec.recv %[[W]] from 0 channel 524289 event %[[HERE]]
// CHECK-NEXT:   exec.hook "end"
// CHECK:      exec.stream "relay" communication {
// CHECK-NEXT:   exec.wait %[[HERE]]{{$}}
// CHECK-NEXT:   exec.send %[[W]] to 2 channel 524289 event %[[GONE]]
func.func @"n1/0"() attributes {dist.program = #dist.program<device = "n1/0", rank = 1, world = 3, replica = 1,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 2, global_batch = 6>} {
  dist.agree {het.phase = "update"}
  %new = dist.recv from 0 channel 524289 inline {dist.label = "new w", het.phase = "update"} : tensor<4xf32>
  dist.send %new to 2 channel 524289 inline {dist.label = "new w", het.phase = "update"} : tensor<4xf32>
  dist.store_parameter "w" %new at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  return
}
