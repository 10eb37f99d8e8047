// RUN: autohet-opt %s --lower-het-to-linalg --kernel-pass-destinations | FileCheck %s

// The result's buffer comes after the inputs; a reshape of the result is one of
// the buffer instead.
// CHECK-LABEL: func.func private @kernel(
// CHECK-SAME: %[[X:.*]]: memref<2x3xf32> {llvm.noalias}, %[[Y:.*]]: memref<6xf32> {llvm.noalias}, %{{.*}}: !llvm.ptr)
// CHECK: %[[VIEW:.*]] = memref.expand_shape %[[Y]]
// CHECK: %[[PLACE:.*]] = bufferization.to_tensor %[[VIEW]] restrict writable
// CHECK: %[[VALUE:.*]] = linalg.generic
// CHECK: %[[IN:.*]] = bufferization.materialize_in_destination %[[VALUE]] in %[[PLACE]]
// CHECK: bufferization.materialize_in_destination %[[IN]] in writable %[[VIEW]]
func.func private @kernel(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %0 = het.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = het.reshape %0 to [6] : (tensor<2x3xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
