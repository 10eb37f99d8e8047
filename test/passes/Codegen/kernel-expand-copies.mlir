// RUN: autohet-opt %s --kernel-expand-copies | FileCheck %s

// CHECK-LABEL: func.func @copies
// CHECK: memref.copy %arg0, %arg1
// CHECK-NOT: memref.copy
// CHECK: linalg.generic
func.func @copies(%a: memref<3x2xf32>, %b: memref<3x2xf32>, %c: memref<3x2xf32, strided<[9, 1]>>) {
  memref.copy %a, %b : memref<3x2xf32> to memref<3x2xf32>
  memref.copy %a, %c : memref<3x2xf32> to memref<3x2xf32, strided<[9, 1]>>
  return
}
