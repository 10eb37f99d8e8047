// The order of commands of the first of three stages: two forwards of head start,
// one forward and one backward a turn, the last two backwards, the update.
//
// RUN: autohet-opt %s --exec-order-microbatches=optimizer=adamw | FileCheck %s
// RUN: autohet-opt %s --exec-order-microbatches=schedule=gpipe | FileCheck %s --check-prefix=GPIPE
// RUN: sed 's/microbatches = 4/microbatches = 2/' %s | autohet-opt --exec-order-microbatches \
// RUN:   | FileCheck %s --check-prefix=SHORT
// RUN: sed 's/microbatches = 4/microbatches = 8/; s/global_batch = 8/global_batch = 2048/' %s | autohet-opt --exec-order-microbatches > %t.8
// RUN: sed 's/microbatches = 4/microbatches = 1024/; s/global_batch = 8/global_batch = 2048/' %s | autohet-opt --exec-order-microbatches > %t.1024
// RUN: sed 's/1024/8/; s/loop 0 to 1022/loop 0 to 6/; s/1022/6/; s/1023/7/; s/1021/5/; s/1020/4/' %t.1024 | diff %t.8 -

// CHECK: module attributes {exec.optimizer = "adamw"}
// CHECK-LABEL: exec.program @"n0/0" rank 0 of 3 replica 0 stage 0 microbatches 4 of 2 from 0 batch 8
// CHECK:         exec.input "x" role "input" kind "file" batch_dim 0 vocabulary 0 : tensor<2x6xf32>

// The backward part reads %x and %y: one slot a microbatch in flight. What is
// sent or received needs one more, what backward alone uses one.
// CHECK-DAG:     %[[X:.*]] = exec.buffer "x" arena slots 3 :
// CHECK-DAG:     %[[Y:.*]] = exec.buffer "a/matmul" arena slots 3 :
// CHECK-DAG:     %[[Z:.*]] = exec.buffer "a/gelu_0" arena slots 2 :
// CHECK-DAG:     %[[D:.*]] = exec.buffer "a/recv" arena slots 2 :
// CHECK-DAG:     %[[DY:.*]] = exec.buffer "a/gelu_backward_0" arena :
// CHECK-DAG:     %[[W:.*]] = exec.buffer "w" parameter :
// CHECK-DAG:     %[[G:.*]] = exec.buffer "w.gradient" gradient :
// CHECK-DAG:     %[[M:.*]] = exec.buffer "w.m" state :
// CHECK-DAG:     %[[V:.*]] = exec.buffer "w.v" state :
// CHECK-DAG:     %[[SENT:.*]] = exec.event "a to rank 1" : index
// CHECK-DAG:     %[[PRODUCED:.*]] = exec.event "a to rank 1, produced" : index
// CHECK-DAG:     %[[ARRIVED:.*]] = exec.event "a backward from rank 1" : index
// CHECK-DAG:     %[[CONSUMED:.*]] = exec.event "a backward from rank 1, consumed" : index
// CHECK:         exec.parameter "w" of [6, 6] at [0, 0] owned %[[W]] gradient %[[G]] states %[[M]], %[[V]] :

// CHECK:         exec.stream "compute" {
// CHECK-NEXT:      exec.hook "begin"
// The first two have nobody to wait for.
// CHECK-NEXT:      exec.feed "x" %[[X]] :
// CHECK-NEXT:      exec.gemm %[[X]], %[[W]], %[[Y]] sizes [1, 2, 6, 6] :
// CHECK-NEXT:      exec.launch @gelu_0(%[[Y]], %[[Z]]) writes 1 :
// CHECK-NEXT:      exec.record %[[PRODUCED]]
// CHECK-NEXT:      exec.feed "x" %[[X]] {microbatch = 1 : i64}
// CHECK-NEXT:      exec.gemm
// CHECK-NEXT:      exec.launch @gelu_0
// CHECK-NEXT:      exec.record %[[PRODUCED]] {microbatch = 1 : i64}
// CHECK-NEXT:      exec.loop 0 to 2 {
// CHECK-NEXT:        exec.feed "x" %[[X]] {microbatch = 2 : i64}
// CHECK-NEXT:        exec.gemm %[[X]], %[[W]], %[[Y]] sizes [1, 2, 6, 6] {microbatch = 2 : i64}
// The slot was the one of two microbatches before: has that left?
// CHECK-NEXT:        exec.wait %[[SENT]]{{$}}
// CHECK-NEXT:        exec.launch @gelu_0(%[[Y]], %[[Z]]) writes 1 {microbatch = 2 : i64}
// CHECK-NEXT:        exec.record %[[PRODUCED]] {microbatch = 2 : i64}
// CHECK-NEXT:        exec.wait %[[ARRIVED]]{{$}}
// CHECK-NEXT:        exec.launch @gelu_backward_0(%[[Y]], %[[D]], %[[DY]]) writes 1 :
// A product that is only a gradient is added where gradients are summed.
// CHECK-NEXT:        exec.gemm %[[X]], %[[DY]], %[[G]] sizes [1, 6, 6, 2] {accumulate, transpose_a} :
// CHECK-NEXT:        exec.record %[[CONSUMED]]{{$}}
// CHECK-NEXT:      }
// CHECK-NEXT:      exec.wait %[[ARRIVED]] {microbatch = 2 : i64}
// CHECK:           exec.record %[[CONSUMED]] {microbatch = 2 : i64}
// CHECK-NEXT:      exec.wait %[[ARRIVED]] {microbatch = 3 : i64}
// CHECK:           exec.record %[[CONSUMED]] {microbatch = 3 : i64}
// CHECK-NEXT:      exec.norm %[[G]]
// CHECK-NEXT:      exec.agree
// CHECK-NEXT:      exec.update %[[W]], %[[G]] states %[[M]], %[[V]] :
// CHECK-NEXT:      exec.hook "end"

