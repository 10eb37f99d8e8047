// RUN: autohet-opt %s --onnx-to-het=inference --split-input-file --verify-diagnostics

// What a file declares of its values' types decides nothing; it may not say
// that they are other elements.

// expected-error @+1 {{output 'y' is declared as 'tensor<2x3xi64>', but is 'tensor<2x3xf32>'}}
func.func @output(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value {onnx.declared = tensor<2x3xi64>, onnx.name = "y"}) {
  %0 = onnx.node "Relu"(%x) opset 18 {} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// An output need not be a node's result.
// expected-error @+1 {{output 'y' is declared as 'tensor<*xf16>', but is 'tensor<2x3xf32>'}}
func.func @input(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (tensor<2x3xf32> {onnx.declared = tensor<*xf16>, onnx.name = "y"}) {
  return %x : tensor<2x3xf32>
}

// -----

func.func @value(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Cast): result 0 is declared as 'tensor<2x3xi32>', but is 'tensor<2x3xi64>'}}
  %0 = onnx.node "Cast"(%x) opset 18 {to = 7 : i64} declared [tensor<2x3xi32>] : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @no_tensor(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Relu): result 0 is declared as a tensor of STRING, but is 'tensor<2x3xf32>'}}
  %0 = onnx.node "Relu"(%x) opset 18 {} declared ["a tensor of STRING"] : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @in_a_body(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %c = onnx.initializer "c" value dense<true> : tensor<i1> : tensor<i1>
  %0 = onnx.node "If"(%c) opset 13 {else_branch = "<GRAPH>", then_branch = "<GRAPH>"} : (tensor<i1>) -> !onnx.value bodies {
    onnx.yield %x : tensor<2x3xf32>
  }, {
    // expected-error @+1 {{node (Relu): result 0 is declared as 'tensor<2x3xf16>', but is 'tensor<2x3xf32>'}}
    %1 = onnx.node "Relu"(%x) opset 13 {} declared [tensor<2x3xf16>] : (tensor<2x3xf32>) -> !onnx.value
    onnx.yield %1 : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

// Shapes: one warning, of the first.
// expected-warning @+1 {{output 'z' is declared as 'tensor<3x2xf32>', but is 'tensor<2x3xf32>': shapes are computed, what a file declares decides nothing}}
func.func @shape(%x: tensor<2x3xf32> {onnx.name = "x"})
    -> (!onnx.value {onnx.declared = tensor<?x?xf32>, onnx.name = "y"}, !onnx.value {onnx.declared = tensor<3x2xf32>, onnx.name = "z"}) {
  %0 = onnx.node "Relu"(%x) opset 18 {} declared [tensor<*xf32>] : (tensor<2x3xf32>) -> !onnx.value
  %1 = onnx.node "Neg"(%0) opset 18 {} declared [tensor<2x?xf32>] : (!onnx.value) -> !onnx.value
  return %0, %1 : !onnx.value, !onnx.value
}

// -----

func.func @shapes(%x: tensor<2x3xf32> {onnx.name = "x"}) -> (!onnx.value {onnx.declared = tensor<2xf32>, onnx.name = "y"}) {
  // expected-warning @+1 {{node (Relu): result 0 is declared as 'tensor<6xf32>', but is 'tensor<2x3xf32>' (and 2 other values likewise): shapes are computed}}
  %0 = onnx.node "Relu"(%x) opset 18 {} declared [tensor<6xf32>] : (tensor<2x3xf32>) -> !onnx.value
  %1 = onnx.node "Neg"(%0) opset 18 {} declared [tensor<2x4xf32>] : (!onnx.value) -> !onnx.value
  return %1 : !onnx.value
}
