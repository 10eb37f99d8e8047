// Integers are constants, whatever asks for all initializers to be trained; a
// weight that the loss does not depend on is named, and has no gradient.
// RUN: autohet-opt %s --onnx-to-het --het-classify-parameters --het-attach-loss="output=logits" \
// RUN:   --het-differentiate 2>&1 | FileCheck %s

// CHECK: remark: parameter 'pooler.weight' is not trained: no differentiable path leads from it to the loss
// CHECK-NOT: het.parameter "position_ids"
// CHECK-NOT: het.gradient "p
// CHECK: het.gradient "wpe"
// CHECK-NOT: het.gradient "p
// CHECK: het.gradient "wte"
// CHECK-NOT: het.gradient "p
func.func @model(%ids: tensor<2x3xi64> {onnx.name = "input_ids"}) -> (!onnx.value {onnx.name = "logits"}, !onnx.value {onnx.name = "pooled"}) {
  %wte = onnx.initializer "wte" file "m" offset 0 bytes 160 : tensor<10x4xf32>
  %pooler = onnx.initializer "pooler.weight" file "m" offset 160 bytes 64 : tensor<4x4xf32>
  %table = onnx.initializer "position_ids" value dense<[0, 1, 2]> : tensor<3xi64> : tensor<3xi64>
  %wpe = onnx.initializer "wpe" file "m" offset 248 bytes 80 : tensor<5x4xf32>
  %0 = onnx.node "Gather"(%wte, %ids) opset 14 {} : (tensor<10x4xf32>, tensor<2x3xi64>) -> !onnx.value
  %1 = onnx.node "Gather"(%wpe, %table) opset 14 {} : (tensor<5x4xf32>, tensor<3xi64>) -> !onnx.value
  %2 = onnx.node "Add"(%0, %1) opset 14 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %3 = onnx.node "MatMul"(%2, %pooler) opset 14 {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  return %2, %3 : !onnx.value, !onnx.value
}
