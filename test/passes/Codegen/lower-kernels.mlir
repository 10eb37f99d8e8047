// RUN: autohet-opt %s --lower-kernels | FileCheck %s

// The whole way: nothing is allocated, nothing but the LLVM dialect is left.
// CHECK-LABEL: llvm.func @kernel(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i64
// CHECK-NOT: llvm.call @malloc
// CHECK: llvm.func internal @kernel.body
// CHECK-NOT: llvm.call @malloc
// CHECK: llvm.return
func.func private @kernel(%x: tensor<4x771xf32>, %b: tensor<771xf32>) -> tensor<4x771xf32> {
  %0 = het.add %x, %b : (tensor<4x771xf32>, tensor<771xf32>) -> tensor<4x771xf32>
  %1 = het.softmax %0 : (tensor<4x771xf32>) -> tensor<4x771xf32>
  return %1 : tensor<4x771xf32>
}
