// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Losses: the sum over rows in double precision; labels are checked.
// CHECK-LABEL: func.func private @cross_entropy
// CHECK-SAME: attributes {autohet.may_fail}
// CHECK: scf.if
// CHECK: llvm.store
// CHECK: arith.extf {{.*}} : f32 to f64
func.func private @cross_entropy(%x: tensor<3x11xf32>, %l: tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>) {
  %s, %e = het.cross_entropy %x, %l {ignore_index = -100 : i64}
    : (tensor<3x11xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<3xf32>)
  return %s, %e : tensor<f32>, tensor<3xf32>
}

// -----

// The adjoint: softmax less one at the label, times the incoming gradient.
// Rows that do not count get zeros.
// CHECK-LABEL: func.func private @backward
// CHECK: %[[IGNORED:.*]] = arith.cmpi eq, %{{.*}}, %c-100_i64
// CHECK: arith.select %[[IGNORED]], %cst, %{{.*}} : f32
// CHECK: %[[P:.*]] = math.exp
// CHECK: %[[ONE:.*]] = arith.select
// CHECK: arith.subf %[[P]], %[[ONE]]
func.func private @backward(%x: tensor<3x11xf32>, %l: tensor<3xi64>, %e: tensor<3xf32>, %g: tensor<f32>) -> tensor<3x11xf32> {
  %d = het.cross_entropy_backward %x, %l, %e, %g {ignore_index = -100 : i64}
    : (tensor<3x11xf32>, tensor<3xi64>, tensor<3xf32>, tensor<f32>) -> tensor<3x11xf32>
  return %d : tensor<3x11xf32>
}
