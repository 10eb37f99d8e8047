// RUN: autohet-opt %s --onnx-to-het --split-input-file | FileCheck %s

// Grouped heads get their map; the default scale is 1 / sqrt(head size).
// CHECK-LABEL: @attention
// CHECK: het.attention %arg0, %arg1, %arg1, %arg2 {kv_heads = array<i64: 0, 0, 1, 1>, scale = 5.000000e-01 : f64, zero_empty_rows}
// CHECK: het.attention %arg0, %arg1, %arg1 {causal, kv_heads = array<i64: 0, 0, 1, 1>, scale = 2.500000e-01 : f64}
func.func @attention(%q: tensor<1x4x3x4xf32> {onnx.name = "q"}, %k: tensor<1x2x3x4xf32> {onnx.name = "k"}, %m: tensor<1x1x3x3xi1> {onnx.name = "m"}) -> (!onnx.value, !onnx.value) {
  %0 = onnx.node "Attention"(%q, %k, %k, %m) opset 23 {} : (tensor<1x4x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x1x3x3xi1>) -> !onnx.value
  %1 = onnx.node "Attention"(%q, %k, %k) opset 23 {is_causal = 1 : i64, scale = 0.25 : f32} : (tensor<1x4x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// [B, S, H * D] is split into heads and joined again.
// CHECK-LABEL: @three_dims
// CHECK: %[[R:.*]] = het.reshape %arg0 to [2, 3, 2, 4]
// CHECK: %[[Q:.*]] = het.transpose %[[R]] by [0, 2, 1, 3]
// CHECK: het.attention %[[Q]]
// CHECK: %[[T:.*]] = het.transpose %{{.*}} by [0, 2, 1, 3]
// CHECK: het.reshape %[[T]] to [2, 3, 8]
func.func @three_dims(%x: tensor<2x3x8xf32> {onnx.name = "x"}) -> !onnx.value {
  %0 = onnx.node "Attention"(%x, %x, %x) opset 23 {q_num_heads = 2 : i64, kv_num_heads = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Both layouts, partial rotation, tables looked up or given.
// CHECK-LABEL: @rotary
// CHECK: %[[C:.*]] = het.reshape %arg1 to [2, 1, 3, 2]
// CHECK: het.rotary %arg0, %[[C]], %{{.*}} : (tensor<2x2x3x6xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>)
// CHECK: %[[L:.*]] = het.embedding %arg2, %arg3
// CHECK: %[[T:.*]] = het.reshape %[[L]] to [2, 1, 3, 3]
// CHECK: het.rotary %arg0, %[[T]], %{{.*}} {interleaved}
func.func @rotary(%x: tensor<2x2x3x6xf32> {onnx.name = "x"}, %c: tensor<2x3x2xf32> {onnx.name = "c"}, %t: tensor<9x3xf32> {onnx.name = "t"}, %p: tensor<2x3xi64> {onnx.name = "p"}) -> (!onnx.value, !onnx.value) {
  %0 = onnx.node "RotaryEmbedding"(%x, %c, %c) opset 23 {rotary_embedding_dim = 4 : i64} : (tensor<2x2x3x6xf32>, tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> !onnx.value
  %1 = onnx.node "RotaryEmbedding"(%x, %t, %t, %p) opset 23 {interleaved = 1 : i64} : (tensor<2x2x3x6xf32>, tensor<9x3xf32>, tensor<9x3xf32>, tensor<2x3xi64>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}
