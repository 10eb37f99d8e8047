// RUN: autohet-opt %s --split-input-file --lower-het-to-linalg | FileCheck %s

// The first of equal elements wins: only a greater one takes its place.
// CHECK-LABEL: func.func private @arg_max
// CHECK: scf.for {{.*}} -> (f32, index)
// CHECK: %[[GREATER:.*]] = arith.cmpf ogt
// CHECK: arith.select %[[GREATER]], {{.*}} : f32
// CHECK: arith.select %[[GREATER]], {{.*}} : index
func.func private @arg_max(%x: tensor<2x3xf32>) -> tensor<2xi64> {
  %y = het.arg_reduce max %x dim 1 : (tensor<2x3xf32>) -> tensor<2xi64>
  return %y : tensor<2xi64>
}

// -----

// The sum so far is carried, and each element's place is written once.
// CHECK-LABEL: func.func private @running_sum
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (tensor<2x3x1xf32>, f32)
// CHECK: arith.addf %[[SUM]]
// CHECK: tensor.insert
func.func private @running_sum(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = het.cumulative_sum %x dim 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// The k-th is the best that comes after the one before it, ties by place.
// CHECK-LABEL: func.func private @top
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (f32, index, i1)
// CHECK: %[[LATER:.*]] = arith.cmpi ugt
// CHECK: %[[EQUAL:.*]] = arith.cmpf oeq
// CHECK: arith.andi %[[EQUAL]], %[[LATER]]
func.func private @top(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>) {
  %v, %i = het.top_k %x {k = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  return %v, %i : tensor<2x2xf32>, tensor<2x2xi64>
}

// -----

// Indices come from data: checked before anything is written, then wrapped.
// CHECK-LABEL: func.func private @scatter
// CHECK-SAME: attributes {autohet.may_fail}
// CHECK: arith.cmpi sge
// CHECK: llvm.store
// CHECK: scf.for {{.*}} -> (tensor<4x1xf32>)
// CHECK: arith.minsi
// CHECK: tensor.insert
func.func private @scatter(%x: tensor<4xf32>, %i: tensor<3x1xi64>, %u: tensor<3xf32>) -> tensor<4xf32> {
  %y = het.scatter_nd replace %x, %i, %u : (tensor<4xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
