// RUN: autohet-opt %s --verify-diagnostics --split-input-file

func.func @neither() {
  // expected-error @+1 {{needs either a value or a file, an offset and bytes}}
  %w = onnx.initializer "w" : tensor<2xf32>
  return
}

// -----

func.func @both() {
  // expected-error @+1 {{needs either a value or a file, an offset and bytes}}
  %w = onnx.initializer "w" value dense<[1, 2]> : tensor<2xi64> file "m.onnx" offset 0 bytes 16 : tensor<2xi64>
  return
}

// -----

func.func @value_type() {
  // expected-error @+1 {{value has type 'tensor<2xi64>', wanted the result's 'tensor<3xi64>'}}
  %w = onnx.initializer "w" value dense<[1, 2]> : tensor<2xi64> : tensor<3xi64>
  return
}

// -----

func.func @size() {
  // expected-error @+1 {{has 4 bytes, wanted 8 for 'tensor<2xf32>'}}
  %w = onnx.initializer "w" file "m.onnx" offset 0 bytes 4 : tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{argument 0: 'onnx.value' must be elements of type 'tensor<2xi64>', but is "x"}}
func.func @bound_value(%x: tensor<2xi64> {onnx.value = "x"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: 'onnx.value' must be elements of type 'tensor<2xi64>', but has type 'tensor<3xi64>'}}
func.func @bound_type(%x: tensor<2xi64> {onnx.value = dense<1> : tensor<3xi64>}) {
  return
}

// -----

func.func @bodies(%c: tensor<i1>) {
  // expected-error @+1 {{has 1 bodies, wanted 2: one for each field that is "<GRAPH>"}}
  %0 = onnx.node "If"(%c) opset 13 {else_branch = "<GRAPH>", then_branch = "<GRAPH>"} : (tensor<i1>) -> !onnx.value bodies {
    onnx.yield %c : tensor<i1>
  }
  return
}

// -----

func.func @declared(%x: tensor<2xf32>) {
  // expected-error @+1 {{declares 2 types, wanted one for each of its 1 results}}
  %0 = onnx.node "Relu"(%x) opset 13 {} declared [unit, tensor<2xf32>] : (tensor<2xf32>) -> !onnx.value
  return
}
