// RUN: printf '0123456701234567abcdefghABEFCDGH00000000' > %t.bin
// RUN: sed 's|FILE|%t.bin|' %s > %t.mlir
// RUN: autohet-opt %t.mlir --split-input-file --onnx-to-het="batch=2" | FileCheck %s

// Modules that are called again: f32 of 4 bytes each; weights of 2x1.

// A folded weight a call, under one path (torch.export) or numbered (TorchScript);
// a bias that an Identity hands on. Each is one parameter.
// CHECK: weight_source "ffn.weight" in {{.*}} at 0 transposed shared : tensor<1x2xf32>
// CHECK: weight_source "ffn.bias" in {{.*}} at 16 shared : tensor<2xf32>
// CHECK-NOT: weight_source
// CHECK-LABEL: @called_again
// CHECK-COUNT-2: het.parameter "ffn.bias"
func.func @called_again(%x: tensor<?x1xf32> {onnx.dims = ["batch", unit], onnx.name = "x"}) -> (!onnx.value {onnx.name = "y"}) {
  %v = onnx.initializer "val_1" file "FILE" offset 0 bytes 8 : tensor<1x2xf32>
  %w = onnx.initializer "val_2" file "FILE" offset 8 bytes 8 : tensor<1x2xf32>
  %b = onnx.initializer "ffn.bias" file "FILE" offset 16 bytes 8 : tensor<2xf32>
  %i = onnx.node "Identity"(%b) opset 18 {} : (tensor<2xf32>) -> !onnx.value
  %0 = onnx.node "MatMul"(%x, %v) opset 18 scope "ffn" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %1 = onnx.node "Add"(%b, %0) opset 18 scope "ffn" {} : (tensor<2xf32>, !onnx.value) -> !onnx.value
  %2 = onnx.node "MatMul"(%x, %w) opset 18 scope "ffn_1" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %3 = onnx.node "Add"(%i, %2) opset 18 scope "ffn_1" {} : (!onnx.value, !onnx.value) -> !onnx.value
  %4 = onnx.node "Add"(%1, %3) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %4 : !onnx.value
}

// -----

// Other bytes, or one number throughout, as before training: two parameters.
// And one constant in two modules is what exporters merge.
// CHECK-DAG: weight_source "ffn.weight" in {{.*}} at 0 transposed :
// CHECK-DAG: weight_source "ffn_1.weight" in {{.*}} at 24 transposed :
// CHECK-DAG: weight_source "out.weight" in {{.*}} at 32 transposed :
// CHECK-DAG: weight_source "out_1.weight" in {{.*}} at 32 transposed :
// CHECK-DAG: weight_source "ffn.bias" in {{.*}} at 16 : tensor<2xf32>
// CHECK-LABEL: @called_once
func.func @called_once(%x: tensor<?x1xf32> {onnx.dims = ["batch", unit], onnx.name = "x"}) -> (!onnx.value {onnx.name = "y"}) {
  %v = onnx.initializer "val_1" file "FILE" offset 0 bytes 8 : tensor<1x2xf32>
  %w = onnx.initializer "val_2" file "FILE" offset 24 bytes 8 : tensor<1x2xf32>
  %p = onnx.initializer "val_3" file "FILE" offset 32 bytes 8 : tensor<1x2xf32>
  %q = onnx.initializer "val_4" file "FILE" offset 32 bytes 8 : tensor<1x2xf32>
  %b = onnx.initializer "ffn.bias" file "FILE" offset 16 bytes 8 : tensor<2xf32>
  %0 = onnx.node "MatMul"(%x, %v) opset 18 scope "ffn" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %1 = onnx.node "Add"(%0, %b) opset 18 scope "ffn" {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%x, %w) opset 18 scope "ffn_1" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %3 = onnx.node "Add"(%2, %b) opset 18 scope "other" {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  %4 = onnx.node "Add"(%1, %3) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %5 = onnx.node "MatMul"(%x, %p) opset 18 scope "out" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %6 = onnx.node "MatMul"(%x, %q) opset 18 scope "out_1" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %7 = onnx.node "Add"(%5, %6) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %8 = onnx.node "Add"(%4, %7) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %8 : !onnx.value
}

// -----

// Files of autohet.export, which list tied names if there are none, hold each
// parameter once: all uses are meant.
// CHECK-DAG: weight_source "distances.weight" in {{.*}} at 0 shared : tensor<1x2xf32>
// CHECK-DAG: weight_source "bias" in {{.*}} at 16 : tensor<2xf32>
// CHECK-LABEL: @of_our_own
func.func @of_our_own(%x: tensor<?x1xf32> {onnx.dims = ["batch", unit], onnx.name = "x"}) -> (!onnx.value {onnx.name = "y"})
    attributes {onnx.aliases = {}} {
  %v = onnx.initializer "distances.weight" file "FILE" offset 0 bytes 8 : tensor<1x2xf32>
  %b = onnx.initializer "bias" file "FILE" offset 16 bytes 8 : tensor<2xf32>
  %0 = onnx.node "MatMul"(%x, %v) opset 18 scope "first" {} : (tensor<?x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %1 = onnx.node "Mul"(%0, %v) opset 18 scope "second" {} : (!onnx.value, tensor<1x2xf32>) -> !onnx.value
  %2 = onnx.node "Add"(%1, %b) opset 18 {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  return %2 : !onnx.value
}
