// RUN: autohet-opt %s --verify-diagnostics --split-input-file | autohet-opt --split-input-file | FileCheck %s

// CHECK: het.weight_source "wte.weight" in "m.onnx" at 64 shared : tensor<4x8xf32>
het.weight_source "wte.weight" in "m.onnx" at 64 shared : tensor<4x8xf32>
// CHECK: het.weight_source "head.weight" in "m.onnx" at 192 transposed : tensor<8x6xf32>
het.weight_source "head.weight" in "m.onnx" at 192 transposed : tensor<8x6xf32>
// CHECK: het.weight_source "tied" in "m.onnx" at 0 because "weight" aliases ["a.weight", "b.weight"] : tensor<4xf32>
het.weight_source "tied" in "m.onnx" at 0 because "weight" aliases ["a.weight", "b.weight"] : tensor<4xf32>
// CHECK: het.weight_source "mask" in "m.onnx" at 0 untrained because "added to attention scores" : tensor<4x4xf32>
het.weight_source "mask" in "m.onnx" at 0 untrained because "added to attention scores" : tensor<4x4xf32>

// -----

// expected-error @+1 {{is transposed, but 'tensor<8xf32>' is no matrix}}
het.weight_source "w" in "m.onnx" at 0 transposed : tensor<8xf32>

// -----

// expected-error @+1 {{begins at byte -1}}
het.weight_source "w" in "m.onnx" at -1 : tensor<8xf32>

// -----

func.func @inside() {
  // expected-error @+1 {{expects parent op 'builtin.module'}}
  het.weight_source "w" in "m.onnx" at 0 : tensor<8xf32>
  return
}

// -----

// expected-error @+1 {{has the name 'w' twice}}
het.weight_source "w" in "m.onnx" at 0 aliases ["v", "w"] : tensor<8xf32>
