// RUN: autohet-opt %s --onnx-to-het=inference --split-input-file --verify-diagnostics | FileCheck %s

// Small types are stored, moved and cast.
// CHECK-LABEL: func.func @stored
// CHECK: het.transpose %{{.*}} by [1, 0] : (tensor<2x3xf8E4M3FN>) -> tensor<3x2xf8E4M3FN>
// CHECK: het.cast %{{.*}} {to = f32}
func.func @stored(%x: tensor<2x3xf8E4M3FN> {onnx.name = "x"}) -> !onnx.value {
  %0 = onnx.node "Transpose"(%x) opset 23 {} : (tensor<2x3xf8E4M3FN>) -> !onnx.value
  %1 = onnx.node "Cast"(%0) opset 23 {to = 1 : i64} : (!onnx.value) -> !onnx.value
  return %1 : !onnx.value
}

// -----

func.func @sum(%x: tensor<2x3xf8E4M3FN> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Add): operand 0 is 'tensor<2x3xf8E4M3FN>'; elements of this type are stored, moved and cast, not computed with: cast them to float32 or int32 first}}
  %0 = onnx.node "Add"(%x, %x) opset 23 {} : (tensor<2x3xf8E4M3FN>, tensor<2x3xf8E4M3FN>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @compare(%x: tensor<4xi4> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Greater): operand 0 is 'tensor<4xi4>'; elements of this type are stored}}
  %0 = onnx.node "Greater"(%x, %x) opset 23 {} : (tensor<4xi4>, tensor<4xi4>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @product(%x: tensor<2x2xf4E2M1FN> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (MatMul): operand 0 is 'tensor<2x2xf4E2M1FN>'; elements of this type are stored}}
  %0 = onnx.node "MatMul"(%x, %x) opset 23 {} : (tensor<2x2xf4E2M1FN>, tensor<2x2xf4E2M1FN>) -> !onnx.value
  return %0 : !onnx.value
}
