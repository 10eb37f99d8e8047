// RUN: autohet-opt %s --het-simplify-gathers --split-input-file | FileCheck %s

// dynamo's padding mask: element (row, column) of it, at (row, 0, 0, column).
// CHECK-LABEL: func @gather_nd
// CHECK-NEXT: %[[M:.*]] = het.reshape %arg0 to [2, 1, 1, 3]
// CHECK-NEXT: return %[[M]]
func.func @gather_nd(%pad: tensor<2x3xi1>) -> tensor<2x1x1x3xi1> {
  %i = het.constant dense<[[[[[0, 0], [0, 1], [0, 2]]]], [[[[1, 0], [1, 1], [1, 2]]]]]> : tensor<2x1x1x3x2xi64>
  %m = het.gather_nd %pad, %i {batch_dims = 0 : i64} : (tensor<2x3xi1>, tensor<2x1x1x3x2xi64>) -> tensor<2x1x1x3xi1>
  return %m : tensor<2x1x1x3xi1>
}

// -----

// TorchScript's: the flattened mask at row * 3 + column.
// CHECK-LABEL: func @gather_flat
// CHECK-NEXT: %[[M:.*]] = het.reshape %arg0 to [2, 1, 1, 3, 1]
// CHECK-NEXT: return %[[M]]
func.func @gather_flat(%pad: tensor<2x3xi1>) -> tensor<2x1x1x3x1xi1> {
  %i = het.constant dense<[[[[0, 1, 2]]], [[[3, 4, 5]]]]> : tensor<2x1x1x3xi64>
  %f = het.reshape %pad to [6, 1] : (tensor<2x3xi1>) -> tensor<6x1xi1>
  %m = het.gather %f, %i {dim = 0 : i64} : (tensor<6x1xi1>, tensor<2x1x1x3xi64>) -> tensor<2x1x1x3x1xi1>
  return %m : tensor<2x1x1x3x1xi1>
}

// -----

// One element: a slice. Counting backwards from the end: a negative stride.
// CHECK-LABEL: func @slices
// CHECK: %[[S:.*]] = het.slice %arg0 offsets [0, 2] sizes [2, 1] strides [1, 1]
// CHECK: %[[A:.*]] = het.reshape %[[S]] to [2]
// CHECK: %[[B:.*]] = het.slice %arg0 offsets [0, 2] sizes [2, 2] strides [1, -2]
// CHECK: return %[[A]], %[[B]]
func.func @slices(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x2xf32>) {
  %last = het.constant dense<-1> : tensor<i64>
  %back = het.constant dense<[-1, -3]> : tensor<2xi64>
  %a = het.gather %x, %last {dim = 1 : i64} : (tensor<2x3xf32>, tensor<i64>) -> tensor<2xf32>
  %b = het.gather %x, %back {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  return %a, %b : tensor<2xf32>, tensor<2x2xf32>
}

// -----

// The same row for each position: a broadcast; the index's order: a transpose.
// CHECK-LABEL: func @broadcast
// CHECK: %[[T:.*]] = het.transpose %arg0 by [1, 0]
// CHECK: %[[R:.*]] = het.reshape %[[T]] to [3, 1, 2]
// CHECK: het.broadcast %[[R]] to [3, 2, 2]
func.func @broadcast(%x: tensor<2x3xf32>) -> tensor<3x2x2xf32> {
  %i = het.constant dense<[[[[0, 0], [1, 0]], [[0, 0], [1, 0]]], [[[0, 1], [1, 1]], [[0, 1], [1, 1]]], [[[0, 2], [1, 2]], [[0, 2], [1, 2]]]]> : tensor<3x2x2x2xi64>
  %y = het.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<2x3xf32>, tensor<3x2x2x2xi64>) -> tensor<3x2x2xf32>
  return %y : tensor<3x2x2xf32>
}

// -----

