// The file says that its sequence is symbolic and reshapes to the extents of the
// export's example: these compile, others are refused by name.
// RUN: autohet-opt %s --onnx-to-het="batch=1 dims=seq=24" | FileCheck %s
// RUN: not autohet-opt %s --onnx-to-het="batch=1 dims=seq=48" 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: het.add
// OTHER: error: node (Reshape): a tensor of shape [1, 48, 8, 8] has 3072 elements and cannot be given shape [1, 24, 64], which takes 1536
func.func @model(%x: tensor<?x?x8x8xf32> {onnx.dims = ["batch", "seq", unit, unit], onnx.name = "x"}) -> !onnx.value {
  %shape = onnx.initializer "shape" value dense<[1, 24, 64]> : tensor<3xi64> : tensor<3xi64>
  %0 = onnx.node "Reshape"(%x, %shape) opset 18 {} : (tensor<?x?x8x8xf32>, tensor<3xi64>) -> !onnx.value
  %1 = onnx.node "Add"(%0, %0) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %1 : !onnx.value
}
