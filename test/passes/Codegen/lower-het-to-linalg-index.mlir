// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// Indices: a table that is a box of a larger one gives zero rows; ids are
// checked against the larger one.
// CHECK-LABEL: func.func private @embedding
// CHECK-SAME: autohet.may_fail
// CHECK: %[[ALL:.*]] = arith.constant 20 : i64
// CHECK: arith.cmpi sge, %{{.*}}, %[[ALL]] : i64
// CHECK: tensor.extract
// CHECK: arith.select
func.func private @embedding(%t: tensor<5x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %y = het.embedding %t, %i {first_row = 10 : i64, all_rows = 20 : i64} : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Rows that meet are added one after the other.
// CHECK-LABEL: func.func private @embedding_backward
// CHECK-SAME: autohet.may_fail
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<5x4xf32>
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[ZEROS]])
// CHECK: tensor.extract_slice %[[SUM]]
// CHECK: arith.addf
// CHECK: tensor.insert_slice {{.*}} into %[[SUM]]
func.func private @embedding_backward(%i: tensor<3xi64>, %g: tensor<3x4xf32>) -> tensor<5x4xf32> {
  %y = het.embedding_backward %i, %g {rows = 5 : i64} : (tensor<3xi64>, tensor<3x4xf32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

// A negative index counts from the end; one beyond either end fails.
// CHECK-LABEL: func.func private @gather
// CHECK-SAME: autohet.may_fail
// CHECK: arith.cmpi slt, %{{.*}}, %c-5_i64
// CHECK: arith.cmpi sge, %{{.*}}, %c5_i64
// CHECK: linalg.generic
// CHECK: %[[NEGATIVE:.*]] = arith.cmpi slt, %[[INDEX:.*]], %{{.*}}
// CHECK: %[[FROM_END:.*]] = arith.addi %[[INDEX]]
// CHECK: arith.select %[[NEGATIVE]], %[[FROM_END]], %[[INDEX]]
// CHECK: tensor.extract
func.func private @gather(%x: tensor<3x5xf32>, %i: tensor<2xi64>) -> tensor<3x2xf32> {
  %y = het.gather %x, %i {dim = 1 : i64} : (tensor<3x5xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// CHECK-LABEL: func.func private @iota
// CHECK: linalg.index 0
// CHECK: arith.muli %{{.*}}, %c-2_i64
// CHECK: arith.addi %{{.*}}, %c3_i64
func.func private @iota() -> tensor<12xi64> {
  %i = het.iota {start = 3 : i64, step = -2 : i64, count = 12 : i64, element = i64} : () -> tensor<12xi64>
  return %i : tensor<12xi64>
}
