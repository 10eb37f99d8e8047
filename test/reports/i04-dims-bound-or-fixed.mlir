// A model whose dims are bound is the model that has these extents in its file:
// the same IR, so the same numbers.
// RUN: autohet-opt %s --onnx-to-het="batch=2 dims=seq=8" > %t.bound
// RUN: sed 's/?x?x/2x8x/g; s/onnx.dims = \["batch", "seq"\], //' %s | autohet-opt --onnx-to-het > %t.fixed
// RUN: diff %t.bound %t.fixed
// RUN: FileCheck %s < %t.bound

// CHECK: func.func @model(%arg0: tensor<2x8xi64>
// CHECK: het.constant dense<[2, 8, 2, 2]>
func.func @model(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value, !onnx.value) {
  %wte = onnx.initializer "wte" file "m" offset 0 bytes 160 : tensor<10x4xf32>
  %0 = onnx.node "Gather"(%wte, %ids) opset 12 {} : (tensor<10x4xf32>, tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "Shape"(%0) opset 12 {} : (!onnx.value) -> !onnx.value
  %from = onnx.initializer "from" value dense<0> : tensor<1xi64> : tensor<1xi64>
  %to = onnx.initializer "to" value dense<-1> : tensor<1xi64> : tensor<1xi64>
  %heads = onnx.initializer "heads" value dense<2> : tensor<2xi64> : tensor<2xi64>
  %2 = onnx.node "Slice"(%1, %from, %to, %from) opset 12 {} : (!onnx.value, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !onnx.value
  %3 = onnx.node "Concat"(%2, %heads) opset 12 {axis = 0 : i64} : (!onnx.value, tensor<2xi64>) -> !onnx.value
  %4 = onnx.node "Reshape"(%0, %3) opset 12 {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %4, %3 : !onnx.value, !onnx.value
}
