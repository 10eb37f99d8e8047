// One scratch buffer a program, as large as the largest request, and last of the
// buffers of each launch that asks for one.
//
// RUN: autohet-opt %s --exec-add-scratch | FileCheck %s

func.func private @attention_0(tensor<8xf32>) -> tensor<8xf32> attributes {autohet.scratch_bytes = 4096 : i64}
func.func private @softmax_0(tensor<8xf32>) -> tensor<8xf32> attributes {autohet.scratch_bytes = 512 : i64}
func.func private @gelu_0(tensor<8xf32>) -> tensor<8xf32>

// CHECK-LABEL: exec.program @"n0/0"
// CHECK:         %[[S:.*]] = exec.buffer "scratch" arena : <tensor<4096xi8>>
// CHECK-NOT:     "scratch"
// CHECK:         %[[X:.*]] = exec.buffer "x"
// CHECK:         %[[Y:.*]] = exec.buffer "y"
// CHECK:         exec.launch @softmax_0(%[[X]], %[[Y]], %[[S]]) writes 2 :
// CHECK:         exec.loop
// CHECK:           exec.launch @attention_0(%[[Y]], %[[X]], %[[S]]) writes 2 {microbatch = 1 : i64} :
// CHECK:           exec.launch @gelu_0(%[[X]], %[[Y]]) writes 1 :
exec.program @"n0/0" rank 0 of 2 replica 0 stage 0 microbatches 4 of 1 from 0 batch 4 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<8xf32>>
  %y = exec.buffer "y" arena : !exec.buffer<tensor<8xf32>>
  exec.stream "compute" {
    exec.launch @softmax_0(%x, %y) writes 1 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
    exec.loop 0 to 3 {
      exec.launch @attention_0(%y, %x) writes 1 {microbatch = 1 : i64} : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
      exec.launch @gelu_0(%x, %y) writes 1 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
    }
  }
}

// A program whose kernels ask for nothing gets nothing.
// CHECK-LABEL: exec.program @"n0/1"
// CHECK-NOT:     "scratch"
// CHECK:         exec.launch @gelu_0(%{{.*}}, %{{.*}}) writes 1 :
exec.program @"n0/1" rank 1 of 2 replica 0 stage 1 microbatches 4 of 1 from 0 batch 4 {
  %x = exec.buffer "x" arena : !exec.buffer<tensor<8xf32>>
  exec.stream "compute" {
    exec.launch @gelu_0(%x, %x) writes 1 : !exec.buffer<tensor<8xf32>>, !exec.buffer<tensor<8xf32>>
  }
}
