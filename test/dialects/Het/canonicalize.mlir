// RUN: autohet-opt %s --canonicalize --split-input-file | FileCheck %s

// Elementwise ops broadcast by themselves.
// CHECK-LABEL: func @broadcast
// CHECK-NEXT: het.add %arg0, %arg1 : (tensor<2x3xf32>, tensor<3xf32>)
func.func @broadcast(%x: tensor<2x3xf32>, %v: tensor<3xf32>) -> tensor<2x3xf32> {
  %b = het.broadcast %v to [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %y = het.add %x, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func @leading_ones
// CHECK-NEXT: het.add %arg0, %arg1 : (tensor<2x3xf32>, tensor<3xf32>)
func.func @leading_ones(%x: tensor<2x3xf32>, %v: tensor<3xf32>) -> tensor<2x3xf32> {
  %b = het.reshape %v to [1, 3] : (tensor<3xf32>) -> tensor<1x3xf32>
  %y = het.add %x, %b : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// The broadcast decides the shape here: it stays.
// CHECK-LABEL: func @needed_broadcast
// CHECK: het.broadcast
func.func @needed_broadcast(%v: tensor<3xf32>) -> tensor<2x3xf32> {
  %b = het.broadcast %v to [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %y = het.exp %b : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// A mask whose rows are equal for all samples loses the batch dim.
// CHECK-LABEL: func @shrink
// CHECK-DAG: %[[M:.*]] = het.constant dense<{{\[\[}}[0.000000e+00, -1.000000e+00]]]> : tensor<1x1x2xf32>
// CHECK-DAG: %[[C:.*]] = het.constant dense<2.000000e+00> : tensor<f32>
// CHECK: %[[A:.*]] = het.add %arg0, %[[M]]
// CHECK: het.mul %[[A]], %[[C]]
func.func @shrink(%x: tensor<2x3x2xf32>) -> tensor<2x3x2xf32> {
  %m = het.constant dense<[[[0.0, -1.0]], [[0.0, -1.0]]]> : tensor<2x1x2xf32>
  %c = het.constant dense<2.0> : tensor<2x3x2xf32>
  %y = het.add %x, %m : (tensor<2x3x2xf32>, tensor<2x1x2xf32>) -> tensor<2x3x2xf32>
  %z = het.mul %y, %c : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  return %z : tensor<2x3x2xf32>
}

// -----

// CHECK-LABEL: func @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = het.constant dense<0.0> : tensor<f32>
  %one = het.constant dense<1.0> : tensor<f32>
  %a = het.add %zero, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = het.mul %a, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %c = het.sub %b, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %d = het.div %c, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %e = het.pow %d, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %f = het.neg %e : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %g = het.neg %f : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %g : tensor<2x3xf32>
}

// Where the neutral operand has the larger shape, what is left is a broadcast.
// CHECK-LABEL: func @neutral_mask
// CHECK-NEXT: het.broadcast %arg0 to [2, 1, 3, 3]
func.func @neutral_mask(%pad: tensor<2x1x1x3xi1>) -> tensor<2x1x3x3xi1> {
  %all = het.constant dense<true> : tensor<1x1x3x1xi1>
  %y = het.and %all, %pad : (tensor<1x1x3x1xi1>, tensor<2x1x1x3xi1>) -> tensor<2x1x3x3xi1>
  return %y : tensor<2x1x3x3xi1>
}

// -----

// CHECK-LABEL: func @compose
// CHECK-NEXT: het.slice %arg0 offsets [3] sizes [2] strides [2]
// CHECK-NEXT: het.broadcast %arg1 to [4, 2, 3]
func.func @compose(%x: tensor<9xf32>, %v: tensor<3xf32>) -> (tensor<2xf32>, tensor<4x2x3xf32>) {
  %a = het.slice %x offsets [1] sizes [4] strides [2] : (tensor<9xf32>) -> tensor<4xf32>
  %b = het.slice %a offsets [1] sizes [2] strides [1] : (tensor<4xf32>) -> tensor<2xf32>
  %c = het.broadcast %v to [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %d = het.broadcast %c to [4, 2, 3] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  return %b, %d : tensor<2xf32>, tensor<4x2x3xf32>
}

// -----

// A stride to nowhere may be of any size.
// CHECK-LABEL: func @compose_far
// CHECK-NEXT: het.slice %arg0 offsets [4] sizes [1] strides [1]
// CHECK-NEXT: return
func.func @compose_far(%x: tensor<9xf32>) -> tensor<1xf32> {
  %a = het.slice %x offsets [4] sizes [1] strides [-9223372036854775808] : (tensor<9xf32>) -> tensor<1xf32>
  %b = het.slice %a offsets [0] sizes [1] strides [-9223372036854775808] : (tensor<1xf32>) -> tensor<1xf32>
  return %b : tensor<1xf32>
}
