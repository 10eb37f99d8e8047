// One layer as onnxruntime's optimiser writes it: a norm under ONNX's own name
// years before ONNX had it, and a fused activation.
// RUN: autohet-opt %s --onnx-to-het | FileCheck %s

// CHECK: het.layer_norm %arg0, %{{.*}}, %{{.*}} {epsilon = 9.9999997473787516E-6 : f64}
// CHECK: %[[B:.*]] = het.add
// CHECK: het.gelu tanh %[[B]]
func.func @model(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "ln.weight" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "ln.bias" file "m" offset 16 bytes 16 : tensor<4xf32>
  %w = onnx.initializer "fc.weight" file "m" offset 32 bytes 64 : tensor<4x4xf32>
  %c = onnx.initializer "fc.bias" file "m" offset 96 bytes 16 : tensor<4xf32>
  %0 = onnx.node "LayerNormalization"(%x, %g, %b) opset 11 {axis = -1 : i64, epsilon = 1.0e-5 : f32} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%0, %w) opset 11 {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %2 = onnx.node "FastGelu"(%1, %c) opset 1 domain "com.microsoft" {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  return %2 : !onnx.value
}
