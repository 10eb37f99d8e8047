// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Elementwise: broadcasting is an indexing map, the body the op's scalar form.
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func private @elementwise(
// CHECK-SAME: %{{.*}}: tensor<2x3xf32>, %{{.*}}: tensor<1x3xf32>, %{{.*}}: !llvm.ptr)
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]]
// CHECK: arith.addf
func.func private @elementwise(%x: tensor<2x3xf32>, %b: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %y = het.add %x, %b : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// Reductions: sums may be reordered.
// CHECK-LABEL: func.func private @reduce
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]
// CHECK: arith.addf {{.*}} fastmath<reassoc,nsz,contract>
// CHECK: tensor.expand_shape
func.func private @reduce(%x: tensor<5x3xf32>) -> tensor<1x3xf32> {
  %y = het.reduce sum %x dims [0] keep : (tensor<5x3xf32>) -> tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// -----

// Norms: the variance in a second pass, from differences.
// CHECK-LABEL: func.func private @layer_norm
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]
// CHECK: linalg.generic {{.*}}["parallel", "reduction"]
// CHECK: arith.subf
// CHECK: math.sqrt
// CHECK: linalg.generic {{.*}}["parallel", "parallel"]
func.func private @layer_norm(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>) {
  %y, %m, %r = het.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64}
    : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>)
  return %y, %m, %r : tensor<2x8xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Softmax: exponential and sum in one loop.
// CHECK-LABEL: func.func private @softmax
// CHECK: arith.maximumf {{.*}} fastmath<nnan,nsz>
// CHECK: math.exp
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
func.func private @softmax(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = het.softmax %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// Shapes.
// CHECK-DAG: #[[T:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-LABEL: func.func private @shapes
// CHECK: linalg.generic {indexing_maps = [#[[T]],
// CHECK: tensor.extract_slice {{.*}}[0, 1] [3, 1] [1, 1]
// CHECK: tensor.insert_slice
// CHECK: tensor.collapse_shape
func.func private @shapes(%x: tensor<2x3xf32>) -> tensor<9xf32> {
  %t = het.transpose %x by [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %s = het.slice %t offsets [0, 1] sizes [3, 1] strides [1, 1] : (tensor<3x2xf32>) -> tensor<3x1xf32>
  %c = het.concat %t, %s {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x3xf32>
  %r = het.reshape %c to [9] : (tensor<3x3xf32>) -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// -----

// A stride that leads nowhere may be of any size.
// CHECK-LABEL: func.func private @far
// CHECK: tensor.extract_slice {{.*}}[1] [1] [1]
// CHECK-NOT: linalg.generic
func.func private @far(%x: tensor<3xf32>) -> tensor<1xf32> {
  %s = het.slice %x offsets [1] sizes [1] strides [-9223372036854775808] : (tensor<3xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// Dropout draws word 0 of ten Philox rounds and compares integers.
// CHECK-LABEL: func.func private @dropout
// CHECK-COUNT-3: llvm.load
// CHECK-COUNT-20: arith.muli {{.*}} : i64
// CHECK: arith.cmpi uge
func.func private @dropout(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = het.dropout %x {p = 1.0e-1 : f64, op_id = 7 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
