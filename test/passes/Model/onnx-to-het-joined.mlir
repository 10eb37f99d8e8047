// A parameter that the model joins with another, as MobileBERT's head does with
// the table of its words, is in the file twice: alone, and as a part of what the
// exporter computed. Nothing else tells that this is not the model.
// RUN: python3 -c "import struct; open('%t.bin', 'wb').write(struct.pack('<36f', 1, 2, 3, 4, 5, 6, 1, 3, 5, 2, 4, 6, 7, 8, 9, 9, 8, 7, 1, 3, 5, 2, 4, 6, 1, 2, 9, 3, 4, 8, 5, 6, 7, 0, 0, 0))"
// RUN: sed s,FILE,%t.bin, %s > %t.mlir
// RUN: autohet-opt %t.mlir --onnx-to-het --split-input-file 2> %t.err > %t.out
// RUN: FileCheck %s --input-file=%t.err --implicit-check-not=warning
// RUN: autohet-opt %t.mlir --onnx-to-het=inference --split-input-file 2> %t.quiet > %t.out
// RUN: FileCheck %s --check-prefix=QUIET --input-file=%t.quiet --allow-empty
// QUIET-NOT: warning

// CHECK: warning: constant 'onnx::MatMul_9' holds 'words.weight' next to other elements: the exporter joined them, and the two are trained apart. If the model reads one parameter in both places, this is not its training: export it with autohet.export
func.func @first_rows_transposed(%ids: tensor<4xi64> {onnx.name = "ids"}, %x: tensor<4x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %table = onnx.initializer "words.weight" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %head = onnx.initializer "onnx::MatMul_9" file "FILE" offset 24 bytes 36 : tensor<3x3xf32>
  %0 = onnx.node "Gather"(%table, %ids) opset 18 {axis = 0 : i64} : (tensor<3x2xf32>, tensor<4xi64>) -> !onnx.value
  %1 = onnx.node "MatMul"(%x, %head) opset 18 {} : (tensor<4x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// CHECK: warning: constant 'cat_1' holds 'words.weight'
func.func @last_rows_transposed(%ids: tensor<4xi64> {onnx.name = "ids"}, %x: tensor<4x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %table = onnx.initializer "words.weight" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %head = onnx.initializer "cat_1" file "FILE" offset 60 bytes 36 : tensor<3x3xf32>
  %0 = onnx.node "Gather"(%table, %ids) opset 18 {axis = 0 : i64} : (tensor<3x2xf32>, tensor<4xi64>) -> !onnx.value
  %1 = onnx.node "MatMul"(%x, %head) opset 18 {} : (tensor<4x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// CHECK: warning: constant 'val_3' holds 'up.weight'
func.func @first_columns(%x: tensor<4x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %up = onnx.initializer "up.weight" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %both = onnx.initializer "val_3" file "FILE" offset 96 bytes 36 : tensor<3x3xf32>
  %0 = onnx.node "MatMul"(%x, %up) opset 18 {} : (tensor<4x3xf32>, tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%x, %both) opset 18 {} : (tensor<4x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

// A parameter of the model's own name, zeros in zeros, a table that is no weight
// of a product, and a file that lists its parameters.
func.func @named(%x: tensor<4x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %up = onnx.initializer "up.weight" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %both = onnx.initializer "both.weight" file "FILE" offset 96 bytes 36 : tensor<3x3xf32>
  %0 = onnx.node "MatMul"(%x, %up) opset 18 {} : (tensor<4x3xf32>, tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%x, %both) opset 18 {} : (tensor<4x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

func.func @zeros(%x: tensor<4x1xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %up = onnx.initializer "up.weight" file "FILE" offset 132 bytes 8 : tensor<1x2xf32>
  %both = onnx.initializer "val_3" file "FILE" offset 132 bytes 12 : tensor<1x3xf32>
  %0 = onnx.node "MatMul"(%x, %up) opset 18 {} : (tensor<4x1xf32>, tensor<1x2xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%x, %both) opset 18 {} : (tensor<4x1xf32>, tensor<1x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

func.func @added(%ids: tensor<4xi64> {onnx.name = "ids"}, %x: tensor<3x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) {
  %table = onnx.initializer "words.weight" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %mask = onnx.initializer "cat_1" file "FILE" offset 60 bytes 36 : tensor<3x3xf32>
  %0 = onnx.node "Gather"(%table, %ids) opset 18 {axis = 0 : i64} : (tensor<3x2xf32>, tensor<4xi64>) -> !onnx.value
  %1 = onnx.node "Add"(%x, %mask) opset 18 {} : (tensor<3x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

func.func @listed(%x: tensor<4x3xf32> {onnx.name = "x"}) -> (!onnx.value, !onnx.value) attributes {onnx.parameters = ["up.weight", "val_3"]} {
  %up = onnx.initializer "up.weight" file "FILE" offset 0 bytes 24 : tensor<3x2xf32>
  %both = onnx.initializer "val_3" file "FILE" offset 96 bytes 36 : tensor<3x3xf32>
  %0 = onnx.node "MatMul"(%x, %up) opset 18 {} : (tensor<4x3xf32>, tensor<3x2xf32>) -> !onnx.value
  %1 = onnx.node "MatMul"(%x, %both) opset 18 {} : (tensor<4x3xf32>, tensor<3x3xf32>) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}