// Transfers come in the same order on streams of their own.
// CHECK:         exec.stream "receive" communication {
// CHECK-NEXT:      exec.loop 0 to 2 {
// CHECK-NEXT:        exec.wait %[[CONSUMED]] {microbatch = -2 : i64}
// CHECK-NEXT:        exec.recv %[[D]] from 1 channel 1 event %[[ARRIVED]] :
// CHECK-NEXT:      }
// CHECK-NEXT:      exec.wait %[[CONSUMED]]{{$}}
// CHECK-NEXT:      exec.recv %[[D]] from 1 channel 1 event %[[ARRIVED]] {microbatch = 2 : i64}
// CHECK:         exec.stream "send" communication {
// CHECK-NEXT:      exec.wait %[[PRODUCED]]{{$}}
// CHECK-NEXT:      exec.send %[[Z]] to 1 channel 0 event %[[SENT]] :

// All forwards, then all backwards; each microbatch has its slot.
// GPIPE-LABEL: exec.program @"n0/0"
// GPIPE:         exec.buffer "a/matmul" arena slots 4 :
// GPIPE:         exec.loop 0 to 4 {
// GPIPE-NOT:       @gelu_backward_0
// GPIPE:           exec.record
// GPIPE-NEXT:    }
// GPIPE-NEXT:    exec.loop 0 to 4 {
// GPIPE-NOT:       @gelu_0
// GPIPE:           exec.launch @gelu_backward_0
// GPIPE:           exec.record
// GPIPE-NEXT:    }
// GPIPE-NEXT:    exec.norm

// With two microbatches nothing repeats: the loop has no trip and is left out.
// SHORT-LABEL: exec.program @"n0/0"
// SHORT-NOT:     exec.loop
// SHORT-COUNT-2: exec.launch @gelu_0
// SHORT-NOT:     exec.launch @gelu_0
// SHORT-COUNT-2: exec.launch @gelu_backward_0
// SHORT-NOT:     exec.launch @gelu_backward_0
// SHORT:         exec.agree

func.func private @gelu_0(tensor<2x6xf32>) -> tensor<2x6xf32>
func.func private @gelu_backward_0(tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
func.func @"n0/0"(%x: tensor<2x6xf32> {het.name = "x", het.role = "input"}) attributes {dist.program = #dist.program<
    device = "n0/0", rank = 0, world = 3, replica = 0, stage = 0, stages = 3, microbatches = 4,
    microbatch_size = 2, first_sample = 0, global_batch = 8>} {
  %w = het.parameter "w" : tensor<6x6xf32>
  %y = het.matmul %x, %w contract [1] [0] {het.unit = "a"} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
  %z = func.call @gelu_0(%y) {het.unit = "a"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  dist.send %z to 1 channel 0 {het.unit = "a"} : tensor<2x6xf32>
  %d = dist.recv from 1 channel 1 {het.unit = "a", het.phase = "backward"} : tensor<2x6xf32>
  %dy = func.call @gelu_backward_0(%y, %d) {het.unit = "a", het.phase = "backward"} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %dw = het.matmul %x, %dy contract [0] [0] {het.unit = "a", het.phase = "backward"} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
  het.gradient "w" %dw {het.unit = "a", het.phase = "backward"} : tensor<6x6xf32>
  %g = dist.local_gradient "w" at [0, 0] of [6, 6] {het.phase = "update"} : tensor<6x6xf32>
  dist.norm %g {het.phase = "update"} : tensor<6x6xf32>
  dist.agree {het.phase = "update"}
  %p = dist.update "w" at [0, 0] of [6, 6] by %g {het.phase = "update"} : tensor<6x6xf32>
  dist.store_parameter "w" %p at [0, 0] of [6, 6] {het.phase = "update"} : tensor<6x6xf32>
  return
}
