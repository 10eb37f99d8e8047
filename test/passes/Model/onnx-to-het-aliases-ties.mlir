// RUN: printf 'aaaabbbbccccddddaaaaccccbbbbdddd' > %t.bin
// RUN: sed 's|FILE|%t.bin|' %s > %t.mlir
// RUN: autohet-opt %t.mlir --onnx-to-het="batch=2 dims=seq=3 ties=wte.weight=onnx::MatMul_5" | FileCheck %s --check-prefix=TIED
// RUN: autohet-opt %t.mlir --onnx-to-het="batch=2 dims=seq=3" | FileCheck %s

// A copy that a tie names brings the name of its module. Without the tie it has
// that name to itself.
// TIED: weight_source "wte.weight" in {{.*}} at 0 shared aliases ["head.weight"]
// CHECK: weight_source "wte.weight" in {{.*}} at 0 : tensor<2x2xf32>
// CHECK: weight_source "head.weight" in {{.*}} at 16 transposed :
// CHECK-LABEL: @copy
func.func @copy(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
  %e = onnx.initializer "wte.weight" file "FILE" offset 0 bytes 16 : tensor<2x2xf32>
  %w = onnx.initializer "onnx::MatMul_5" file "FILE" offset 16 bytes 16 : tensor<2x2xf32>
  %0 = onnx.node "Gather"(%e, %ids) opset 18 scope "wte" {axis = 0 : i64} : (tensor<2x2xf32>, tensor<?x?xi64>) -> !onnx.value
  %1 = onnx.node "MatMul"(%0, %w) opset 18 scope "head" {} : (!onnx.value, tensor<2x2xf32>) -> !onnx.value
  return %1 : !onnx.value
}
