// RUN: autohet-opt %s --onnx-to-het --verify-diagnostics --split-input-file

func.func @unsupported(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{the model has unsupported ops: LSTM (2), com.microsoft::Sampling (1); recurrent layers are not supported; loops that generate text are not supported: give the file of the decoder that they call; docs/onnx-support.md lists those that are}}
  %0:2 = onnx.node "LSTM"(%x) opset 18 {} : (tensor<2x3xf32>) -> (!onnx.value, !onnx.value)
  %1:2 = onnx.node "LSTM"(%0#0) opset 18 {} : (!onnx.value) -> (!onnx.value, !onnx.value)
  %2 = onnx.node "Sampling"(%1#0) opset 1 domain "com.microsoft" {} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "Relu"(%2) opset 18 {} : (!onnx.value) -> !onnx.value
  return %3 : !onnx.value
}

// -----

// expected-error @+1 {{dims of the model are unbound: 'batch' of input 'ids' (the batch: --global-batch N or --microbatch N), 'seq' of input 'ids' (--dim seq=N)}}
func.func @unbound(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> !onnx.value {
  %0 = onnx.node "Neg"(%ids) opset 18 {} : (tensor<?x?xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @reshape(%x: tensor<2x48x64xf32> {onnx.name = "x"}) -> !onnx.value {
  %s = onnx.initializer "s" value dense<[2, 24, 64]> : tensor<3xi64> : tensor<3xi64>
  // expected-error @+1 {{node (Reshape): a tensor of shape [2, 48, 64] has 6144 elements and cannot be given shape [2, 24, 64], which takes 3072}}
  %0 = onnx.node "Reshape"(%x, %s) opset 18 {} : (tensor<2x48x64xf32>, tensor<3xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @data_dependent(%x: tensor<2x3xf32> {onnx.name = "x"}, %s: tensor<2xi64> {onnx.name = "s"}) -> !onnx.value {
  // expected-error @+1 {{node (Reshape): shape (operand 1) is not constant, even with all dims bound}}
  %0 = onnx.node "Reshape"(%x, %s) opset 18 {} : (tensor<2x3xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @places_of_data(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (NonZero): input (operand 0) is not constant, even with all dims bound}}
  %0 = onnx.node "NonZero"(%x) opset 18 {} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @shared_cache(%x: tensor<1x2x4xf32> {onnx.name = "x"}, %n: tensor<1xi32> {onnx.name = "n"}) -> !onnx.value {
  %none = onnx.none : none
  // expected-error @+1 {{node (MultiHeadAttention): operand 8, past_sequence_length, is not supported: past keys and values are tensors of their own length here}}
  %0 = onnx.node "MultiHeadAttention"(%x, %x, %x, %none, %none, %none, %none, %none, %n) opset 1 domain "com.microsoft" {num_heads = 2 : i64} : (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>, none, none, none, none, none, tensor<1xi32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Found by fuzzing: what is looked up must be as wide as the words.
func.func @embed_positions(%i: tensor<2x3xi32> {onnx.name = "i"}, %w: tensor<9x8xf32> {onnx.name = "w"}, %p: tensor<5x4xf32> {onnx.name = "p"}) -> !onnx.value {
  %none = onnx.none : none
  // expected-error @+1 {{node (EmbedLayerNormalization): shapes [2, 3, 8] and [3, 4] do not broadcast}}
  %0 = onnx.node "EmbedLayerNormalization"(%i, %none, %w, %p) opset 1 domain "com.microsoft" {} : (tensor<2x3xi32>, none, tensor<9x8xf32>, tensor<5x4xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @embed_mask(%i: tensor<2x3xi32> {onnx.name = "i"}, %w: tensor<9x8xf32> {onnx.name = "w"}, %m: tensor<6xi32> {onnx.name = "m"}) -> !onnx.value {
  %none = onnx.none : none
  // expected-error @+1 {{node (EmbedLayerNormalization): mask is 'tensor<6xi32>', wanted [2, 3]}}
  %0 = onnx.node "EmbedLayerNormalization"(%i, %none, %w, %w, %none, %none, %none, %m) opset 1 domain "com.microsoft" {} : (tensor<2x3xi32>, none, tensor<9x8xf32>, tensor<9x8xf32>, none, none, none, tensor<6xi32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @convolution(%x: tensor<2x4x9xf32> {onnx.name = "x"}, %w: tensor<6x3x3xf32> {onnx.name = "w"}) -> !onnx.value {
  // expected-error @+1 {{node (Conv): input 'tensor<2x4x9xf32>' and weights 'tensor<6x3x3xf32>' do not fit in 1 groups}}
  %0 = onnx.node "Conv"(%x, %w) opset 11 {} : (tensor<2x4x9xf32>, tensor<6x3x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @wide_kernel(%x: tensor<2x4x9xf32> {onnx.name = "x"}, %w: tensor<6x4x12xf32> {onnx.name = "w"}) -> !onnx.value {
  // expected-error @+1 {{node (Conv): a kernel over 12 elements does not fit dim 2 of 'tensor<2x4x9xf32>'}}
  %0 = onnx.node "Conv"(%x, %w) opset 11 {pads = array<i64: 1, 1>} : (tensor<2x4x9xf32>, tensor<6x4x12xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @product(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (MatMul): cannot multiply [2, 3] by [2, 3]}}
  %0 = onnx.node "MatMul"(%x, %x) opset 18 {} : (tensor<2x3xf32>, tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @half(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Cast): casts to FLOAT16; only float32 models are supported in training}}
  %0 = onnx.node "Cast"(%x) opset 18 {to = 10 : i64} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @broadcast(%x: tensor<2x3xf32> {onnx.name = "x"}, %y: tensor<2xf32> {onnx.name = "y"}) -> !onnx.value {
  // expected-error @+1 {{node (Add): shapes [2, 3] and [2] do not broadcast}}
  %0 = onnx.node "Add"(%x, %y) opset 18 {} : (tensor<2x3xf32>, tensor<2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @index(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %i = onnx.initializer "i" value dense<3> : tensor<i64> : tensor<i64>
  // expected-error @+1 {{node (Gather): index 3 is outside dim 1 of 'tensor<2x3xf32>'}}
  %0 = onnx.node "Gather"(%x, %i) opset 18 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<i64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @heads(%q: tensor<1x32x4x8xf32> {onnx.name = "q"}, %k: tensor<1x5x4x8xf32> {onnx.name = "k"}) -> !onnx.value {
  // expected-error @+1 {{node (Attention): 32 query heads are no multiple of 5 key/value heads}}
  %0 = onnx.node "Attention"(%q, %k, %k) opset 23 {} : (tensor<1x32x4x8xf32>, tensor<1x5x4x8xf32>, tensor<1x5x4x8xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @double_weights(%x: tensor<2x2xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{constant 'w' holds 'f64' weights; only float32 models are supported in training}}
  %w = onnx.initializer "w" file "m" offset 0 bytes 32 : tensor<2x2xf64>
  %0 = onnx.node "MatMul"(%x, %w) opset 18 {} : (tensor<2x2xf32>, tensor<2x2xf64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// expected-error @+1 {{input 'x' is 'tensor<0x3xf32>', wanted 1 to 2^40 elements}}
func.func @empty(%x: tensor<0x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %0 = onnx.node "Neg"(%x) opset 18 {} : (tensor<0x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// expected-error @+1 {{input 'x' is 'tensor<2x4611686018427387904xf32>', wanted 1 to 2^40 elements}}
func.func @huge(%x: tensor<2x4611686018427387904xf32> {onnx.name = "x"}) -> !onnx.value {
  %0 = onnx.node "Neg"(%x) opset 18 {} : (tensor<2x4611686018427387904xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// expected-error @+1 {{input 'x' is 'f16'; only float32 models are supported in training: export the model in float32}}
func.func @half_input(%x: tensor<2x3xf16> {onnx.name = "x"}) -> !onnx.value {
  %0 = onnx.node "Neg"(%x) opset 18 {} : (tensor<2x3xf16>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// What PyTorch's exporter writes when it is asked for an opset it cannot write.
func.func @newer_than_its_label(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{there is Gelu from opset 20 on, but the file says that it is of opset 18}}
  %0 = onnx.node "Gelu"(%x) opset 18 {} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @shape_from_data(%x: tensor<6xf32> {onnx.name = "x"}, %s: tensor<2xi64> {onnx.name = "s"}) -> !onnx.value {
  // expected-error @+1 {{shape (operand 1) is not constant, even with all dims bound; shapes that depend on data are not supported; if it is always the same, give its value with --bind 's'=FILE}}
  %0 = onnx.node "Reshape"(%x, %s) opset 18 {} : (tensor<6xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @form_of_another_opset(%x: tensor<2x3xf32> {onnx.name = "x"}, %a: tensor<1xi64> {onnx.name = "a"}) -> !onnx.value {
  // expected-error @+1 {{ReduceMean has its axes as an operand from opset 18 on, but the file says that it is of opset 17}}
  %0 = onnx.node "ReduceMean"(%x, %a) opset 17 {} : (tensor<2x3xf32>, tensor<1xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @split_of_later(%x: tensor<2x4xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{Split has num_outputs from opset 18 on, but the file says that it is of opset 17}}
  %0, %1 = onnx.node "Split"(%x) opset 17 {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<2x4xf32>) -> (!onnx.value, !onnx.value)
  return %0 : !onnx.value
}

// -----

func.func @branch_with_inputs(%x: tensor<2x3xf32> {onnx.name = "x"}, %c: tensor<i1> {onnx.name = "c"}) -> !onnx.value {
  // expected-error @+1 {{has a branch with 1 inputs, wanted none}}
  %0 = onnx.node "If"(%c) opset 16 {else_branch = "<GRAPH>", then_branch = "<GRAPH>"} : (tensor<i1>) -> !onnx.value bodies {
    onnx.yield %x : tensor<2x3xf32>
  }, {
  ^bb0(%y: !onnx.value):
    onnx.yield %y : !onnx.value
  }
  return %0 : !onnx.value
}

// -----

func.func @norm_types(%x: tensor<2x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %g = onnx.initializer "g" value dense<1.0> : tensor<4xf16> : tensor<4xf16>
  // expected-error @+1 {{node (LayerNormalization): its operand is of 'f32' and its scale of 'f16', wanted one type from opset 17 on}}
  %0 = onnx.node "LayerNormalization"(%x, %g) opset 17 {} : (tensor<2x4xf32>, tensor<4xf16>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @fused_attention_types(%x: tensor<2x3x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %q = onnx.initializer "q" value dense<1.0> : tensor<2x3x4xf64> : tensor<2x3x4xf64>
  // expected-error @+1 {{node (MultiHeadAttention): query is 'tensor<2x2x3x2xf64>', wanted float32, float16 or bfloat16}}
  %0 = onnx.node "MultiHeadAttention"(%q, %q, %q) opset 1 domain "com.microsoft" {num_heads = 2 : i64} : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// Found by fuzzing: more than an integer counts, in one dim or in all.
func.func @padByFar(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Pad): attribute 'pads' has 9223372036854775807, wanted at most 2^40}}
  %0 = onnx.node "Pad"(%x) opset 2 {pads = array<i64: 0, 0, 0, 9223372036854775807>} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @padByFarOperand(%x: tensor<2xf32> {onnx.name = "x"}) -> !onnx.value {
  %p = onnx.initializer "p" value dense<[0, 9223372036854775807]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @+1 {{node (Pad): pads by 9223372036854775807, wanted at most 2^40}}
  %0 = onnx.node "Pad"(%x, %p) opset 13 {} : (tensor<2xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @cropPadToFar(%x: tensor<2xf32> {onnx.name = "x"}) -> !onnx.value {
  %s = onnx.initializer "s" value dense<[9223372036854775807]> : tensor<1xi64> : tensor<1xi64>
  // expected-error @+1 {{node (CenterCropPad): shape [9223372036854775807] has an extent of more than 2^40}}
  %0 = onnx.node "CenterCropPad"(%x, %s) opset 18 {} : (tensor<2xf32>, tensor<1xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @splitFar(%x: tensor<3xf32> {onnx.name = "x"}) -> !onnx.value {
  %s = onnx.initializer "s" value dense<[9223372036854775807, 9223372036854775807, 5]> : tensor<3xi64> : tensor<3xi64>
  // expected-error @+1 {{parts [9223372036854775807, 9223372036854775807, 5] do not make up dim 0}}
  %0:3 = onnx.node "Split"(%x, %s) opset 13 {} : (tensor<3xf32>, tensor<3xi64>) -> (!onnx.value, !onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}

// -----

// Found by fuzzing: each row that is looked up is in a list.
func.func @padRowsByFar(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (Pad): pads dim 1 of 'tensor<2x3xf32>' by 0 and 4294967296 in mode 'edge', wanted at most 2^24 rows together}}
  %0 = onnx.node "Pad"(%x) opset 2 {mode = "edge", pads = array<i64: 0, 0, 0, 4294967296>} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @padToFar(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{2^40 elements at most}}
  %0 = onnx.node "Pad"(%x) opset 2 {pads = array<i64: 1099511627774, 1099511627773, 0, 0>} : (tensor<2x3xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @tile(%x: tensor<2x4xf32> {onnx.name = "x"}) -> !onnx.value {
  %r = onnx.initializer "r" value dense<[1, 4611686018427387904]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @+1 {{node (Tile): repeats 'tensor<2x4xf32>' by [1, 4611686018427387904], wanted at most 2^40 elements}}
  %0 = onnx.node "Tile"(%x, %r) opset 13 {} : (tensor<2x4xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

// The square of 2^63 - 1 is 1 in 64 bits: as many elements as there are.
func.func @reshapeByFar(%x: tensor<1x1xf32> {onnx.name = "x"}) -> !onnx.value {
  %s = onnx.initializer "s" value dense<9223372036854775807> : tensor<2xi64> : tensor<2xi64>
  // expected-error @+1 {{node (Reshape): a tensor of shape [1, 1] cannot be given shape [9223372036854775807, 9223372036854775807]: wanted extents from 0 on, and at most 2^40 elements}}
  %0 = onnx.node "Reshape"(%x, %s) opset 13 {} : (tensor<1x1xf32>, tensor<2xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @blocks(%x: tensor<1x4x2x2xf32> {onnx.name = "x"}) -> !onnx.value {
  // expected-error @+1 {{node (DepthToSpace): 'tensor<1x4x2x2xf32>' has no blocks of 1099511627776 by 1099511627776, wanted [N, C, H, W] and at most 1024}}
  %0 = onnx.node "DepthToSpace"(%x) opset 13 {blocksize = 1099511627776 : i64} : (tensor<1x4x2x2xf32>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @mixedUpdate(%r: tensor<f32> {onnx.name = "r"}, %t: tensor<i64> {onnx.name = "t"}, %x: tensor<2xf32> {onnx.name = "x"}, %g: tensor<2xui8> {onnx.name = "g"}) -> !onnx.value {
  // expected-error @+1 {{operand 3 is 'tensor<2xui8>', wanted floats, as the tensor 'tensor<2xf32>'}}
  %0:2 = onnx.node "Momentum"(%r, %t, %x, %g, %x) opset 1 domain "ai.onnx.preview.training" {alpha = 0.9 : f32, beta = 1.0 : f32, mode = "standard", norm_coefficient = 0.0 : f32} : (tensor<f32>, tensor<i64>, tensor<2xf32>, tensor<2xui8>, tensor<2xf32>) -> (!onnx.value, !onnx.value)
  return %0#0 : !onnx.value
}

// -----

func.func @weights_of_classes(%x: tensor<2x3xf32> {onnx.name = "x"}, %y: tensor<2xi64> {onnx.name = "y"}) -> !onnx.value {
  %w = onnx.initializer "w" value dense<1> : tensor<3xi64> : tensor<3xi64>
  // expected-error @+1 {{weights are 'tensor<3xi64>', wanted one a class, 'tensor<3xf32>'}}
  %0 = onnx.node "SoftmaxCrossEntropyLoss"(%x, %y, %w) opset 13 {} : (tensor<2x3xf32>, tensor<2xi64>, tensor<3xi64>) -> !onnx.value
  return %0 : !onnx.value
}

// -----

func.func @long_range(%x: tensor<2x3xf32> {onnx.name = "x"}) -> !onnx.value {
  %first = onnx.initializer "first" value dense<-9223372036854775808> : tensor<i64> : tensor<i64>
  %last = onnx.initializer "last" value dense<9223372036854775807> : tensor<i64> : tensor<i64>
  %one = onnx.initializer "one" value dense<1> : tensor<i64> : tensor<i64>
  // expected-error @+1 {{makes 18446744073709551615 numbers, wanted at most 2^40}}
  %0 = onnx.node "Range"(%first, %last, %one) opset 18 {} : (tensor<i64>, tensor<i64>, tensor<i64>) -> !onnx.value
  return %0 : !onnx.value
}
