// From a small language model to each device's planned program.
//
// RUN: autohet-opt %s \
// RUN:   --pass-pipeline='builtin.module(autohet-plan{stages="8x2:embed@n0/0,block0@n0/1,head@n0/2"},autohet-schedule{optimizer=adamw})' \
// RUN:   > %t.8
// RUN: FileCheck %s < %t.8
//
// Devices are done in parallel: no program depends on how many at a time.
// RUN: autohet-opt %s --mlir-disable-threading \
// RUN:   --pass-pipeline='builtin.module(autohet-plan{stages="8x2:embed@n0/0,block0@n0/1,head@n0/2"},autohet-schedule{optimizer=adamw})' \
// RUN:   > %t.one
// RUN: cmp %t.8 %t.one
//
// A program's size does not depend on the number of microbatches.
// RUN: autohet-opt %s \
// RUN:   --pass-pipeline='builtin.module(autohet-plan{stages="1024x2:embed@n0/0,block0@n0/1,head@n0/2"},autohet-schedule{optimizer=adamw})' \
// RUN:   > %t.1024
// RUN: grep -c exec %t.8 > %t.count
// RUN: grep -c exec %t.1024 | diff %t.count -
// Nor does its memory: only microbatches in flight are kept.
// RUN: grep -o 'bytes .*{' %t.8 > %t.bytes
// RUN: grep -o 'bytes .*{' %t.1024 | diff %t.bytes -
//
// Two microbatches through three stages: the first stage's loop has no trip.
// RUN: autohet-opt %s \
// RUN:   --pass-pipeline='builtin.module(autohet-plan{stages="2x2:embed@n0/0,block0@n0/1,head@n0/2"},autohet-schedule{schedule=1f1b})' \
// RUN:   | FileCheck %s --check-prefix=SHORT

// New bytes of the tied table hide under the next forward: nobody waits for them
// in the step that sends them. The first reader does, in the loop, for the step
// before, and so does whoever writes them next.
// RUN: autohet-opt %s \
// RUN:   --pass-pipeline='builtin.module(autohet-plan{stages="4x2:embed-block0@n0/0,head@n0/1"},autohet-schedule{optimizer=sgd})' \
// RUN:   | FileCheck %s --check-prefix=LATE
//
// LATE-LABEL: exec.program @"n0/0"
// LATE:         exec.recv {{.*}} channel 524290
// LATE:         exec.wait %[[SENT:.*]] {microbatch = -1 : i64}
// LATE-NEXT:    exec.agree
// LATE-NEXT:    exec.update %[[TABLE:[^,]*]],
// LATE-NEXT:    exec.send %[[TABLE]] to 1 channel [[C:[0-9]+]] event %[[SENT]]
// LATE-NOT:     exec.wait
// LATE:         exec.hook "end"
// LATE-LABEL: exec.program @"n0/1"
// LATE:         exec.loop 0 to 3 {
// LATE:           exec.wait %[[THERE:.*]] {microbatch = -1 : i64}
// LATE-NEXT:      exec.gemm %{{[^,]*}}, %[[COPY:[^,]*]],
// LATE:         exec.recv %[[COPY]] from 0 channel [[C]] event %[[THERE]]
// LATE-NEXT:    exec.hook "end"

// CHECK: module attributes {exec.optimizer = "adamw"}
// CHECK-LABEL: exec.program @"n0/0" rank 0 of 3 replica 0 stage 0 microbatches 8 of 2 from 0 batch 16 bytes [
// CHECK:         exec.buffer "input_ids" arena slots 3 at
// CHECK:         exec.loop 0 to 6 {
// CHECK:           exec.launch @embedding_0({{.*}}) writes 1 {microbatch = 2 : i64}
// CHECK:           exec.launch @embedding_backward_0({{.*}}) writes 1 :
// CHECK:         exec.stream "receive" communication
// CHECK:         exec.stream "send" communication

// Microbatch i + 1 of the second stage goes forward while i goes back.
// CHECK-LABEL: exec.program @"n0/1" rank 1 of 3 replica 0 stage 1
// CHECK-DAG:     %[[W:.*]] = exec.buffer "w" parameter at 0 :
// CHECK-DAG:     %[[G:.*]] = exec.buffer "w.gradient" gradient at 0 :
// CHECK-DAG:     %[[M:.*]] = exec.buffer "w.m" state at 0 :
// CHECK-DAG:     %[[V:.*]] = exec.buffer "w.v" state at 9216 :
// CHECK:         exec.parameter "w" of [48, 48] at [0, 0] owned %[[W]] gradient %[[G]] states %[[M]], %[[V]] :
// CHECK:         exec.loop 0 to 7 {

