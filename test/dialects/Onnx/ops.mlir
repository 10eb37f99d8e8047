// RUN: autohet-opt %s | autohet-opt | FileCheck %s

// CHECK-LABEL: func.func @model
// CHECK-SAME: {onnx.dims = ["batch", 12], onnx.name = "ids"}
func.func @model(%ids: tensor<?x12xi64> {onnx.dims = ["batch", 12], onnx.name = "ids"})
    -> (!onnx.value {onnx.name = "y"}) {
  // CHECK: onnx.initializer "wte.weight" file "m.onnx" offset 64 bytes 128 : tensor<4x8xf32>
  %w = onnx.initializer "wte.weight" file "m.onnx" offset 64 bytes 128 : tensor<4x8xf32>
  // CHECK: onnx.initializer "shape" value dense<[-1, 8]> : tensor<2xi64>
  %s = onnx.initializer "shape" value dense<[-1, 8]> : tensor<2xi64> : tensor<2xi64>
  // CHECK: onnx.none : none
  %n = onnx.none : none
  // CHECK: onnx.node "Gather"(%{{.*}}, %{{.*}}) opset 18 scope "wte" {axis = 0 : i64}
  %0 = onnx.node "Gather"(%w, %ids) opset 18 scope "wte" {axis = 0 : i64}
    : (tensor<4x8xf32>, tensor<?x12xi64>) -> !onnx.value
  // CHECK: onnx.node "FastGelu"(%{{.*}}, %{{.*}}) opset 1 domain "com.microsoft" {}
  %1 = onnx.node "FastGelu"(%0, %n) opset 1 domain "com.microsoft" {} : (!onnx.value, none) -> !onnx.value
  // CHECK: onnx.node "TopK"({{.*}}) opset 11 {} declared [tensor<?x2xf32>, unit]
  %2:2 = onnx.node "TopK"(%1, %s) opset 11 {} declared [tensor<?x2xf32>, unit]
    : (!onnx.value, tensor<2xi64>) -> (!onnx.value, !onnx.value)
  return %1 : !onnx.value
}
