// RUN: autohet-opt %s --split-input-file --kernel-lower-products | FileCheck %s

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (n, k)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>

// Batch and sequence are one run of rows; the fill becomes beta = 0.
// CHECK-LABEL: func.func @linear
// CHECK-NOT: linalg.fill
// CHECK-NOT: scf.for
// CHECK-DAG: %[[NO:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[YES:.*]] = arith.constant 1 : i64
// CHECK: memref.extract_strided_metadata %arg1
// CHECK: %[[BETA:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: call @autohet_sgemm(%[[NO]], %[[YES]], {{.*}}, %[[BETA]], %{{.*}}, %{{.*}})
func.func @linear(%x: memref<2x5x8xf32>, %w: memref<9x8xf32>, %y: memref<2x5x9xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<2x5x9xf32>)
  linalg.contract indexing_maps = [#x, #w, #y]
    ins(%x, %w : memref<2x5x8xf32>, memref<9x8xf32>) outs(%y : memref<2x5x9xf32>)
  return
}

// -----

#a = affine_map<(b, i, j, l) -> (b, i, l)>
#b = affine_map<(b, i, j, l) -> (b, l, j)>
#c = affine_map<(b, i, j, l) -> (b, i, j)>

// A batch is a loop of calls, and accumulates.
// CHECK-LABEL: func.func @batch
// CHECK: scf.for
// CHECK: memref.extract_strided_metadata %arg1
// CHECK: %[[BETA:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: call @autohet_sgemm({{.*}}, %[[BETA]], %{{.*}}, %{{.*}})
func.func @batch(%x: memref<3x5x8xf32>, %w: memref<3x8x9xf32>, %y: memref<3x5x9xf32>) {
  linalg.contract indexing_maps = [#a, #b, #c]
    ins(%x, %w : memref<3x5x8xf32>, memref<3x8x9xf32>) outs(%y : memref<3x5x9xf32>)
  return
}

// -----

#a = affine_map<(i, j, l) -> (l, i)>
#b = affine_map<(i, j, l) -> (l, j)>
#c = affine_map<(i, j, l) -> (i, j)>

// No unit stride: loops.
// CHECK-LABEL: func.func @strided
// CHECK: linalg.generic
func.func @strided(%x: memref<3x4xf32, strided<[8, 2]>>, %w: memref<3x5xf32, strided<[10, 2]>>, %y: memref<4x5xf32>) {
  linalg.contract indexing_maps = [#a, #b, #c]
    ins(%x, %w : memref<3x4xf32, strided<[8, 2]>>, memref<3x5xf32, strided<[10, 2]>>) outs(%y : memref<4x5xf32>)
  return
}
