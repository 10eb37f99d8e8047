// What a device's memory is for: spaces as they are, and of the arena what is
// alive at its peak.
//
// RUN: autohet-opt %s --exec-plan-memory --exec-print-memory -o /dev/null | FileCheck %s
// RUN: not autohet-opt %s --exec-print-memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNPLANNED

// UNPLANNED: error: has no planned memory: run exec-plan-memory first

func.func private @p() -> tensor<8xf32>
func.func private @q(tensor<32xf32>) -> tensor<8xf32> attributes {autohet.scratch_bytes = 1024 : i64}
func.func private @r() -> tensor<16xf32>
func.func private @s(tensor<16xf32>) -> tensor<32xf32>

// CHECK:      memory parameters gradients state constants activations messages scratch gaps total
// At the launch of @q: x, what has come, and scratch; y has not begun.
// CHECK-NEXT: n0/0 64 B 64 B 128 B 64 B 64 B 128 B 1 KiB 0 B 1.50 KiB
// CHECK-NEXT: n0/1 0 B 0 B 0 B 0 B 192 B 0 B 0 B 0 B 192 B
exec.program @"n0/0" rank 0 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<1xf32>>
  %g = exec.buffer "w.gradient" gradient : !exec.buffer<tensor<1xf32>>
  %m = exec.buffer "w.m" state : !exec.buffer<tensor<1xf32>>
  %v = exec.buffer "w.v" state : !exec.buffer<tensor<1xf32>>
  %c = exec.buffer "inverse_label_count" scalar : !exec.buffer<tensor<f32>>
  %scratch = exec.buffer "scratch" arena : !exec.buffer<tensor<1024xi8>>
  %x = exec.buffer "x" arena : !exec.buffer<tensor<8xf32>>
  %r = exec.buffer "received" arena : !exec.buffer<tensor<32xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<8xf32>>
  %e = exec.event "received" : index
  exec.stream "compute" {
    exec.launch @p(%x) writes 1 : !exec.buffer<tensor<8xf32>>
    exec.recv %r from 1 channel 0 event %e : !exec.buffer<tensor<32xf32>>
    exec.wait %e
    exec.launch @q(%r, %x, %scratch) writes 2 : !exec.buffer<tensor<32xf32>>, !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<1024xi8>>
    exec.launch @p(%y) writes 1 : !exec.buffer<tensor<8xf32>>
  }
}
exec.program @"n0/1" rank 1 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %a = exec.buffer "a" arena : !exec.buffer<tensor<16xf32>>
  %b = exec.buffer "b" arena : !exec.buffer<tensor<32xf32>>
  exec.stream "compute" {
    exec.launch @r(%a) writes 1 : !exec.buffer<tensor<16xf32>>
    exec.launch @s(%a, %b) writes 1 : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<32xf32>>
  }
}
