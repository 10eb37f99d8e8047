// RUN: autohet-opt %s --onnx-to-het | FileCheck %s

// CHECK-LABEL: @elementwise
func.func @elementwise(%x: tensor<2x3xf32> {onnx.name = "x"}, %b: tensor<3xi1> {onnx.name = "b"}, %i: tensor<3xi64> {onnx.name = "i"}) -> (!onnx.value, !onnx.value, !onnx.value) {
  %one = onnx.initializer "one" value dense<1.0> : tensor<f32> : tensor<f32>
  %two = onnx.initializer "two" value dense<2> : tensor<i64> : tensor<i64>
  %none = onnx.none : none
  // CHECK: %[[G:.*]] = het.gelu tanh %arg0
  %g = onnx.node "Gelu"(%x) opset 20 {approximate = "tanh"} : (tensor<2x3xf32>) -> !onnx.value
  // The exponent has another type than the base.
  // CHECK: %[[TWO:.*]] = het.constant dense<2.000000e+00> : tensor<f32>
  // CHECK: %[[P:.*]] = het.pow %[[G]], %[[TWO]]
  %p = onnx.node "Pow"(%g, %two) opset 18 {} : (!onnx.value, tensor<i64>) -> !onnx.value
  // A factor of 1 and a cast to the same type vanish.
  %m = onnx.node "Mul"(%p, %one) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %c = onnx.node "Cast"(%m) opset 18 {to = 1 : i64} : (!onnx.value) -> !onnx.value
  // Only an upper bound.
  // CHECK: %[[C:.*]] = het.min %[[P]], %{{.*}}
  %cl = onnx.node "Clip"(%c, %none, %one) opset 13 {} : (!onnx.value, none, tensor<f32>) -> !onnx.value
  // CHECK: %[[W:.*]] = het.select %arg1, %[[C]], %{{.*}} : (tensor<3xi1>, tensor<2x3xf32>, tensor<f32>)
  %w = onnx.node "Where"(%b, %cl, %one) opset 18 {} : (tensor<3xi1>, !onnx.value, tensor<f32>) -> !onnx.value
  // CHECK: %[[L:.*]] = het.compare le %arg2, %{{.*}}
  %l = onnx.node "LessOrEqual"(%i, %two) opset 18 {} : (tensor<3xi64>, tensor<i64>) -> !onnx.value
  // CHECK: %[[A:.*]] = het.and %[[L]], %arg1
  %a = onnx.node "And"(%l, %b) opset 18 {} : (!onnx.value, tensor<3xi1>) -> !onnx.value
  // CHECK: %[[N:.*]] = het.not %[[A]]
  %n = onnx.node "Not"(%a) opset 18 {} : (!onnx.value) -> !onnx.value
  // CHECK: %[[X:.*]] = het.max %{{.*}}, %[[W]]
  %x3 = onnx.node "Max"(%x, %g, %w) opset 18 {} : (tensor<2x3xf32>, !onnx.value, !onnx.value) -> !onnx.value
  // CHECK: return %[[W]], %[[N]], %[[X]]
  return %w, %n, %x3 : !onnx.value, !onnx.value, !onnx.value
}
