// RUN: autohet-opt %s --kernel-place-scratch=stack-bytes=128 | FileCheck %s

// The small one fits the stack, the others share scratch memory.
// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %{{.*}}: memref<4xf32>, %[[A:.*]]: memref<40xf32> {llvm.noalias}, %[[B:.*]]: memref<50xf32> {llvm.noalias}, %{{.*}}: !llvm.ptr)
// CHECK-SAME: autohet.scratch_bytes = 448 : i64
// CHECK-SAME: autohet.scratch_offsets = array<i64: 0, 192>
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NOT: memref.alloc()
func.func @kernel(%x: memref<4xf32>, %context: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<50xf32>
  %b = memref.alloc() : memref<4xf32>
  %c = memref.alloc() : memref<40xf32>
  %v = memref.load %x[%c0] : memref<4xf32>
  memref.store %v, %a[%c0] : memref<50xf32>
  memref.store %v, %b[%c0] : memref<4xf32>
  memref.store %v, %c[%c0] : memref<40xf32>
  return
}
