// RUN: autohet-opt %s --kernel-expand-math | FileCheck %s

// exp becomes arithmetic; sin, whose polynomial is poor for large arguments,
// becomes a call of libm; double precision is left alone.
// CHECK-LABEL: func.func @math
// CHECK-NOT: math.exp %{{.*}} : f32
// CHECK: math.fma
// CHECK: llvm.intr.sin
// CHECK: math.exp %{{.*}} : f64
func.func @math(%x: f32, %y: f64) -> (f32, f32, f64) {
  %0 = math.exp %x : f32
  %1 = math.sin %x : f32
  %2 = math.exp %y : f64
  return %0, %1, %2 : f32, f32, f64
}
