// A mask that is a number as large as the ids, as exports of BERT make it where
// none is given: a constant once the dims are bound.
// RUN: autohet-opt %s --onnx-to-het="batch=2 dims=seq=3" | FileCheck %s

// CHECK: %[[ONES:.*]] = het.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK: return %[[ONES]]
func.func @model(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> !onnx.value {
  %one = onnx.initializer "one" value dense<1.0> : tensor<f32> : tensor<f32>
  %0 = onnx.node "Shape"(%ids) opset 14 {} : (tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "Expand"(%one, %0) opset 14 {} : (tensor<f32>, !onnx.value) -> !onnx.value
  return %1 : !onnx.value
}
