// A shape that is an input of unknown length: each way to ask for a program ends
// in a message that names what is missing, or in the program.
// RUN: not autohet-opt %s --onnx-to-het 2>&1 | FileCheck %s --check-prefix=UNBOUND
// RUN: not autohet-opt %s --onnx-to-het="inference dims=rank=2" 2>&1 | FileCheck %s --check-prefix=DATA
// RUN: sed 's/onnx.name = "shape"/&, onnx.value = dense<[6, 2]> : tensor<2xi64>/; s/tensor<?xi64>/tensor<2xi64>/g' %s | \
// RUN:   autohet-opt --onnx-to-het=inference | FileCheck %s --check-prefix=GIVEN

// UNBOUND: error: dims of the model are unbound: 'rank' of input 'shape' (the batch: --global-batch N or --microbatch N)
// DATA: error: node (Reshape): shape (operand 1) is not constant, even with all dims bound; {{.*}} give its value with --bind 'shape'=FILE
// GIVEN: het.reshape %arg0 to [6, 2]
// GIVEN: het.matmul
func.func @model(%x: tensor<3x4xf32> {onnx.name = "x"}, %shape: tensor<?xi64> {onnx.dims = ["rank"], onnx.name = "shape"}) -> !onnx.value {
  %w = onnx.initializer "w" file "m" offset 0 bytes 128 : tensor<2x16xf32>
  %0 = onnx.node "Reshape"(%x, %shape) opset 18 {} : (tensor<3x4xf32>, tensor<?xi64>) -> !onnx.value
  %1 = onnx.node "MatMul"(%0, %w) opset 18 {} : (!onnx.value, tensor<2x16xf32>) -> !onnx.value
  return %1 : !onnx.value
}