// The last stage has no head start; it gives the loss and the logits. Its last
// microbatch stands alone, and starts to send the tied table's gradient.
// CHECK-LABEL: exec.program @"n0/2" rank 2 of 3 replica 0 stage 2
// CHECK:         exec.output "logits" of [2, 12, 101] at [0, 0, 0] batch_dim 0 : tensor<2x12x101xf32>
// CHECK:         exec.loop 0 to 7 {
// CHECK-NEXT:      exec.feed "labels"
// CHECK:           exec.loss
// CHECK-NEXT:      exec.emit "logits"
// CHECK:         exec.emit "logits" %{{.*}} {microbatch = 7 : i64}
// CHECK:         exec.send %{{.*}} to 0 channel {{[0-9]+}} event %[[SENT:[^ ]*]] :
// CHECK:         exec.wait %[[SENT]]
// CHECK:         exec.agree
// CHECK:       func.func private @embedding_0

// SHORT-LABEL: exec.program @"n0/0"
// SHORT-NOT:     exec.loop
// SHORT-LABEL: exec.program @"n0/1"
// SHORT:         exec.loop 0 to 1 {
// SHORT-LABEL: exec.program @"n0/2"
// SHORT:         exec.loop 0 to 1 {

func.func @model(%ids: tensor<2x12xi64> {het.name = "input_ids", het.role = "input", het.kind = "tokens", het.vocabulary = 101},
    %labels: tensor<2x12xi64> {het.name = "labels", het.role = "labels", het.kind = "labels"},
    %inv: tensor<f32> {het.role = "inverse_label_count"})
    -> (tensor<f32> {het.name = "loss"}, tensor<2x12x101xf32> {het.name = "logits"}) attributes {het.batch_size = 2, het.units = ["embed", "block0", "head"]} {
  %t = het.parameter "wte.weight" : tensor<101x48xf32>
  %x = het.embedding %t, %ids {het.unit = "embed"} : (tensor<101x48xf32>, tensor<2x12xi64>) -> tensor<2x12x48xf32>
  %w = het.parameter "w" : tensor<48x48xf32>
  %q = het.matmul %x, %w contract [2] [0] {het.unit = "block0"} : (tensor<2x12x48xf32>, tensor<48x48xf32>) -> tensor<2x12x48xf32>
  %g = het.gelu tanh %q {het.unit = "block0"} : (tensor<2x12x48xf32>) -> tensor<2x12x48xf32>
  %t2 = het.parameter "wte.weight" : tensor<101x48xf32>
  %y = het.matmul %g, %t2 contract [2] [1] {het.unit = "head"} : (tensor<2x12x48xf32>, tensor<101x48xf32>) -> tensor<2x12x101xf32>
  %ls, %lse = het.cross_entropy %y, %labels {ignore_index = -100 : i64, het.unit = "head"} : (tensor<2x12x101xf32>, tensor<2x12xi64>) -> (tensor<f32>, tensor<2x12xf32>)
  %loss = het.mul %ls, %inv {het.unit = "head"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %dl = het.cross_entropy_backward %y, %labels, %lse, %inv {ignore_index = -100 : i64, het.unit = "head", het.phase = "backward"} : (tensor<2x12x101xf32>, tensor<2x12xi64>, tensor<2x12xf32>, tensor<f32>) -> tensor<2x12x101xf32>
  %dg = het.matmul %dl, %t2 contract [2] [0] {het.unit = "head", het.phase = "backward"} : (tensor<2x12x101xf32>, tensor<101x48xf32>) -> tensor<2x12x48xf32>
  %dt2 = het.matmul %dl, %g contract [0, 1] [0, 1] {het.unit = "head", het.phase = "backward"} : (tensor<2x12x101xf32>, tensor<2x12x48xf32>) -> tensor<101x48xf32>
  het.gradient "wte.weight" %dt2 {het.unit = "head", het.phase = "backward"} : tensor<101x48xf32>
  %dq = het.gelu_backward tanh %q, %dg {het.unit = "block0", het.phase = "backward"} : (tensor<2x12x48xf32>, tensor<2x12x48xf32>) -> tensor<2x12x48xf32>
  %dw = het.matmul %x, %dq contract [0, 1] [0, 1] {het.unit = "block0", het.phase = "backward"} : (tensor<2x12x48xf32>, tensor<2x12x48xf32>) -> tensor<48x48xf32>
  het.gradient "w" %dw {het.unit = "block0", het.phase = "backward"} : tensor<48x48xf32>
  %dx = het.matmul %dq, %w contract [2] [1] {het.unit = "block0", het.phase = "backward"} : (tensor<2x12x48xf32>, tensor<48x48xf32>) -> tensor<2x12x48xf32>
  %dt = het.embedding_backward %ids, %dx {rows = 101 : i64, het.unit = "embed", het.phase = "backward"} : (tensor<2x12xi64>, tensor<2x12x48xf32>) -> tensor<101x48xf32>
  het.gradient "wte.weight" %dt {het.unit = "embed", het.phase = "backward"} : tensor<101x48xf32>
  return %loss, %y : tensor<f32>, tensor<2x12x101xf32>
}
