// RUN: autohet-opt %s --onnx-to-het --split-input-file | FileCheck %s

// CHECK-LABEL: @norms
// CHECK: het.layer_norm %arg0, %{{.*}}, %{{.*}} {epsilon = 9.9999997473787516E-6 : f64}
// Without a bias, one of zeros; over two dims, as one.
// CHECK: %[[S:.*]] = het.reshape %{{.*}} to [12]
// CHECK: %[[F:.*]] = het.reshape %arg0 to [2, 12]
// CHECK: %[[Z:.*]] = het.constant dense<0.000000e+00> : tensor<12xf32>
// CHECK: het.layer_norm %[[F]], %[[S]], %[[Z]]
// CHECK: het.rms_norm %arg0, %{{.*}} {epsilon = 9.9999999747524271E-7 : f64}
func.func @norms(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %g = onnx.initializer "g" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "b" file "m" offset 16 bytes 16 : tensor<4xf32>
  %g2 = onnx.initializer "g2" file "m" offset 32 bytes 48 : tensor<3x4xf32>
  %0:3 = onnx.node "LayerNormalization"(%x, %g, %b) opset 17 {axis = -1 : i64, epsilon = 1.0e-5 : f32} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (!onnx.value, !onnx.value, !onnx.value)
  %1 = onnx.node "LayerNormalization"(%x, %g2) opset 17 {axis = 1 : i64} : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> !onnx.value
  %2 = onnx.node "RMSNormalization"(%x, %g) opset 23 {epsilon = 1.0e-6 : f32} : (tensor<2x3x4xf32>, tensor<4xf32>) -> !onnx.value
  return %0#0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// Before opset 13 a softmax is over all dims from its axis on.
// CHECK-LABEL: @softmax
// CHECK-NEXT: het.softmax %arg0 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[T:.*]] = het.transpose %arg0 by [0, 2, 1]
// CHECK-NEXT: %[[U:.*]] = het.softmax %[[T]]
// CHECK-NEXT: het.transpose %[[U]] by [0, 2, 1]
// CHECK-NEXT: %[[F:.*]] = het.reshape %arg0 to [2, 12]
// CHECK-NEXT: %[[G:.*]] = het.softmax %[[F]]
// CHECK-NEXT: het.reshape %[[G]] to [2, 3, 4]
func.func @softmax(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %0 = onnx.node "Softmax"(%x) opset 13 {} : (tensor<2x3x4xf32>) -> !onnx.value
  %1 = onnx.node "Softmax"(%x) opset 13 {axis = 1 : i64} : (tensor<2x3x4xf32>) -> !onnx.value
  %2 = onnx.node "Softmax"(%x) opset 12 {} : (tensor<2x3x4xf32>) -> !onnx.value
  return %0, %1, %2 : !onnx.value, !onnx.value, !onnx.value
}

// -----

// Dropout acts in training mode only, and is numbered in the file's order.
// CHECK-LABEL: @dropout
// CHECK-NEXT: %[[A:.*]] = het.dropout %arg0 {op_id = 0 : i64, p = 2.500000e-01 : f64}
// CHECK-NEXT: %[[B:.*]] = het.dropout %[[A]] {op_id = 1 : i64, p = 2.500000e-01 : f64}
// CHECK-NEXT: return %arg0, %[[B]]
func.func @dropout(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %p = onnx.initializer "p" value dense<0.25> : tensor<f32> : tensor<f32>
  %t = onnx.initializer "t" value dense<true> : tensor<i1> : tensor<i1>
  %0:2 = onnx.node "Dropout"(%x, %p) opset 13 {} : (tensor<2x3xf32>, tensor<f32>) -> (!onnx.value, !onnx.value)
  %1 = onnx.node "Dropout"(%x, %p, %t) opset 13 {} : (tensor<2x3xf32>, tensor<f32>, tensor<i1>) -> !onnx.value
  %2 = onnx.node "Dropout"(%1, %p, %t) opset 13 {} : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  return %0#0, %2 : !onnx.value, !onnx.value
}
