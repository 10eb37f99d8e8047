// A product is one gemm where each operand's dims are batch, then free and
// contracted dims as two runs; elsewhere a transpose comes first.
//
// RUN: autohet-opt %s --pass-pipeline='builtin.module(func.func(exec-normalize-matmuls))' | FileCheck %s

// Free dims before contracted ones, on either side: nothing to do.
// CHECK-LABEL: func.func @plain
// CHECK-NOT:     het.transpose
// CHECK:         het.matmul %{{.*}}, %{{.*}} contract [2] [0]
// CHECK:         het.matmul %{{.*}}, %{{.*}} contract [2] [1]
// CHECK:         het.matmul %{{.*}}, %{{.*}} contract [0, 1] [0, 1]
func.func @plain(%x: tensor<2x5x8xf32>, %w: tensor<8x6xf32>, %v: tensor<6x8xf32>, %d: tensor<2x5x6xf32>) {
  %0 = het.matmul %x, %w contract [2] [0] : (tensor<2x5x8xf32>, tensor<8x6xf32>) -> tensor<2x5x6xf32>
  %1 = het.matmul %x, %v contract [2] [1] : (tensor<2x5x8xf32>, tensor<6x8xf32>) -> tensor<2x5x6xf32>
  %2 = het.matmul %x, %d contract [0, 1] [0, 1] : (tensor<2x5x8xf32>, tensor<2x5x6xf32>) -> tensor<8x6xf32>
  return
}

// Heads are a batch dim that lies behind the positions.
// CHECK-LABEL: func.func @heads
// CHECK-SAME:    (%[[Q:.*]]: tensor<2x5x3x4xf32>, %[[K:.*]]: tensor<2x5x3x4xf32>)
// CHECK:         %[[QT:.*]] = het.transpose %[[Q]] by [0, 2, 1, 3]
// CHECK:         %[[KT:.*]] = het.transpose %[[K]] by [0, 2, 1, 3]
// CHECK:         het.matmul %[[QT]], %[[KT]] batch [0, 1] [0, 1] contract [3] [3]
func.func @heads(%q: tensor<2x5x3x4xf32>, %k: tensor<2x5x3x4xf32>) -> tensor<2x3x5x5xf32> {
  %0 = het.matmul %q, %k batch [0, 2] [0, 2] contract [3] [3] : (tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32>) -> tensor<2x3x5x5xf32>
  return %0 : tensor<2x3x5x5xf32>
}

// Only the operand that needs it is turned.
// CHECK-LABEL: func.func @one_side
// CHECK-SAME:    (%[[X:.*]]: tensor<2x8x5xf32>, %[[W:.*]]: tensor<8x6xf32>)
// CHECK:         %[[XT:.*]] = het.transpose %[[X]] by [0, 2, 1]
// CHECK-NOT:     het.transpose
// CHECK:         het.matmul %[[XT]], %[[W]] contract [2] [0]
func.func @one_side(%x: tensor<2x8x5xf32>, %w: tensor<8x6xf32>) -> tensor<2x5x6xf32> {
  %0 = het.matmul %x, %w contract [1] [0] : (tensor<2x8x5xf32>, tensor<8x6xf32>) -> tensor<2x5x6xf32>
  return %0 : tensor<2x5x6xf32>
}

// Contracted dims that lie in another order on each side: the one that is not a run.
// CHECK-LABEL: func.func @contract_order
// CHECK-SAME:    (%[[X:.*]]: tensor<5x3x4xf32>, %[[W:.*]]: tensor<4x3x6xf32>)
// CHECK:         %[[WT:.*]] = het.transpose %[[W]] by [2, 1, 0]
// CHECK:         het.matmul %[[X]], %[[WT]] contract [1, 2] [1, 2]
func.func @contract_order(%x: tensor<5x3x4xf32>, %w: tensor<4x3x6xf32>) -> tensor<5x6xf32> {
  %0 = het.matmul %x, %w contract [1, 2] [1, 0] : (tensor<5x3x4xf32>, tensor<4x3x6xf32>) -> tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}

// The transpose belongs where the product does.
// CHECK-LABEL: func.func @place
// CHECK:         het.transpose %{{.*}} by [0, 2, 1] {het.phase = "backward", het.unit = "block0.attn"}
func.func @place(%x: tensor<2x8x5xf32>, %w: tensor<8x6xf32>) {
  %0 = het.matmul %x, %w contract [1] [0] {het.phase = "backward", het.unit = "block0.attn"} : (tensor<2x8x5xf32>, tensor<8x6xf32>) -> tensor<2x5x6xf32>
  return
}

// Equal transposes of one place are one, whoever put them there; another place
// has its own.
// CHECK-LABEL: func.func @equal
// CHECK-SAME:    (%[[X:.*]]: tensor<2x8x5xf32>
// CHECK-NEXT:    %[[XT:.*]] = het.transpose %[[X]] by [0, 2, 1] {het.unit = "a"}
// CHECK-NEXT:    het.matmul %[[XT]]
// CHECK-NEXT:    het.matmul %[[XT]]
// CHECK-NEXT:    %[[XB:.*]] = het.transpose %[[X]] by [0, 2, 1] {het.unit = "b"}
// CHECK-NEXT:    het.matmul %[[XB]]
// CHECK-NEXT:    het.relu %[[XT]]
func.func @equal(%x: tensor<2x8x5xf32>, %w: tensor<8x6xf32>, %v: tensor<8x7xf32>) -> tensor<2x5x8xf32> {
  %0 = het.matmul %x, %w contract [1] [0] {het.unit = "a"} : (tensor<2x8x5xf32>, tensor<8x6xf32>) -> tensor<2x5x6xf32>
  %1 = het.matmul %x, %v contract [1] [0] {het.unit = "a"} : (tensor<2x8x5xf32>, tensor<8x7xf32>) -> tensor<2x5x7xf32>
  %2 = het.matmul %x, %v contract [1] [0] {het.unit = "b"} : (tensor<2x8x5xf32>, tensor<8x7xf32>) -> tensor<2x5x7xf32>
  %3 = het.transpose %x by [0, 2, 1] {het.unit = "a"} : (tensor<2x8x5xf32>) -> tensor<2x5x8xf32>
  %4 = het.relu %3 {het.unit = "a"} : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %4 : tensor<2x5x8xf32>
}
