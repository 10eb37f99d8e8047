// A small float constant that meets a shape is a number, not a weight; tables
// that are looked up by positions made from shapes stay weights.
// RUN: python3 -c "import struct; open('%t.bin', 'wb').write(struct.pack('<2f', 8, 2.5))"
// RUN: sed s,FILE,%t.bin, %s | autohet-opt --onnx-to-het | FileCheck %s

// CHECK: het.weight_source "wpe"
// CHECK-NOT: het.weight_source "limits"
// CHECK: het.constant dense<[4, 2]> : tensor<2xi64>
// CHECK: het.parameter "wpe"
func.func @model(%x: tensor<4x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %limits = onnx.initializer "limits" file "FILE" offset 0 bytes 8 : tensor<2xf32>
  %wpe = onnx.initializer "wpe" file "FILE" offset 0 bytes 96 : tensor<8x3xf32>
  %0 = onnx.node "Shape"(%x) opset 12 {} : (tensor<4x3xf32>) -> !onnx.value
  %1 = onnx.node "Cast"(%0) opset 12 {to = 1 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "Min"(%1, %limits) opset 12 {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  %3 = onnx.node "Cast"(%2) opset 12 {to = 7 : i64} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "Gather"(%wpe, %0) opset 12 {} : (tensor<8x3xf32>, !onnx.value) -> !onnx.value
  return %3, %4 : !onnx.value, !onnx.value
}
