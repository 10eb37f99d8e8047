// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Rotary writes both members to their place.
// CHECK-LABEL: func.func private @rotary
// CHECK: arith.subf
// CHECK: tensor.insert_slice {{.*}}[0, 0, 0, 0] [1, 1, 5, 4] [1, 1, 1, 1]
// CHECK: arith.addf
// CHECK: tensor.insert_slice {{.*}}[0, 0, 0, 4] [1, 1, 5, 4] [1, 1, 1, 1]
func.func private @rotary(%x: tensor<1x1x5x8xf32>, %c: tensor<5x4xf32>) -> tensor<1x1x5x8xf32> {
  %y = het.rotary %x, %c, %c : (tensor<1x1x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<1x1x5x8xf32>
  return %y : tensor<1x1x5x8xf32>
}

// -----

// The adjoint turns back; interleaved members lie side by side.
// CHECK-LABEL: func.func private @inverse
// CHECK: arith.addf
// CHECK: tensor.insert_slice {{.*}}[0, 0, 0, 0] [1, 1, 5, 4] [1, 1, 1, 2]
// CHECK: arith.subf
// CHECK: tensor.insert_slice {{.*}}[0, 0, 0, 1] [1, 1, 5, 4] [1, 1, 1, 2]
func.func private @inverse(%x: tensor<1x1x5x8xf32>, %c: tensor<5x4xf32>) -> tensor<1x1x5x8xf32> {
  %y = het.rotary %x, %c, %c {interleaved, inverse} : (tensor<1x1x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<1x1x5x8xf32>
  return %y : tensor<1x1x5x8xf32>
}
