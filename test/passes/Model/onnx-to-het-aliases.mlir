// RUN: printf '0123456789012345678901234567890123456789' > %t.bin
// RUN: sed 's|FILE|%t.bin|' %s > %t.mlir
// RUN: autohet-opt %t.mlir --split-input-file --onnx-to-het="batch=2 dims=seq=3" | FileCheck %s

// The other names of tied parameters, from the modules that use them.

// One constant, named after either of its modules; the bias of a tied head.
// CHECK: weight_source "b.embed.weight" in {{.*}} at 0 aliases ["cls.decoder.weight"]
// CHECK: weight_source "cls.bias" in {{.*}} at 16 aliases ["cls.decoder.bias"]
// CHECK-LABEL: @named_after_the_table
func.func @named_after_the_table(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
  %e = onnx.initializer "b.embed.weight" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %c = onnx.initializer "cls.bias" file "FILE" offset 16 bytes 8 : tensor<2xf32>
  %0 = onnx.node "Gather"(%e, %ids) opset 18 scope "b.embed" {axis = 0 : i64} : (tensor<2x2xf32>, tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "Transpose"(%e) opset 18 scope "cls.decoder" {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%0, %1) opset 18 scope "cls.decoder" {} : (!onnx.value, !onnx.value) -> !onnx.value
  %3 = onnx.node "Add"(%2, %c) opset 18 scope "cls.decoder" {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  return %3 : !onnx.value
}

// -----

// CHECK: weight_source "head.weight" in {{.*}} at 0 aliases ["wte.weight"]
// CHECK-LABEL: @named_after_the_head
func.func @named_after_the_head(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
  %e = onnx.initializer "head.weight" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %0 = onnx.node "Gather"(%e, %ids) opset 18 scope "wte" {axis = 0 : i64} : (tensor<2x2xf32>, tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "Transpose"(%e) opset 18 scope "head" {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%0, %1) opset 18 scope "head" {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// Used by the model itself, by a module that holds others, and in a product with
// an attribute that is no `weight`: none of them gives a name.
// CHECK: weight_source "wte.weight" in {{.*}} at 0 : tensor<2x2xf32>
// CHECK: weight_source "block.in_proj_weight" in {{.*}} at 16 : tensor<2x2xf32>
// CHECK: weight_source "block.in_proj_bias" in {{.*}} at 32 : tensor<2xf32>
// CHECK-LABEL: @no_names
func.func @no_names(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
  %e = onnx.initializer "wte.weight" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %w = onnx.initializer "block.in_proj_weight" file "FILE" offset 16 bytes 16 : tensor<2x2xf32>
  %b = onnx.initializer "block.in_proj_bias" file "FILE" offset 32 bytes 8 : tensor<2xf32>
  %0 = onnx.node "Gather"(%e, %ids) opset 18 scope "wte" {axis = 0 : i64} : (tensor<2x2xf32>, tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "MatMul"(%0, %w) opset 18 scope "block" {} : (!onnx.value, tensor<2x2xf32>) -> !onnx.value
  %2 = onnx.node "Add"(%1, %b) opset 18 scope "block" {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  %3 = onnx.node "Relu"(%2) opset 18 scope "outer.inner" {} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "Transpose"(%e) opset 18 {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> !onnx.value
  %5 = onnx.node "MatMul"(%3, %4) opset 18 {} : (!onnx.value, !onnx.value) -> !onnx.value
  %6 = onnx.node "MatMul"(%5, %e) opset 18 scope "outer" {} : (!onnx.value, tensor<2x2xf32>) -> !onnx.value
  return %6 : !onnx.value
}

// -----

// The exporter has listed all names; what the file does not have is not missed.
// CHECK: weight_source "embed.weight" in {{.*}} at 0 shared aliases ["decoder.embed.weight", "shared.weight"]
// CHECK-LABEL: @listed
func.func @listed(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"})
    attributes {onnx.aliases = {decoder.embed.weight = "embed.weight", shared.weight = "embed.weight", tail.bias = "head.bias"}} {
  %e = onnx.initializer "embed.weight" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %0 = onnx.node "Gather"(%e, %ids) opset 18 scope "embed" {axis = 0 : i64} : (tensor<2x2xf32>, tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "Transpose"(%e) opset 18 scope "head" {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> !onnx.value
  %2 = onnx.node "MatMul"(%0, %1) opset 18 scope "head" {} : (!onnx.value, !onnx.value) -> !onnx.value
  return %2 : !onnx.value
}

// -----

// The exporter has listed all parameters: a table that is none is not trained,
// although it looks like learned positions.
// CHECK: module attributes {het.parameters_listed}
// CHECK-LABEL: @own_parameters
// CHECK: het.parameter "positions" untrained
// CHECK: het.parameter "bias" : tensor<2xf32>
func.func @own_parameters(%x: tensor<?x?x2xf32> {onnx.dims = ["batch", "seq", unit], onnx.name = "x"}) -> (!onnx.value {onnx.name = "y"})
    attributes {onnx.aliases = {}, onnx.parameters = ["bias"]} {
  %p = onnx.initializer "positions" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %b = onnx.initializer "bias" file "FILE" offset 24 bytes 8 : tensor<2xf32>
  %0 = onnx.node "Add"(%x, %p) opset 18 {} : (tensor<?x?x2xf32>, tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "Add"(%0, %b) opset 18 {} : (!onnx.value, tensor<2xf32>) -> !onnx.value
  return %1 : !onnx.value
}
