// RUN: autohet-opt %s --split-input-file --kernel-fuse-row-loops | FileCheck %s

// Loops over the same rows are joined, and what each row hands on is a number.
// CHECK-LABEL: func.func @rows
// CHECK: %[[T:.*]] = memref.alloc() : memref<f32>
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[T]][]
// CHECK: memref.load %[[T]][]
// CHECK-NOT: scf.for
func.func @rows(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf32>
    memref.store %a, %t[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %t[%i] : memref<8xf32>
    memref.store %a, %y[%i] : memref<8xf32>
  }
  return
}

// -----

// A loop that needs the whole of the first stays behind it; one that needs
// nothing of it moves ahead.
// CHECK-LABEL: func.func @whole
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %arg3
// CHECK: scf.for
// CHECK: memref.load %arg3[%c0]
func.func @whole(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<9xf32>, %s: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %f = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %x[%i] : memref<8xf32>
    memref.store %a, %s[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %c9 step %c1 {
    memref.store %f, %z[%i] : memref<9xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %f, %z[%i] : memref<9xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %a = memref.load %s[%c0] : memref<8xf32>
    memref.store %a, %y[%i] : memref<8xf32>
  }
  return
}
