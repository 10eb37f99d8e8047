// A parameter of one number, as ReZero's scales are, looks like any value of its
// module: it is not trained, and that is said.
// RUN: python3 -c "import struct; open('%t.bin', 'wb').write(struct.pack('<3f', 1, 2, 3))"
// RUN: sed s,FILE,%t.bin, %s > %t.mlir
// RUN: autohet-opt %t.mlir --onnx-to-het --split-input-file 2> %t.err > %t.out
// RUN: FileCheck %s --input-file=%t.err --implicit-check-not=warning
// RUN: autohet-opt %t.mlir --onnx-to-het=inference --split-input-file 2> %t.quiet > %t.out
// RUN: FileCheck %s --check-prefix=QUIET --input-file=%t.quiet --allow-empty
// QUIET-NOT: warning

// The module of a module's parameter counts, too; a name of another module does
// not, nor does a number that nobody reads.
// CHECK: warning: constant 'blocks.0.scale' is one number, and so taken as a value that is not trained. If it is a parameter, export the model with autohet.export, which lists them
// CHECK: warning: constant 'blocks.gain' is one number
func.func @scales(%x: tensor<3xf32> {onnx.name = "x"}) -> !onnx.value {
  %bias = onnx.initializer "blocks.0.norm.bias" file "FILE" offset 0 bytes 12 : tensor<3xf32>
  %scale = onnx.initializer "blocks.0.scale" value dense<2.0> : tensor<f32> : tensor<f32>
  %gain = onnx.initializer "blocks.gain" value dense<2.0> : tensor<1xf32> : tensor<1xf32>
  %other = onnx.initializer "other.scale" value dense<2.0> : tensor<f32> : tensor<f32>
  %plain = onnx.initializer "val_3" value dense<2.0> : tensor<f32> : tensor<f32>
  %unread = onnx.initializer "blocks.0.unread" value dense<2.0> : tensor<f32> : tensor<f32>
  %0 = onnx.node "Add"(%x, %bias) opset 18 {} : (tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "Mul"(%0, %scale) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %2 = onnx.node "Mul"(%1, %gain) opset 18 {} : (!onnx.value, tensor<1xf32>) -> !onnx.value
  %3 = onnx.node "Mul"(%2, %other) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  %4 = onnx.node "Mul"(%3, %plain) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  return %4 : !onnx.value
}

// -----

// What the file lists is trained, and all else is not.
func.func @listed(%x: tensor<3xf32> {onnx.name = "x"}) -> !onnx.value attributes {onnx.parameters = ["blocks.0.norm.bias"]} {
  %bias = onnx.initializer "blocks.0.norm.bias" file "FILE" offset 0 bytes 12 : tensor<3xf32>
  %scale = onnx.initializer "blocks.0.scale" value dense<2.0> : tensor<f32> : tensor<f32>
  %0 = onnx.node "Add"(%x, %bias) opset 18 {} : (tensor<3xf32>, tensor<3xf32>) -> !onnx.value
  %1 = onnx.node "Mul"(%0, %scale) opset 18 {} : (!onnx.value, tensor<f32>) -> !onnx.value
  return %1 : !onnx.value
}
