// Every op, read, printed and read again: in its own syntax and in the generic one.
//
// RUN: autohet-opt %s --verify-roundtrip | FileCheck %s
// RUN: autohet-opt %s > %t.pretty
// RUN: autohet-opt %s --mlir-print-op-generic | autohet-opt | diff %t.pretty -

func.func private @gelu_0(tensor<2x3xf32>) -> tensor<2x3xf32>
// A kernel that asks for memory is given it behind its results.
func.func private @softmax_0(tensor<6xf32>) -> tensor<6xf32> attributes {autohet.scratch_bytes = 24 : i64}

// CHECK-LABEL: exec.program @"n0/1" rank 1 of 2 replica 0 stage 1 microbatches 4 of 2 from 8 batch 16
// CHECK-SAME:    bytes [256, 0, 64, 64, 0, 64]
exec.program @"n0/1" rank 1 of 2 replica 0 stage 1 microbatches 4 of 2 from 8 batch 16 bytes [256, 0, 64, 64, 0, 64] {
  // CHECK: exec.input "input_ids" role "input" kind "tokens" batch_dim 0 vocabulary 101 : tensor<2x12xi64>
  exec.input "input_ids" role "input" kind "tokens" batch_dim 0 vocabulary 101 : tensor<2x12xi64>
  // CHECK: exec.output "logits" of [2, 101] at [0, 50] batch_dim 0 : tensor<2x3xf32>
  exec.output "logits" of [2, 101] at [0, 50] batch_dim 0 : tensor<2x3xf32>

  // One slot and no place are what is not said.
  // CHECK: %[[IDS:.*]] = exec.buffer "ids" arena : <tensor<2x12xi64>>
  %ids = exec.buffer "ids" arena : !exec.buffer<tensor<2x12xi64>>
  // CHECK: %[[X:.*]] = exec.buffer "x" arena slots 2 at 128 : <tensor<2x3xf32>>
  %x = exec.buffer "x" arena slots 2 at 128 : !exec.buffer<tensor<2x3xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<2x3xf32>>
  // CHECK: %[[WHOLE:.*]] = exec.buffer "whole" parameter
  %whole = exec.buffer "whole" parameter : !exec.buffer<tensor<4x16xf32>>
  // CHECK: exec.buffer "rows" parameter in %[[WHOLE]] : !exec.buffer<tensor<4x16xf32>> from 64 : <tensor<2x16xf32>>
  %rows = exec.buffer "rows" parameter in %whole : !exec.buffer<tensor<4x16xf32>> from 64 : !exec.buffer<tensor<2x16xf32>>
  // CHECK: %[[W:.*]] = exec.buffer "w" parameter
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<3x3xf32>>
  // CHECK: %[[G:.*]] = exec.buffer "w.gradient" gradient
  %g = exec.buffer "w.gradient" gradient : !exec.buffer<tensor<3x3xf32>>
  // CHECK: %[[M:.*]] = exec.buffer "w.m" state
  %m = exec.buffer "w.m" state : !exec.buffer<tensor<3x3xf32>>
  %v = exec.buffer "w.v" state : !exec.buffer<tensor<3x3xf32>>
  // CHECK: exec.buffer "table" constant
  %t = exec.buffer "table" constant : !exec.buffer<tensor<3xf32>>
  // CHECK: %[[S:.*]] = exec.buffer "inverse_label_count" scalar at 0
  %s = exec.buffer "inverse_label_count" scalar at 0 : !exec.buffer<tensor<f32>>

  // CHECK: %[[E:.*]] = exec.event "arrived" : index
  %e = exec.event "arrived" : index
  // CHECK: exec.event "fresh" once : index
  %f = exec.event "fresh" once : index

  // A box that is owned, one that another rank updates, and one that nobody trains.
  // CHECK: exec.parameter "w" of [3, 6] at [0, 3] owned %[[W]] gradient %[[G]] states %[[M]], %{{.*}} : (
  exec.parameter "w" of [3, 6] at [0, 3] owned %w gradient %g states %m, %v : (!exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>)
  // CHECK: exec.parameter "u" of [3, 3] at [0, 0] %[[W]] gradient %[[G]] : (
  exec.parameter "u" of [3, 3] at [0, 0] %w gradient %g : (!exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>)
  // CHECK: exec.parameter "table" of [3] at [0] %{{.*}} : (!exec.buffer<tensor<3xf32>>)
  exec.parameter "table" of [3] at [0] %t : (!exec.buffer<tensor<3xf32>>)

  // CHECK: exec.stream "compute" {
  exec.stream "compute" {
    // CHECK: exec.hook "begin"
    exec.hook "begin"
    // CHECK: exec.zero %[[G]]
    exec.zero %g : !exec.buffer<tensor<3x3xf32>>
    // CHECK: exec.loop 0 to 3 {
    exec.loop 0 to 3 {
      // CHECK: exec.feed "input_ids" %[[IDS]] {microbatch = 1 : i64}
      exec.feed "input_ids" %ids {microbatch = 1 : i64} : !exec.buffer<tensor<2x12xi64>>
      // CHECK: exec.wait %[[E]] {microbatch = -1 : i64}
      exec.wait %e {microbatch = -1 : i64}
      // CHECK: exec.gemm %[[X]], %[[W]], %{{.*}} sizes [1, 2, 3, 3] {accumulate, transpose_b}
      exec.gemm %x, %w, %y sizes [1, 2, 3, 3] {accumulate, transpose_b} : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<2x3xf32>>
      // CHECK: exec.launch @gelu_0(%{{.*}}, %[[X]]) writes 1
      exec.launch @gelu_0(%y, %x) writes 1 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
      // CHECK: exec.launch @softmax_0(%{{.*}}, %[[X]], %{{.*}}) writes 2
      exec.launch @softmax_0(%y, %x, %y) writes 2 : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
      // CHECK: exec.loss %[[S]]
      exec.loss %s : !exec.buffer<tensor<f32>>
      // CHECK: exec.emit "logits" %[[X]]
      exec.emit "logits" %x : !exec.buffer<tensor<2x3xf32>>
      // CHECK: exec.record %[[E]]
      exec.record %e
    }
    // The loop may have no trip.
    // CHECK: exec.loop 0 to 0 {
    exec.loop 0 to 0 {
    }
    // CHECK: exec.reduce %[[G]], %[[W]] to %[[G]] :
    exec.reduce %g, %w to %g : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>> to !exec.buffer<tensor<3x3xf32>>
    // CHECK: exec.norm %[[G]]
    exec.norm %g : !exec.buffer<tensor<3x3xf32>>
    // CHECK: exec.agree
    exec.agree
    // CHECK: exec.update %[[W]], %[[G]] states %[[M]], %{{.*}} :
    exec.update %w, %g states %m, %v : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>> : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>
    // CHECK: exec.update %[[W]], %[[G]] :
    exec.update %w, %g : !exec.buffer<tensor<3x3xf32>>, !exec.buffer<tensor<3x3xf32>>
    // CHECK: exec.copy %[[X]] to %{{.*}} :
    exec.copy %x to %y : !exec.buffer<tensor<2x3xf32>>, !exec.buffer<tensor<2x3xf32>>
    // CHECK: exec.hook "end"
    exec.hook "end"
  }
  // CHECK: exec.stream "receive" communication {
  exec.stream "receive" communication {
    // CHECK: exec.recv %[[X]] from 0 channel 7 event %[[E]] {microbatch = 3 : i64}
    exec.recv %x from 0 channel 7 event %e {microbatch = 3 : i64} : !exec.buffer<tensor<2x3xf32>>
  }
  // CHECK: exec.stream "send" communication {
  exec.stream "send" communication {
    // CHECK: exec.send %[[X]] to 0 channel 8 event %[[E]]
    exec.send %x to 0 channel 8 event %e : !exec.buffer<tensor<2x3xf32>>
  }
}
