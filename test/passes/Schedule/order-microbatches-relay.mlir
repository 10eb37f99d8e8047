// New bytes that are sent on leave by a stream of their own, when they have
// arrived: the computing stream goes on with the next step.
//
// RUN: autohet-opt %s --split-input-file --exec-order-microbatches | FileCheck %s

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

// -----

// What the relay has updated itself leaves by another stream, two slices at a
// time: what is passed on need not wait for all of them.
//
// CHECK-DAG:  %[[NEWA:.*]] = exec.event "new a to rank 0, updated" once
// CHECK-DAG:  %[[A0:.*]] = exec.event "new a to rank 0" once
// CHECK-DAG:  %[[A2:.*]] = exec.event "new a to rank 2" once
// CHECK-DAG:  %[[NEWB:.*]] = exec.event "new b to rank 0, updated" once
// CHECK-DAG:  %[[NEWC:.*]] = exec.event "new c to rank 0, updated" once
// CHECK:      exec.stream "compute" {
// CHECK:        exec.update
// CHECK-NEXT:   exec.record %[[NEWA]]
// CHECK-NEXT:   exec.update
// CHECK-NEXT:   exec.record %[[NEWB]]
// CHECK-NEXT:   exec.update
// CHECK-NEXT:   exec.record %[[NEWC]]
// CHECK-NOT:    exec.send
// CHECK:      exec.stream "relay" communication {
// CHECK-NEXT:   exec.wait
// CHECK-NEXT:   exec.send %{{.*}} to 2 channel 524289
// CHECK-NEXT: }
// CHECK:      exec.stream "parameters" communication {
// CHECK-NEXT:   exec.wait %[[NEWA]]{{$}}
// CHECK-NEXT:   exec.send %{{.*}} to 0 channel 524291 event %[[A0]]
// CHECK-NEXT:   exec.send %{{.*}} to 2 channel 524291 event %[[A2]]
// CHECK-NEXT:   exec.wait %[[NEWB]]{{$}}
// CHECK-NEXT:   exec.send %{{.*}} to 0 channel 524293
// CHECK-NEXT:   exec.wait %[[NEWC]]{{$}}
// CHECK-NEXT:   exec.wait %[[A2]]{{$}}
// CHECK-NEXT:   exec.send %{{.*}} to 0 channel 524295
// CHECK-NEXT: }
func.func @"n1/1"(%ga: tensor<4xf32> {het.name = "ga"}, %gb: tensor<4xf32> {het.name = "gb"}, %gc: tensor<4xf32> {het.name = "gc"}) attributes {dist.program = #dist.program<device = "n1/1", rank = 1, world = 3, replica = 1,
    stage = 0, stages = 1, microbatches = 1, microbatch_size = 2, first_sample = 2, global_batch = 6>} {
  het.gradient "a" %ga {het.phase = "backward"} : tensor<4xf32>
  het.gradient "b" %gb {het.phase = "backward"} : tensor<4xf32>
  het.gradient "c" %gc {het.phase = "backward"} : tensor<4xf32>
  %sa = dist.local_gradient "a" at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  %sb = dist.local_gradient "b" at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  %sc = dist.local_gradient "c" at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  dist.agree {het.phase = "update"}
  %new = dist.recv from 0 channel 524289 inline {dist.label = "new w", het.phase = "update"} : tensor<4xf32>
  %a = dist.update "a" at [0] of [4] by %sa {het.phase = "update"} : tensor<4xf32>
  dist.send %a to 0 channel 524291 inline {dist.label = "new a", het.phase = "update"} : tensor<4xf32>
  dist.send %a to 2 channel 524291 inline {dist.label = "new a", het.phase = "update"} : tensor<4xf32>
  %b = dist.update "b" at [0] of [4] by %sb {het.phase = "update"} : tensor<4xf32>
  dist.send %b to 0 channel 524293 inline {dist.label = "new b", het.phase = "update"} : tensor<4xf32>
  %c = dist.update "c" at [0] of [4] by %sc {het.phase = "update"} : tensor<4xf32>
  dist.send %c to 0 channel 524295 inline {dist.label = "new c", het.phase = "update"} : tensor<4xf32>
  dist.send %new to 2 channel 524289 inline {dist.label = "new w", het.phase = "update"} : tensor<4xf32>
  dist.store_parameter "w" %new at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  dist.store_parameter "a" %a at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  dist.store_parameter "b" %b at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  dist.store_parameter "c" %c at [0] of [4] {het.phase = "update"} : tensor<4xf32>
  return
}
