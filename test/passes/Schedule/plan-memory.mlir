// Arena buffers share bytes where their lives do not meet; all else lies one
// after the other. Slots and starts are multiples of 64 bytes.
//
// RUN: autohet-opt %s --exec-plan-memory | FileCheck %s

func.func private @make64() -> tensor<64xf32>
func.func private @grow(tensor<64xf32>) -> tensor<128xf32>
func.func private @shrink(tensor<128xf32>) -> tensor<64xf32>
func.func private @look(tensor<64xf32>)
func.func private @make() -> tensor<8xf32>
func.func private @map(tensor<8xf32>) -> tensor<8xf32>
func.func private @fork(tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
func.func private @join(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>

// %a is over when %c begins; %b meets both. The largest is placed first.
// CHECK-LABEL: exec.program @shared
// CHECK-SAME:    bytes [768, 0, 0, 0, 0, 0]
// CHECK:         exec.buffer "a" arena at 512 : <tensor<64xf32>>
// CHECK:         exec.buffer "b" arena at 0 : <tensor<128xf32>>
// CHECK:         exec.buffer "c" arena at 512 : <tensor<64xf32>>
exec.program @shared rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %a = exec.buffer "a" arena : !exec.buffer<tensor<64xf32>>
  %b = exec.buffer "b" arena : !exec.buffer<tensor<128xf32>>
  %c = exec.buffer "c" arena : !exec.buffer<tensor<64xf32>>
  exec.stream "compute" {
    exec.launch @make64(%a) writes 1 : !exec.buffer<tensor<64xf32>>
    exec.launch @grow(%a, %b) writes 1 : !exec.buffer<tensor<64xf32>>, !exec.buffer<tensor<128xf32>>
    exec.launch @shrink(%b, %c) writes 1 : !exec.buffer<tensor<128xf32>>, !exec.buffer<tensor<64xf32>>
    exec.launch @look(%c) writes 0 : !exec.buffer<tensor<64xf32>>
  }
}

// Slots, a communication stream and a value carried from turn to turn keep a
// buffer alive throughout: only %d and %e share.
// CHECK-LABEL: exec.program @kept
// CHECK-SAME:    bytes [384, 0, 0, 0, 0, 0]
// CHECK:         exec.buffer "slots" arena slots 2 at 0 :
// CHECK:         exec.buffer "moved" arena at 128 :
// CHECK:         exec.buffer "carried" arena at 192 :
// CHECK:         exec.buffer "d" arena at 256 :
// CHECK:         exec.buffer "e" arena at 256 :
// CHECK:         exec.buffer "after" arena at 320 :
exec.program @kept rank 0 of 1 replica 0 stage 0 microbatches 4 of 1 from 0 batch 4 {
  %s = exec.buffer "slots" arena slots 2 : !exec.buffer<tensor<8xf32>>
  %m = exec.buffer "moved" arena : !exec.buffer<tensor<8xf32>>
  %k = exec.buffer "carried" arena : !exec.buffer<tensor<8xf32>>
  %d = exec.buffer "d" arena : !exec.buffer<tensor<8xf32>>
  %e = exec.buffer "e" arena : !exec.buffer<tensor<8xf32>>
  %f = exec.buffer "after" arena : !exec.buffer<tensor<8xf32>>
  %v = exec.event "moved" : index
  exec.stream "compute" {
    exec.loop 0 to 4 {
      exec.launch @map(%k, %d) writes 1 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
      exec.launch @fork(%d, %k, %f) writes 2 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
      exec.launch @map(%f, %e) writes 1 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
      exec.launch @join(%e, %f, %s) writes 1 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
    }
  }
  exec.stream "send" communication {
    exec.send %m to 1 channel 0 event %v : !exec.buffer<tensor<8xf32>>
  }
}

// What is sent on the computing stream stays until the wait for it.
// CHECK-LABEL: exec.program @underway
// CHECK-SAME:    bytes [128, 0, 0, 0, 0, 0]
// CHECK:         exec.buffer "sent" arena at 0 :
// CHECK:         exec.buffer "meanwhile" arena at 64 :
// CHECK:         exec.buffer "later" arena at 0 :
exec.program @underway rank 0 of 2 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %s = exec.buffer "sent" arena : !exec.buffer<tensor<8xf32>>
  %m = exec.buffer "meanwhile" arena : !exec.buffer<tensor<8xf32>>
  %l = exec.buffer "later" arena : !exec.buffer<tensor<8xf32>>
  %v = exec.event "sent" : index
  exec.stream "compute" {
    exec.launch @make(%s) writes 1 : !exec.buffer<tensor<8xf32>>
    exec.send %s to 1 channel 0 event %v : !exec.buffer<tensor<8xf32>>
    exec.launch @make(%m) writes 1 : !exec.buffer<tensor<8xf32>>
    exec.wait %v
    exec.launch @make(%l) writes 1 : !exec.buffer<tensor<8xf32>>
  }
}

// Other spaces: in the order of declaration; what has its place keeps it.
// CHECK-LABEL: exec.program @spaces
// CHECK-SAME:    bytes [0, 192, 64, 128, 0, 64]
// CHECK:         exec.buffer "w" parameter at 0 :
// CHECK:         exec.buffer "b" parameter at 64 :
// CHECK:         exec.buffer "w.gradient" gradient at 0 :
// CHECK:         exec.buffer "w.m" state at 0 :
// CHECK:         exec.buffer "w.v" state at 64 :
// CHECK:         exec.buffer "inverse_label_count" scalar at 0 :
exec.program @spaces rank 0 of 1 replica 0 stage 0 microbatches 1 of 1 from 0 batch 1 {
  %w = exec.buffer "w" parameter : !exec.buffer<tensor<1xf32>>
  %b = exec.buffer "b" parameter : !exec.buffer<tensor<17xf32>>
  %g = exec.buffer "w.gradient" gradient : !exec.buffer<tensor<1xf32>>
  %m = exec.buffer "w.m" state : !exec.buffer<tensor<1xf32>>
  %v = exec.buffer "w.v" state : !exec.buffer<tensor<1xf32>>
  %s = exec.buffer "inverse_label_count" scalar at 0 : !exec.buffer<tensor<f32>>
}
