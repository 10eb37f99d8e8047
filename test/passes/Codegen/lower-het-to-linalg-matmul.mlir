// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Products inside kernels: batch dims first, then those of each side, then what is
// summed; the weight's layout is that of PyTorch, so nothing is transposed.
// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func.func private @linear
// CHECK: linalg.fill
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]]
func.func private @linear(%x: tensor<2x5x8xf32>, %w: tensor<9x8xf32>) -> tensor<2x5x9xf32> {
  %y = het.matmul %x, %w contract [2] [1] : (tensor<2x5x8xf32>, tensor<9x8xf32>) -> tensor<2x5x9xf32>
  return %y : tensor<2x5x9xf32>
}

// -----

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, d4)>
// CHECK-LABEL: func.func private @heads
// CHECK: linalg.contract indexing_maps = [#[[Q]], #[[K]],
func.func private @heads(%q: tensor<2x5x3x8xf32>, %k: tensor<2x5x3x8xf32>) -> tensor<2x3x5x5xf32> {
  %y = het.matmul %q, %k batch [0, 2] [0, 2] contract [3] [3] : (tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>) -> tensor<2x3x5x5xf32>
  return %y : tensor<2x3x5x5xf32>
}
