// An embedding table and a head: one constant with two uses, one of them behind a
// Transpose or not, is one parameter; two constants that are equal are two, and
// the user is told.
// RUN: printf '0123456789abcdef0123456789abcdef0123456789abcdef' > %t.bin
// RUN: sed "s|FILE|%t.bin|" %s | autohet-opt --split-input-file --onnx-to-het --het-classify-parameters 2> %t.log | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.log
// SAID: remark: constants 'wte' and 'lm_head' are equal but not linked, and are trained apart; if the model ties them, pass --tie wte=lm_head

// CHECK: weight_source "wte" in
// CHECK-NOT: weight_source
// CHECK-LABEL: @shared_name
func.func @shared_name(%ids: tensor<2x3xi64> {onnx.name = "ids"}, %e: tensor<2x2xf32> {onnx.name = "e"}) -> (!onnx.value, !onnx.value) {
  %w = onnx.initializer "wte" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %0 = onnx.node "Gather"(%w, %ids) opset 14 {} : (tensor<2x2xf32>, tensor<2x3xi64>) -> !onnx.value
  %1 = onnx.node "Gemm"(%e, %w) opset 14 {transB = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// CHECK: weight_source "wte" in
// CHECK-NOT: weight_source
// CHECK-LABEL: @transposed
func.func @transposed(%ids: tensor<2x3xi64> {onnx.name = "ids"}) -> !onnx.value {
  %w = onnx.initializer "wte" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %0 = onnx.node "Gather"(%w, %ids) opset 14 {} : (tensor<2x2xf32>, tensor<2x3xi64>) -> !onnx.value
  %1 = onnx.node "Transpose"(%w) opset 14 {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%0, %1) opset 14 {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// CHECK: weight_source "wte" in
// CHECK: weight_source "lm_head" in
// CHECK-LABEL: @equal
func.func @equal(%ids: tensor<2x3xi64> {onnx.name = "ids"}) -> !onnx.value {
  %w = onnx.initializer "wte" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %h = onnx.initializer "lm_head" file "FILE" offset 16 bytes 16 : tensor<2x2xf32>
  %0 = onnx.node "Gather"(%w, %ids) opset 14 {} : (tensor<2x2xf32>, tensor<2x3xi64>) -> !onnx.value
  %1 = onnx.node "MatMul"(%0, %h) opset 14 {} : (!onnx.value, tensor<2x2xf32>) -> !onnx.value
  return %1 : !onnx.value
}
