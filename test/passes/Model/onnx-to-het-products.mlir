// RUN: autohet-opt %s --onnx-to-het --split-input-file | FileCheck %s

// CHECK-LABEL: @batched
// CHECK: het.matmul %arg0, %arg1 batch [0, 1] [0, 1] contract [3] [2]
// The weight is 2-D: all dims of the left operand stay.
// CHECK: het.matmul %arg0, %{{.*}} contract [3] [0]
// One batch of matrices against another: broadcast first.
// CHECK: %[[B:.*]] = het.broadcast %{{.*}} to [2, 3, 5, 4]
// CHECK: het.matmul %arg0, %[[B]] batch [0, 1] [0, 1] contract [3] [2]
func.func @batched(%a: tensor<2x3x4x5xf32> {onnx.name = "a"}, %b: tensor<2x3x5x4xf32> {onnx.name = "b"}, %c: tensor<3x5x4xf32> {onnx.name = "c"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %w = onnx.initializer "w" file "m" offset 0 bytes 140 : tensor<5x7xf32>
  %0 = onnx.node "MatMul"(%a, %b) opset 18 {} : (tensor<2x3x4x5xf32>, tensor<2x3x5x4xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%a, %w) opset 18 {} : (tensor<2x3x4x5xf32>, tensor<5x7xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%a, %c) opset 18 {} : (tensor<2x3x4x5xf32>, tensor<3x5x4xf32>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// CHECK-LABEL: @vectors
// CHECK: het.matmul
// CHECK: het.reshape %{{.*}} to [] : (tensor<1x1xf32>) -> tensor<f32>
// CHECK: het.reshape %{{.*}} to [3] : (tensor<3x1xf32>) -> tensor<3xf32>
// CHECK: het.reshape %{{.*}} to [3] : (tensor<1x3xf32>) -> tensor<3xf32>
func.func @vectors(%v: tensor<4xf32> {onnx.name = "v"}, %m: tensor<3x4xf32> {onnx.name = "m"}, %n: tensor<4x3xf32> {onnx.name = "n"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %0 = onnx.node "MatMul"(%v, %v) opset 18 {} : (tensor<4xf32>, tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%m, %v) opset 18 {} : (tensor<3x4xf32>, tensor<4xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%v, %n) opset 18 {} : (tensor<4xf32>, tensor<4x3xf32>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// GPT-2: the flattening of batch and sequence around a Gemm vanishes.
// CHECK-LABEL: @flattened
// CHECK: %[[W:.*]] = het.parameter "c_fc.weight" : tensor<4x6xf32>
// CHECK: %[[P:.*]] = het.matmul %arg0, %[[W]] contract [2] [0] : (tensor<2x3x4xf32>, tensor<4x6xf32>) -> tensor<2x3x6xf32>
// CHECK: %[[Y:.*]] = het.add %[[P]], %{{.*}} : (tensor<2x3x6xf32>, tensor<6xf32>) -> tensor<2x3x6xf32>
// CHECK: return %[[Y]]
func.func @flattened(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %w = onnx.initializer "c_fc.weight" file "m" offset 0 bytes 96 : tensor<4x6xf32>
  %b = onnx.initializer "c_fc.bias" file "m" offset 96 bytes 24 : tensor<6xf32>
  %s0 = onnx.initializer "s0" value dense<[-1, 4]> : tensor<2xi64> : tensor<2xi64>
  %s1 = onnx.initializer "s1" value dense<[2, 3, 6]> : tensor<3xi64> : tensor<3xi64>
  %0 = onnx.node "Reshape"(%x, %s0) opset 18 {} : (tensor<2x3x4xf32>, tensor<2xi64>) -> !onnx.value
  %1 = onnx.node "Gemm"(%0, %w, %b) opset 18 {} : (!onnx.value, tensor<4x6xf32>, tensor<6xf32>) -> !onnx.value
  %2 = onnx.node "Reshape"(%1, %s1) opset 18 {} : (!onnx.value, tensor<3xi64>) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// All forms of Gemm: transposes are contracted dims; C is a scalar, a row, a
// column, a matrix or absent; beta of 0 drops it.
// CHECK-LABEL: @gemm
// CHECK: het.matmul %arg0, %arg1 contract [1] [0]
// CHECK: het.matmul %arg0, %arg0 contract [0] [0]
// CHECK: %[[C:.*]] = het.mul %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>)
// CHECK: %[[P:.*]] = het.matmul %arg0, %arg0 contract [1] [1]
// CHECK: %[[A:.*]] = het.mul %[[P]], %{{.*}}
// CHECK: het.add %[[A]], %[[C]]
// CHECK: het.matmul %arg1, %arg1 contract [1] [1]
// CHECK: het.add %{{.*}}, %arg2 : (tensor<3x3xf32>, tensor<3x1xf32>)
// CHECK: het.matmul %arg1, %arg1 contract [0] [0]
// CHECK-NEXT: return
func.func @gemm(%a: tensor<2x3xf32> {onnx.name = "a"}, %b: tensor<3x2xf32> {onnx.name = "b"}, %col: tensor<3x1xf32> {onnx.name = "col"}, %s: tensor<f32> {onnx.name = "s"}) -> (!onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value) {
  %0 = onnx.node "Gemm"(%a, %b) opset 18 {} : (tensor<2x3xf32>, tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "Gemm"(%a, %a) opset 18 {transA = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> !onnx.value
  %2 = onnx.node "Gemm"(%a, %a, %s) opset 18 {alpha = 2.0 : f32, beta = 3.0 : f32, transB = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> !onnx.value
  %3 = onnx.node "Gemm"(%b, %b, %col) opset 18 {transB = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x1xf32>) -> !onnx.value
  %4 = onnx.node "Gemm"(%b, %b, %col) opset 18 {transA = 1 : i64, beta = 0.0 : f32} : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x1xf32>) -> !onnx.value
  return %0, %1, %2, %3, %4 : !onnx.value, !onnx.value, !onnx.value, !onnx.value, !onnx.value
}

// -----

// Patches that touch are a view; places that overlap, a slice for each element of
// the kernel. The weights keep their dims, or their name.
// CHECK-LABEL: func @convolutions
// CHECK: %[[V:.*]] = het.reshape %arg0 to [2, 3, 2, 4, 3, 4]
// CHECK: %[[P:.*]] = het.transpose %[[V]] by [0, 1, 2, 4, 3, 5]
// CHECK: het.matmul %[[P]], %{{.*}} contract [1, 4, 5] [1, 2, 3] : (tensor<2x3x2x3x4x4xf32>, tensor<5x3x4x4xf32>) -> tensor<2x2x3x5xf32>
// CHECK: het.slice %{{.*}} offsets [0, 0, 2] sizes [2, 6, 4] strides [1, 1, 2]
// CHECK: het.concat %{{.*}} {dim = 3 : i64} : {{.*}} -> tensor<2x6x4x3xf32>
// CHECK: het.matmul %{{.*}}, %{{.*}} batch [1] [0] contract [2, 4] [2, 3] : (tensor<2x2x3x4x3xf32>, tensor<2x2x3x3xf32>) -> tensor<2x2x4x2xf32>
func.func @convolutions(%x: tensor<2x3x8x12xf32> {onnx.name = "x"}, %z: tensor<2x6x8xf32> {onnx.name = "z"}) -> (!onnx.value, !onnx.value) {
  %w = onnx.initializer "w" file "m" offset 0 bytes 960 : tensor<5x3x4x4xf32>
  %0 = onnx.node "Conv"(%x, %w) opset 11 {strides = array<i64: 4, 4>} : (tensor<2x3x8x12xf32>, tensor<5x3x4x4xf32>) -> !onnx.value
  %v = onnx.initializer "v" file "m" offset 960 bytes 144 : tensor<4x3x3xf32>
  %1 = onnx.node "Conv"(%z, %v) opset 11 {group = 2 : i64, pads = array<i64: 1, 1>, strides = array<i64: 2>} : (tensor<2x6x8xf32>, tensor<4x3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}
