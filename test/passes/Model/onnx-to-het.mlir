// The whole of a small model: dims, parameters, names, sources.
// RUN: autohet-opt %s --onnx-to-het="batch=2 dims=seq=5" --split-input-file | FileCheck %s

// CHECK: het.weight_source "wte.weight" in "m.onnx" at 64 : tensor<4x8xf32>
// CHECK: het.weight_source "head.weight" in "m.onnx" at 192 transposed : tensor<8x6xf32>
// CHECK-NOT: het.weight_source
// CHECK-LABEL: func.func @model
// CHECK-SAME: (%[[IDS:.*]]: tensor<2x5xi64> {het.batch_dim = 0 : i64, het.name = "ids", het.role = "input"})
// CHECK-SAME: -> (tensor<2x5x6xf32> {het.name = "y"}) attributes {het.batch_size = 2 : i64}
func.func @model(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
  %e = onnx.initializer "wte.weight" file "m.onnx" offset 64 bytes 128 : tensor<4x8xf32>
  %w = onnx.initializer "val_3" file "m.onnx" offset 192 bytes 192 : tensor<8x6xf32>
  %unused = onnx.initializer "val_4" file "m.onnx" offset 192 bytes 192 : tensor<8x6xf32>
  // CHECK: %[[E:.*]] = het.parameter "wte.weight" : tensor<4x8xf32>
  // CHECK: %[[X:.*]] = het.embedding %[[E]], %[[IDS]]
  %0 = onnx.node "Gather"(%e, %ids) opset 18 {} : (tensor<4x8xf32>, tensor<?x?xi64>) -> !onnx.value
  // CHECK: %[[W:.*]] = het.parameter "head.weight" : tensor<6x8xf32>
  // CHECK: %[[Y:.*]] = het.matmul %[[X]], %[[W]] contract [2] [1]
  %1 = onnx.node "MatMul"(%0, %w) opset 18 scope "head" {} : (!onnx.value, tensor<8x6xf32>) -> !onnx.value
  // CHECK: return %[[Y]]
  return %1 : !onnx.value
}

// -----

// Names: the exporter's own counters give way to the module's path, where it is
// known and free; a square matrix is transposed too; Gemm with transB is not.
// CHECK-DAG: het.weight_source "a.weight" in "m" at 0 transposed
// CHECK-DAG: het.weight_source "b.weight" in "m" at 64 : tensor<4x4xf32>
// CHECK-DAG: het.weight_source "c_fc.weight" in "m" at 128 : tensor<4x4xf32>
// CHECK-DAG: het.weight_source "val_7" in "m" at 192 : tensor<4x4xf32>
// CHECK-DAG: het.weight_source "taken.weight" in "m" at 256 : tensor<4x4xf32>
// CHECK-DAG: het.weight_source "onnx::MatMul_8" in "m" at 320 : tensor<4x4xf32>
// A bias says more than its module: nn.MultiheadAttention's weight is not "weight".
// CHECK-DAG: het.weight_source "attn.in_proj_weight" in "m" at 384 transposed
func.func @names(%x: tensor<4x4xf32> {onnx.name = "x"},
                 %ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
  %a = onnx.initializer "onnx::MatMul_5" file "m" offset 0 bytes 64 : tensor<4x4xf32>
  %b = onnx.initializer "val_6" file "m" offset 64 bytes 64 : tensor<4x4xf32>
  %c = onnx.initializer "c_fc.weight" file "m" offset 128 bytes 64 : tensor<4x4xf32>
  %d = onnx.initializer "val_7" file "m" offset 192 bytes 64 : tensor<4x4xf32>
  %e = onnx.initializer "taken.weight" file "m" offset 256 bytes 64 : tensor<4x4xf32>
  %f = onnx.initializer "onnx::MatMul_8" file "m" offset 320 bytes 64 : tensor<4x4xf32>
  %0 = onnx.node "MatMul"(%x, %a) opset 17 scope "a" {} : (tensor<4x4xf32>, tensor<4x4xf32>) -> !onnx.value
  %1 = onnx.node "Gemm"(%0, %b) opset 17 scope "b" {transB = 1 : i64} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %2 = onnx.node "Gemm"(%1, %c) opset 17 scope "c_fc" {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %3 = onnx.node "MatMul"(%2, %d) opset 17 scope "taken" {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %4 = onnx.node "Add"(%3, %e) opset 17 scope "taken" {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %5 = onnx.node "MatMul"(%4, %f) opset 17 {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %g = onnx.initializer "val_9" file "m" offset 384 bytes 64 : tensor<4x4xf32>
  %h = onnx.initializer "attn.in_proj_bias" file "m" offset 448 bytes 16 : tensor<4xf32>
  %6 = onnx.node "MatMul"(%5, %g) opset 17 scope "attn" {} : (!onnx.value, tensor<4x4xf32>) -> !onnx.value
  %7 = onnx.node "Add"(%6, %h) opset 17 scope "attn" {} : (!onnx.value, tensor<4xf32>) -> !onnx.value
  return %7 : !onnx.value
}
