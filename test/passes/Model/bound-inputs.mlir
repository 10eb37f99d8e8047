// RUN: autohet-opt %s --het-bound-inputs | FileCheck %s

// The smallest table that an input indexes bounds it; labels by the classes; a
// computed index bounds nothing.
// CHECK-LABEL: func.func @model
// CHECK-SAME: %arg0: tensor<2x3xi64> {het.vocabulary = 5 : i64}
// CHECK-SAME: %arg1: tensor<6xi64> {het.vocabulary = 4 : i64}
// CHECK-SAME: %arg2: tensor<2x3xi64>)
func.func @model(%ids: tensor<2x3xi64>, %labels: tensor<6xi64>, %other: tensor<2x3xi64>) {
  %a = het.parameter "a" : tensor<7x4xf32>
  %b = het.parameter "b" : tensor<5x4xf32>
  %0 = het.embedding %a, %ids : (tensor<7x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %1 = het.cast %ids {to = i32} : (tensor<2x3xi64>) -> tensor<2x3xi32>
  %2 = het.embedding %b, %1 : (tensor<5x4xf32>, tensor<2x3xi32>) -> tensor<2x3x4xf32>
  %3 = het.add %other, %ids : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi64>
  %4 = het.embedding %b, %3 : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %5 = het.reshape %labels to [2, 3] : (tensor<6xi64>) -> tensor<2x3xi64>
  %6:2 = het.cross_entropy %0, %5 {ignore_index = -100 : i64} : (tensor<2x3x4xf32>, tensor<2x3xi64>) -> (tensor<f32>, tensor<2x3xf32>)
  return
}