// Not views: a permutation, a diagonal, an index out of range.
// CHECK-LABEL: func @gathers
// CHECK: het.gather %arg0
// CHECK: het.gather_nd
// CHECK: het.gather %arg0
func.func @gathers(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %p = het.constant dense<[0, 2, 1]> : tensor<3xi64>
  %d = het.constant dense<[[0, 0], [1, 1], [2, 2]]> : tensor<3x2xi64>
  %o = het.constant dense<3> : tensor<i64>
  %a = het.gather %x, %p {dim = 0 : i64} : (tensor<3x3xf32>, tensor<3xi64>) -> tensor<3x3xf32>
  %b = het.gather_nd %x, %d {batch_dims = 0 : i64} : (tensor<3x3xf32>, tensor<3x2xi64>) -> tensor<3xf32>
  %c = het.gather %x, %o {dim = 0 : i64} : (tensor<3x3xf32>, tensor<i64>) -> tensor<3xf32>
  return %a, %b, %c : tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// The number of the row, then an index from data: rows are paired.
// CHECK-LABEL: func @paired_rows
// CHECK: het.gather_nd %arg0, %arg1 {batch_dims = 1 : i64}
func.func @paired_rows(%x: tensor<2x5xi64>, %i: tensor<2x3x1xi64>) -> tensor<2x3xi64> {
  %row = het.constant dense<[[[0], [0], [0]], [[1], [1], [1]]]> : tensor<2x3x1xi64>
  %both = het.concat %row, %i {dim = 2 : i64} : (tensor<2x3x1xi64>, tensor<2x3x1xi64>) -> tensor<2x3x2xi64>
  %y = het.gather_nd %x, %both {batch_dims = 0 : i64} : (tensor<2x5xi64>, tensor<2x3x2xi64>) -> tensor<2x3xi64>
  return %y : tensor<2x3xi64>
}

// -----

// Rows that are others, or not all: no pairs.
// CHECK-LABEL: func @unpaired_rows
// CHECK-COUNT-2: het.gather_nd %arg0, {{.*}} {batch_dims = 0 : i64}
func.func @unpaired_rows(%x: tensor<2x5xi64>, %i: tensor<2x1xi64>, %j: tensor<1x1xi64>) -> (tensor<2xi64>, tensor<1xi64>) {
  %swapped = het.constant dense<[[1], [0]]> : tensor<2x1xi64>
  %first = het.constant dense<0> : tensor<1x1xi64>
  %a = het.concat %swapped, %i {dim = 1 : i64} : (tensor<2x1xi64>, tensor<2x1xi64>) -> tensor<2x2xi64>
  %b = het.concat %first, %j {dim = 1 : i64} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x2xi64>
  %y = het.gather_nd %x, %a {batch_dims = 0 : i64} : (tensor<2x5xi64>, tensor<2x2xi64>) -> tensor<2xi64>
  %z = het.gather_nd %x, %b {batch_dims = 0 : i64} : (tensor<2x5xi64>, tensor<1x2xi64>) -> tensor<1xi64>
  return %y, %z : tensor<2xi64>, tensor<1xi64>
}

// -----

// A row of each sample, of samples laid end to end, at a place that cannot be
// in another sample; as a table too, which is how floats are imported.
// CHECK-LABEL: func @row_of_each_sample
// CHECK-DAG: %[[I:.*]] = het.arg_reduce max %arg1
// CHECK-DAG: %[[R:.*]] = het.reshape %[[I]] to [2, 1]
// CHECK: het.gather_nd %arg0, %[[R]] {batch_dims = 1 : i64} : (tensor<2x5x3xf32>, tensor<2x1xi64>) -> tensor<2x3xf32>
// CHECK: het.gather_nd %arg0, %{{.*}} {batch_dims = 1 : i64} : (tensor<2x5x3xf32>, tensor<2x1xi64>) -> tensor<2x3xf32>
func.func @row_of_each_sample(%x: tensor<2x5x3xf32>, %ids: tensor<2x5xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %first = het.constant dense<[0, 5]> : tensor<2xi64>
  %place = het.arg_reduce max %ids dim 1 : (tensor<2x5xi64>) -> tensor<2xi64>
  %row = het.add %first, %place : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %flat = het.reshape %x to [10, 3] : (tensor<2x5x3xf32>) -> tensor<10x3xf32>
  %y = het.gather %flat, %row {dim = 0 : i64} : (tensor<10x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %z = het.embedding %flat, %row : (tensor<10x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// A place that nobody knows, and one that may be further than a sample is long.
// CHECK-LABEL: func @rows_of_anyone
// CHECK-NOT: het.gather_nd
func.func @rows_of_anyone(%x: tensor<2x5x3xf32>, %i: tensor<2xi64>, %ids: tensor<2x6xi64>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %first = het.constant dense<[0, 5]> : tensor<2xi64>
  %a = het.add %first, %i : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %place = het.arg_reduce max %ids dim 1 : (tensor<2x6xi64>) -> tensor<2xi64>
  %b = het.add %first, %place : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %flat = het.reshape %x to [10, 3] : (tensor<2x5x3xf32>) -> tensor<10x3xf32>
  %y = het.gather %flat, %a {dim = 0 : i64} : (tensor<10x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %z = het.gather %flat, %b {dim = 0 : i64} : (tensor<10x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Tuples that are constant as a whole, as of a lookup along one dim: relative
// positions. Rows are paired, dim by dim.
// CHECK-LABEL: func @constant_tuples
// CHECK: %[[I:.*]] = het.constant dense<{{.*}}> : tensor<2x3x1xi64>
// CHECK: het.gather_nd %arg0, %[[I]] {batch_dims = 1 : i64}
func.func @constant_tuples(%x: tensor<2x5xf32>) -> tensor<2x3xf32> {
  %both = het.constant dense<[[[0, 4], [0, 0], [0, 1]], [[1, 2], [1, 2], [1, 0]]]> : tensor<2x3x2xi64>
  %y = het.gather_nd %x, %both {batch_dims = 0 : i64} : (tensor<2x5xf32>, tensor<2x3x2xi64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// Each sample's rows 2 and 0, in this order: samples become part of the rows.
// Tuples that are not the same for all samples stay.
// CHECK-LABEL: func @written_rows
// CHECK: %[[I:.*]] = het.constant dense<{{\[\[}}2], [0]]> : tensor<2x1xi64>
// CHECK: %[[X:.*]] = het.transpose %arg0 by [1, 0, 2] : (tensor<3x4x5xf32>) -> tensor<4x3x5xf32>
// CHECK: %[[U:.*]] = het.transpose %arg1 by [1, 0, 2] : (tensor<3x2x5xf32>) -> tensor<2x3x5xf32>
// CHECK: %[[Y:.*]] = het.scatter_nd replace %[[X]], %[[I]], %[[U]]
// CHECK: %[[R:.*]] = het.transpose %[[Y]] by [1, 0, 2] : (tensor<4x3x5xf32>) -> tensor<3x4x5xf32>
// CHECK: het.scatter_nd add %[[R]]
func.func @written_rows(%x: tensor<3x4x5xf32>, %u: tensor<3x2x5xf32>) -> tensor<3x4x5xf32> {
  %i = het.constant dense<[[[0, 2], [0, 0]], [[1, 2], [1, 0]], [[2, 2], [2, 0]]]> : tensor<3x2x2xi64>
  %j = het.constant dense<[[[0, 2], [0, 0]], [[1, 2], [1, 0]], [[2, 2], [2, 1]]]> : tensor<3x2x2xi64>
  %y = het.scatter_nd replace %x, %i, %u : (tensor<3x4x5xf32>, tensor<3x2x2xi64>, tensor<3x2x5xf32>) -> tensor<3x4x5xf32>
  %z = het.scatter_nd add %y, %j, %u : (tensor<3x4x5xf32>, tensor<3x2x2xi64>, tensor<3x2x5xf32>) -> tensor<3x4x5xf32>
  return %z : tensor<3x4x5xf32>
}

// -----

// Indices that no operand has, whose differences 64 bits do not hold.
// CHECK-LABEL: func @far
// CHECK: het.gather
func.func @far(%x: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %i = het.constant dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64>
  %y = het.gather %x, %i {dim = 0 : i64} : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
