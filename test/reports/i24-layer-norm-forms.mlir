// A layer norm of nine nodes is the op that the one node of opset 17 is, in every
// form that its means have had; a mean over no dims at all is none.
// RUN: autohet-opt %s --split-input-file --onnx-to-het --het-fuse-norms | FileCheck %s

// CHECK-LABEL: @one_node
// CHECK: het.layer_norm %arg0, %{{.*}}, %{{.*}} {epsilon = {{.*}} : f64}
func.func @one_node(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "weight" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "bias" file "m" offset 16 bytes 16 : tensor<4xf32>
  %0 = onnx.node "LayerNormalization"(%x, %g, %b) opset 17 {} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// CHECK-LABEL: @opset11
// CHECK-NOT: het.reduce
// CHECK: het.layer_norm %arg0, %{{.*}}, %{{.*}} {epsilon = {{.*}} : f64}
func.func @opset11(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "weight" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "bias" file "m" offset 16 bytes 16 : tensor<4xf32>
  %two = onnx.initializer "two" value dense<2.0> : tensor<f32> : tensor<f32>
  %e = onnx.initializer "e" value dense<1.0e-5> : tensor<f32> : tensor<f32>
  %0 = onnx.node "ReduceMean"(%x) opset 11 {axes = array<i64: -1>, keepdims = 1 : i64} : (tensor<2x3x4xf32>) -> !onnx.value
  %1 = onnx.node "Sub"(%x, %0) opset 11 {} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  %2 = onnx.node "Pow"(%1, %two) opset 11 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %3 = onnx.node "ReduceMean"(%2) opset 11 {axes = array<i64: -1>, keepdims = 1 : i64} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "Add"(%3, %e) opset 11 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %5 = onnx.node "Sqrt"(%4) opset 11 {} : (!onnx.value) -> !onnx.value
  %6 = onnx.node "Div"(%1, %5) opset 11 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %7 = onnx.node "Mul"(%6, %g) opset 11 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  %8 = onnx.node "Add"(%7, %b) opset 11 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  return %8 : !onnx.value
}

// -----

// CHECK-LABEL: @opset17
// CHECK-NOT: het.reduce
// CHECK: het.layer_norm %arg0, %{{.*}}, %{{.*}} {epsilon = {{.*}} : f64}
func.func @opset17(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "weight" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "bias" file "m" offset 16 bytes 16 : tensor<4xf32>
  %two = onnx.initializer "two" value dense<2.0> : tensor<f32> : tensor<f32>
  %e = onnx.initializer "e" value dense<1.0e-5> : tensor<f32> : tensor<f32>
  %0 = onnx.node "ReduceMean"(%x) opset 17 {axes = array<i64: -1>, keepdims = 1 : i64} : (tensor<2x3x4xf32>) -> !onnx.value
  %1 = onnx.node "Sub"(%x, %0) opset 17 {} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  %2 = onnx.node "Pow"(%1, %two) opset 17 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %3 = onnx.node "ReduceMean"(%2) opset 17 {axes = array<i64: -1>, keepdims = 1 : i64} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "Add"(%3, %e) opset 17 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %5 = onnx.node "Sqrt"(%4) opset 17 {} : (!onnx.value) -> !onnx.value
  %6 = onnx.node "Div"(%1, %5) opset 17 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %7 = onnx.node "Mul"(%6, %g) opset 17 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  %8 = onnx.node "Add"(%7, %b) opset 17 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  return %8 : !onnx.value
}

// -----

// CHECK-LABEL: @opset18
// CHECK-NOT: het.reduce
// CHECK: het.layer_norm %arg0, %{{.*}}, %{{.*}} {epsilon = {{.*}} : f64}
func.func @opset18(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "weight" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "bias" file "m" offset 16 bytes 16 : tensor<4xf32>
  %two = onnx.initializer "two" value dense<2.0> : tensor<f32> : tensor<f32>
  %e = onnx.initializer "e" value dense<1.0e-5> : tensor<f32> : tensor<f32>
  %a = onnx.initializer "a" value dense<-1> : tensor<1xi64> : tensor<1xi64>
  %0 = onnx.node "ReduceMean"(%x, %a) opset 18 {keepdims = 1 : i64} : (tensor<2x3x4xf32>, tensor<1xi64>) -> !onnx.value
  %1 = onnx.node "Sub"(%x, %0) opset 18 {} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  %2 = onnx.node "Pow"(%1, %two) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %3 = onnx.node "ReduceMean"(%2, %a) opset 18 {keepdims = 1 : i64} : (!onnx.value, tensor<1xi64>) -> !onnx.value
  %4 = onnx.node "Add"(%3, %e) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %5 = onnx.node "Sqrt"(%4) opset 18 {} : (!onnx.value) -> !onnx.value
  %6 = onnx.node "Div"(%1, %5) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %7 = onnx.node "Mul"(%6, %g) opset 18 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  %8 = onnx.node "Add"(%7, %b) opset 18 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  return %8 : !onnx.value
}

// -----

// CHECK-LABEL: @over_nothing
// CHECK-NOT: het.layer_norm
// CHECK: return
func.func @over_nothing(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "weight" file "m" offset 0 bytes 16 : tensor<4xf32>
  %b = onnx.initializer "bias" file "m" offset 16 bytes 16 : tensor<4xf32>
  %two = onnx.initializer "two" value dense<2.0> : tensor<f32> : tensor<f32>
  %e = onnx.initializer "e" value dense<1.0e-5> : tensor<f32> : tensor<f32>
  %0 = onnx.node "ReduceMean"(%x) opset 18 {noop_with_empty_axes = 1 : i64} : (tensor<2x3x4xf32>) -> !onnx.value
  %1 = onnx.node "Sub"(%x, %0) opset 18 {} : (tensor<2x3x4xf32>, !onnx.value) -> !onnx.value
  %2 = onnx.node "Pow"(%1, %two) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %3 = onnx.node "ReduceMean"(%2) opset 18 {noop_with_empty_axes = 1 : i64} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "Add"(%3, %e) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %5 = onnx.node "Sqrt"(%4) opset 18 {} : (!onnx.value) -> !onnx.value
  %6 = onnx.node "Div"(%1, %5) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %7 = onnx.node "Mul"(%6, %g) opset 18 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  %8 = onnx.node "Add"(%7, %b) opset 18 {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  return %8 : !onnx.value
}
