// Negative indices count from the end since opset 11; before, they are outside,
// as those beyond the depth are, and give what is off.
// RUN: autohet-opt %s --onnx-to-het=inference --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @outside
// CHECK: dense<{{\[}}[0.000000e+00, 0.000000e+00, 0.000000e+00], [0.000000e+00, 1.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 0.000000e+00]]>
func.func @outside() -> !onnx.value {
  %i = onnx.initializer "i" value dense<[-1, 1, 3]> : tensor<3xi64> : tensor<3xi64>
  %d = onnx.initializer "d" value dense<3> : tensor<i64> : tensor<i64>
  %v = onnx.initializer "v" value dense<[0.0, 1.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = onnx.node "OneHot"(%i, %d, %v) opset 10 {} : (tensor<3xi64>, tensor<i64>, tensor<2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK-LABEL: func.func @from_the_end
// CHECK: dense<{{\[}}[0.000000e+00, 0.000000e+00, 1.000000e+00], [0.000000e+00, 1.000000e+00, 0.000000e+00], [0.000000e+00, 0.000000e+00, 0.000000e+00]]>
func.func @from_the_end() -> !onnx.value {
  %i = onnx.initializer "i" value dense<[-1, 1, 3]> : tensor<3xi64> : tensor<3xi64>
  %d = onnx.initializer "d" value dense<3> : tensor<i64> : tensor<i64>
  %v = onnx.initializer "v" value dense<[0.0, 1.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = onnx.node "OneHot"(%i, %d, %v) opset 11 {} : (tensor<3xi64>, tensor<i64>, tensor<2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// A diagonal that lies outside, however far.
// CHECK-LABEL: func.func @far_diagonal
// CHECK: %[[ZEROS:.*]] = het.constant dense<0.000000e+00> : tensor<2x2xf32>
// CHECK: return %[[ZEROS]], %[[ZEROS]]
func.func @far_diagonal() -> (!onnx.value, !onnx.value) {
  %x = onnx.initializer "x" value dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %0 = onnx.node "EyeLike"(%x) opset 9 {k = 9223372036854775807 : i64} : (tensor<2x2xf32>) -> !onnx.value
  %1 = onnx.node "EyeLike"(%x) opset 9 {k = -9223372036854775808 : i64} : (tensor<2x2xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// A label that its type cannot hold is none that is ignored.
// CHECK-LABEL: func.func @no_such_label
// CHECK: het.constant dense<2147483647> : tensor<i32>
func.func @no_such_label(%x: tensor<2x3xf32> {onnx.name = "x"}, %y: tensor<2xi32> {onnx.name = "y"}) -> !onnx.value {
  %0 = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y) opset 13 {ignore_index = 4294967296 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> !onnx.value
  return %0 : !onnx.value
}
