// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg --kernel-fuse-elementwise | FileCheck %s

// A value used twice by its one consumer is merged all the same.
// CHECK-LABEL: func.func private @chain
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
func.func private @chain(%x: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = het.add %x, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = het.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = het.mul %0, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// A value a row is not computed again for each column.
// CHECK-LABEL: func.func private @row
// CHECK-COUNT-2: linalg.generic
func.func private @row(%x: tensor<2x3xf32>, %r: tensor<2x1xf32>) -> tensor<2x3xf32> {
  %0 = het.exp %r : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %1 = het.mul %x, %0 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
