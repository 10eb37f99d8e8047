//===- Passes.td - the passes of the Model phase, in order ------*- tablegen -*-===//

#ifndef AUTOHET_PASSES_MODEL
#define AUTOHET_PASSES_MODEL

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

def OnnxToHet : Pass<"onnx-to-het", "::mlir::ModuleOp"> {
  let summary = "Give the nodes of a model file their meaning";
  let description = [{
    *Requires*: functions of onnx ops, as the reader writes them.

    *Does*: binds symbolic dims, then converts each node to het ops, folding as it
    goes, so that shape arithmetic vanishes. Float constants of two or more
    elements become `het.parameter`, one op a use, under PyTorch's names and
    shapes; a weight that the exporter transposed is transposed back, and the
    product contracts its other dim. Products of flattened batch × sequence
    become products of the whole. Unknown ops are reported all at once.

    *Ensures*: only het ops on static tensors; for each parameter a
    `het.weight_source` that says where its bytes lie, with the other names of a
    tied one (those of the modules that use it as an Embedding or a Linear, and
    of its `ties`); inputs that have the batch dim carry `het.batch_dim`.

    Example, with `dims=seq=5 batch=2`:
    ```mlir
    func.func @model(%ids: tensor<?x?xi64> {onnx.dims = ["batch", "seq"], onnx.name = "ids"}) -> (!onnx.value {onnx.name = "y"}) {
      %e = onnx.initializer "wte.weight" file "m.onnx" offset 64 bytes 128 : tensor<4x8xf32>
      %w = onnx.initializer "val_3" file "m.onnx" offset 192 bytes 192 : tensor<8x6xf32>
      %0 = onnx.node "Gather"(%e, %ids) opset 18 {} : (tensor<4x8xf32>, tensor<?x?xi64>) -> !onnx.value
      %1 = onnx.node "MatMul"(%0, %w) opset 18 scope "head" {} : (!onnx.value, tensor<8x6xf32>) -> !onnx.value
      return %1 : !onnx.value
    }
    ```
    becomes
    ```mlir
    het.weight_source "wte.weight" in "m.onnx" at 64 : tensor<4x8xf32>
    het.weight_source "head.weight" in "m.onnx" at 192 transposed : tensor<8x6xf32>
    func.func @model(%ids: tensor<2x5xi64> {het.batch_dim = 0 : i64, het.name = "ids", het.role = "input"}) -> (tensor<2x5x6xf32> {het.name = "y"}) attributes {het.batch_size = 2 : i64} {
      %e = het.parameter "wte.weight" : tensor<4x8xf32>
      %0 = het.embedding %e, %ids : (tensor<4x8xf32>, tensor<2x5xi64>) -> tensor<2x5x8xf32>
      %w = het.parameter "head.weight" : tensor<6x8xf32>
      %1 = het.matmul %0, %w contract [2] [1] : (tensor<2x5x8xf32>, tensor<6x8xf32>) -> tensor<2x5x6xf32>
      return %1 : tensor<2x5x6xf32>
    }
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect", "::mlir::func::FuncDialect"];
  let options = [
    Option<"batch", "batch", "int64_t", "0", "extent of the batch dim; 0: as in the file">,
    Option<"batchDim", "batch-dim", "std::string", "\"\"",
           "name of the batch dim; default: dim 0 of the first integer input, else of the first">,
    ListOption<"dims", "dims", "std::string", "NAME=N: extents of symbolic dims">,
    ListOption<"ties", "ties", "std::string", "NAME=OTHER: OTHER is a copy of the parameter NAME">,
    ListOption<"shared", "shared", "std::string", "parameters that are meant to have several uses">,
    Option<"inference", "inference", "bool", "false",
           "nothing is trained: any element type, and a batch in numbers is one sample unless it is asked for">
  ];
}

def ClassifyParameters : Pass<"het-classify-parameters", "::mlir::ModuleOp"> {
  let summary = "Tell parameters from tables and masks, and tied ones from merged ones";
  let description = [{
    *Requires*: `het.weight_source` for each parameter, and one `het.parameter` a
    use: common subexpressions are not eliminated yet.

    *Does*: marks parameters `untrained` that are added to attention scores, feed
    sine or cosine, rotate queries and keys, or in whose names the regular
    expression `constants` matches. All others are trained. A trained constant
    with two uses is accepted as embedding table plus output head; any other
    second use is an error, unless its source is `shared`.

    *Ensures*: every `het.weight_source` has a reason; there is none without a use.

    ```mlir
    het.weight_source "where" in "m.onnx" at 0 : tensor<12x12xf32>
    %m = het.parameter "where" : tensor<12x12xf32>
    %t = het.add %scores, %m : ...
    %p = het.softmax %t : ...
    // becomes
    het.weight_source "where" in "m.onnx" at 0 untrained because "added to attention scores" : tensor<12x12xf32>
    %m = het.parameter "where" untrained : tensor<12x12xf32>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
  let options = [
    Option<"constants", "constants", "std::string", "\"\"",
           "regular expression: names of constants that are not trained">,
    Option<"inference", "inference", "bool", "false",
           "nothing is trained, so that merged constants do no harm">
  ];
}

//===----------------------------------------------------------------------===//
// Canonical form: one shape for what exporters write in many
//===----------------------------------------------------------------------===//

def SimplifyGathers : Pass<"het-simplify-gathers", "::mlir::func::FuncOp"> {
  let summary = "Turn lookups at constant, counting places into views";
  let description = [{
    *Requires*: static shapes; shape arithmetic folded.

    *Does*: a `het.gather` or `het.gather_nd` whose indices are a constant that
    counts (each index is affine in its position) becomes slice, reshape,
    transpose and broadcast. A padding mask that is read at "row b, column t"
    is thereby seen to keep its batch dim. So is a row of each sample: by tuples
    that begin with the sample's number, or by its place in samples laid end to
    end; it becomes a `het.gather_nd` whose batch dims pair samples. Updates of a
    `het.scatter_nd` at places that are constant, and the same in each sample,
    become updates of slices that hold all samples.

    *Ensures*: a gather that is left depends on data, or on a constant that
    permutes.

    ```mlir
    %m = het.gather_nd %pad, %tuples {batch_dims = 0 : i64}
       : (tensor<2x12xi1>, tensor<2x1x1x12x2xi64>) -> tensor<2x1x1x12xi1>
    // becomes
    %m = het.reshape %pad to [2, 1, 1, 12] : (tensor<2x12xi1>) -> tensor<2x1x1x12xi1>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def Unflatten : Pass<"het-unflatten", "::mlir::func::FuncOp"> {
  let summary = "Keep the batch a dim of its own";
  let description = [{
    *Requires*: static shapes.

    *Does*: a reshape that merges dim 0 with others, or the batch (followed from
    the inputs' `het.batch_dim`) wherever it is, moves down past elementwise
    ops, norms, products, reductions, slices and transposes, until the reshape
    that undoes it cancels it. Transposes of a matmul's operand become part of
    the matmul.

    *Ensures*: no op between two opposite reshapes sees a merged dim 0 or a
    merged batch.

    ```mlir
    %f = het.reshape %x to [24, 32] : (tensor<2x12x32xf32>) -> tensor<24x32xf32>
    %p = het.matmul %f, %w contract [1] [0] : ... -> tensor<24x96xf32>
    %a = het.add %p, %bias : ... -> tensor<24x96xf32>
    %y = het.reshape %a to [2, 12, 96] : ... -> tensor<2x12x96xf32>
    // becomes
    %p = het.matmul %x, %w contract [2] [0] : ... -> tensor<2x12x96xf32>
    %y = het.add %p, %bias : ... -> tensor<2x12x96xf32>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def DenseExperts : Pass<"het-dense-experts", "::mlir::func::FuncOp"> {
  let summary = "Let all experts compute in place of looking up the weights of some";
  let description = [{
    *Requires*: `het-unflatten` has run.

    *Does*: a product with weights that a token looks up at the places that a
    `het.top_k` (or `het.arg_reduce`) chose becomes a product with all of them,
    of which the chosen rows are picked. Picks move down past what works on each
    expert alone, into the next such product; the sum over the chosen experts,
    weighed by one share each, becomes one over all experts, in which the others
    have no share. Not where there are fewer lookups than experts, or more
    experts than an expert has inputs.

    *Ensures*: no copy of an expert's weights a token is left of such a layer.

    ```mlir
    %g = het.gather %w, %chosen {dim = 0 : i64} : (tensor<4x96x32xf32>, tensor<2x12x2xi64>) -> tensor<2x12x2x96x32xf32>
    %z = het.matmul %g, %x batch [0, 1, 2] [0, 1, 2] contract [4] [3] : ... -> tensor<2x12x2x96xf32>
    %s = het.mul %z, %share : (tensor<2x12x2x96xf32>, tensor<2x12x2x1xf32>) -> ...
    %y = het.reduce sum %s dims [2] : ... -> tensor<2x12x96xf32>
    // becomes
    %z = het.matmul %x1, %w contract [2] [2] : (tensor<2x12x32xf32>, tensor<4x96x32xf32>) -> tensor<2x12x4x96xf32>
    %s = het.mul %z, %shares : (tensor<2x12x4x96xf32>, tensor<2x12x4x1xf32>) -> ...
    %y = het.reduce sum %s dims [2] : ... -> tensor<2x12x96xf32>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def SplitProjections : Pass<"het-split-projections", "::mlir::func::FuncOp"> {
  let summary = "Split a fused projection into products with views of the weight";
  let description = [{
    *Requires*: `het-unflatten` has run.

    *Does*: where the only uses of a product with a parameter (plus bias, under
    any shape, cleared in places by a `het.select`) are disjoint slices along one
    dim, the slices move up to the parameters and become views of them.

    *Ensures*: queries, keys and values of a fused weight are products of their
    own; no slice of a parameter is left.

    ```mlir
    %w = het.parameter "qkv.weight" : tensor<96x32xf32>
    %y = het.matmul %x, %w contract [2] [1] : ... -> tensor<2x12x96xf32>
    %k = het.slice %y offsets [0, 0, 32] sizes [2, 12, 32] strides [1, 1, 1] : ...
    // becomes
    %w1 = het.parameter "qkv.weight" offsets [32, 0] of [96, 32] : tensor<32x32xf32>
    %k = het.matmul %x, %w1 contract [2] [1] : ... -> tensor<2x12x32xf32>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def InlineTables : Pass<"het-inline-tables", "::mlir::ModuleOp"> {
  let summary = "Make constants of masks and rotary tables";
  let description = [{
    *Requires*: `het-classify-parameters` has run.

    *Does*: an untrained parameter that only elementwise ops and views use, of at
    most 4 Mi elements, becomes a `het.constant` with the elements in its file.

    *Ensures*: passes that must look into masks and tables can. The
    `het.weight_source` stays, as a record of what the file holds.

    ```mlir
    het.weight_source "mask" in "m.onnx" at 64 untrained because "added to attention scores" : tensor<2x2xf32>
    %m = het.parameter "mask" untrained : tensor<2x2xf32>
    // becomes
    %m = het.constant dense<[[0.0, -3.40282347E+38], [0.0, 0.0]]> : tensor<2x2xf32>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

//===----------------------------------------------------------------------===//
// Fuse: give decomposed formulas their meaning back
//===----------------------------------------------------------------------===//

def FuseNorms : Pass<"het-fuse-norms", "::mlir::func::FuncOp"> {
  let summary = "Recognise layer_norm and rms_norm in their decompositions";
  let description = [{
    *Requires*: plain het ops; reductions over one dim.

    *Does*: replaces `d / sqrt(mean(d^2) + e)` by `het.layer_norm` where
    `d = x - mean(x)`, by `het.rms_norm` otherwise, and lets a scale and a bias
    that are vectors over the last dim join it. Squares may be pow or mul, means
    a mean or a sum over N, the quotient a div, a reciprocal or an rsqrt.
    Intermediates with other uses stay.

    *Ensures*: no such decomposition is left.

    ```mlir
    %sq = het.mul %x, %x : ...
    %ms = het.reduce mean %sq dims [2] keep : ...
    %ve = het.add %ms, %eps : ...
    %r = het.rsqrt %ve : ...
    %n = het.mul %x, %r : ...
    %y = het.mul %n, %scale : ...
    // becomes
    %y, %rstd = het.rms_norm %x, %scale {epsilon = 1.0e-6 : f64} : ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def FuseGelu : Pass<"het-fuse-gelu", "::mlir::func::FuncOp"> {
  let summary = "Recognise gelu (erf and tanh) and silu in their formulas";
  let description = [{
    *Requires*: plain het ops.

    *Does*: replaces `x/2 (1 + erf(x / sqrt 2))` and
    `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, factors in any order and
    grouping, by `het.gelu`; `x sigmoid(x)` by `het.silu`.

    *Ensures*: no such formula is left.

    ```mlir
    %s = het.sigmoid %x : ...
    %y = het.mul %x, %s : ...
    // becomes
    %y = het.silu %x : ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def FuseRotary : Pass<"het-fuse-rotary", "::mlir::func::FuncOp"> {
  let summary = "Recognise rotary position embeddings";
  let description = [{
    *Requires*: plain het ops; common subexpressions eliminated.

    *Does*: replaces `x cos + turn(x) sin`, `turn` being (-x2, x1) on halves or
    neighbours, and `(x1 cos - x2 sin, x2 cos + x1 sin)` by `het.rotary`. Where
    cos and sin hold each angle twice, and provably so, their computation is
    rebuilt at half the width. Elements beyond the rotated ones join in.

    *Ensures*: no such formula on [B, H, S, D] is left.

    ```mlir
    %a = het.mul %x, %cos : (tensor<2x4x5x8xf32>, tensor<1x1x5x8xf32>) -> ...
    %n = het.neg %x2 : ...
    %t = het.concat %n, %x1 {dim = 3 : i64} : ...
    %b = het.mul %t, %sin : ...
    %y = het.add %a, %b : ...
    // becomes
    %y = het.rotary %x, %c, %s : (tensor<2x4x5x8xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def FuseAttention : Pass<"het-fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "Recognise scaled dot-product attention";
  let description = [{
    *Requires*: `het-unflatten` has run; masks are constants or computed from
    inputs, not trained parameters.

    *Does*: `softmax(scale q k^T + mask) v`, with dropout and PyTorch's guard
    against rows that see nothing, becomes `het.attention` on [B, H, S, D]. A
    scale may be on scores, queries or keys. A mask may be numbers that are
    added or a condition that selects -inf; causality in it, constant by now,
    becomes `causal` where that means exactly the same: finite fills are kept as
    numbers unless no row can be hidden as a whole. Repeated key/value heads
    become the map `kv_heads`, also of an op that was imported as attention. An
    attention whose mask has a gradient is left decomposed.

    *Ensures*: no such formula is left; masks do not repeat what `causal` says.

    ```mlir
    %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3] : ...
    %c = het.mul %s, %scale : ...
    %m = het.add %c, %triangle : ...
    %p = het.softmax %m : ...
    %y = het.matmul %p, %v batch [0, 1] [0, 1] contract [3] [2] : ...
    // becomes
    %y, %l = het.attention %q, %k, %v {causal, kv_heads = array<i64: 0, 1>, scale = 2.5e-1 : f64} : ...
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

def AttachLoss : Pass<"het-attach-loss", "::mlir::func::FuncOp"> {
  let summary = "Adds labels and the loss";
  let description = [{
    *Requires* a function in `het` with an output of f32.

    *Does* add the arguments `labels` and `inverse_label_count` (by these names
    and roles) and compute the loss of the first float output of rank 2 or more,
    or of the one that `output` names:

    | loss | labels | sum over the batch |
    |---|---|---|
    | `cross-entropy` | i64, the output's shape without its last dim | of the cross entropies of labels other than `ignore-index` |
    | `mse` | f32, the output's shape | of the squared differences |

    The loss is that sum times `inverse_label_count`, which the runtime sets to 1
    over the number of counted labels (mse: of elements) in the *global* batch.

    Results with a `het.loss_factor` are terms of the loss and end here: each,
    times its factor, is added with the weight of this microbatch, the part of
    the batch's counted labels that it has. Over all microbatches these weights
    sum to 1: the loss is the mean of what each microbatch alone would have.

    *Ensures* that the first result is the loss, a `tensor<f32>` called "loss".

    ```mlir
    func.func @model(%ids: tensor<2x3xi64>) -> (tensor<2x3x7xf32> {het.name = "logits"})
    // becomes
    func.func @model(%ids: tensor<2x3xi64>,
                     %labels: tensor<2x3xi64> {het.batch_dim = 0 : i64, het.name = "labels", het.role = "labels"},
                     %n: tensor<f32> {het.name = "inverse_label_count", het.role = "inverse_label_count"})
        -> (tensor<f32> {het.name = "loss"}, tensor<2x3x7xf32> {het.name = "logits"})
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
  let options = [
    Option<"loss", "loss", "std::string", "\"cross-entropy\"", "cross-entropy or mse">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "the label that does not count">,
    Option<"output", "output", "std::string", "", "name of the output that the loss is of">];
}

def FreezeParameters : Pass<"het-freeze-parameters", "::mlir::func::FuncOp"> {
  let summary = "Takes parameters out of training by name";
  let description = [{
    *Requires* a function in `het` that is not differentiated yet.

    *Does* mark each trained parameter in whose name the extended regular
    expression `pattern` matches somewhere as `untrained` and `het.frozen`; of a
    tied one, in any of its names. A pattern that matches nothing is an error.
    Those that the function's `het.frozen_parameters` lists (a file of
    autohet.export says what requires no gradient) are marked, too.

    *Ensures* that frozen parameters get no gradient, no optimizer state and no
    part in the gradient norm. They remain weights: a plan places them.

    ```mlir
    %w = het.parameter "wte.weight" : tensor<101x48xf32>
    // with pattern=^wte becomes
    %w = het.parameter "wte.weight" untrained {het.frozen} : tensor<101x48xf32>
    ```
  }];
  let options = [
    Option<"pattern", "pattern", "std::string", "", "which names">,
    Option<"all", "all", "bool", "false", "whatever there is, if anything">
  ];
}

def Differentiate : Pass<"het-differentiate", "::mlir::func::FuncOp"> {
  let summary = "Appends the gradients of the loss by the trained parameters";
  let description = [{
    *Requires* a function of `het` ops whose first result is the loss.

    *Does* give each use of a trained parameter its own `het.parameter`, sink
    those to their use, and append the adjoints in the reverse order of the ops
    that they belong to, along values that depend on a trained parameter and on
    which the loss depends. Of several uses of a value the gradients are added
    from the last use to the first.

    *Ensures* that every trained parameter has a `het.gradient` a use, right
    after the gradient is complete, or a reason why not (`het.no_gradient` and a
    remark). Such a parameter is left as it is, without weight decay too: to
    PyTorch its gradient is None, not zeros. Backward ops carry `het.phase =
    "backward"`, a location `"adjoint"(...)` around the forward op's, and
    `het.adjoint_of`, the forward op's `het.id`. An op without an adjoint on such
    a path is an error there.

    ```mlir
    %w = het.parameter "w" : tensor<3xf32>
    %y = het.mul %x, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = het.reduce sum %y dims [0] : (tensor<3xf32>) -> tensor<f32>
    // is followed by
    %one = het.constant dense<1.0> : tensor<f32>
    %1 = het.reshape %one to [1] : (tensor<f32>) -> tensor<1xf32>
    %2 = het.broadcast %1 to [3] : (tensor<1xf32>) -> tensor<3xf32>
    %dw = het.mul %2, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    het.gradient "w" %dw : tensor<3xf32>
    ```
  }];
  let dependentDialects = ["::autohet::het::HetDialect"];
}

def BoundInputs : Pass<"het-bound-inputs", "::mlir::func::FuncOp"> {
  let summary = "Says how large the elements of integer inputs may be";
  let description = [{
    *Requires* a function in `het`.

    *Does* write `het.vocabulary` on each argument that indexes an embedding (its
    rows) or is the labels of a cross entropy (its classes), directly or through
    casts and views.

    *Ensures* that the runtime can refuse a token id outside the vocabulary.

    ```mlir
    func.func @model(%ids: tensor<2x3xi64>) {
      %w = het.parameter "wte.weight" : tensor<101x48xf32>
      %x = het.embedding %w, %ids : ...
    // becomes
    func.func @model(%ids: tensor<2x3xi64> {het.vocabulary = 101 : i64}) {
    ```
  }];
}

def NumberUnits : Pass<"het-number-units", "::mlir::func::FuncOp"> {
  let summary = "Says which unit of the model each op belongs to";
  let description = [{
    *Requires* a function of `het` ops, differentiated or not, whose first result
    is the loss (or what else all paths lead to).

    *Does* cut the model where all paths go through one value, and name the parts:

    | unit | what |
    |---|---|
    | `inputs` | what depends on no weight: constants, masks, positions, tables |
    | `embed` | what comes before the first block |
    | `block3.attn`, `block3.mlp` | a branch with its norm and its residual addition |
    | `block3` | a block that is not in two halves |
    | `layer3` | from one product by a weight to the next, in a model without blocks |
    | `head` | final norm, output projection, loss |

    What depends on a `het.of_microbatch` is passed by: a term of the loss that
    each block has a part in belongs to the block whose values it reads.
    A weight belongs to the unit that reads it; one that several read becomes one
    op in each. Backward ops belong to the unit of the op that they serve. Names
    do not enter, nor does the batch size.

    *Ensures* `het.unit` on every op that is of use, `het.units` (all but
    `inputs`, in order) on the function, values flowing forwards along that order
    and gradients backwards. `het.id` and `het.adjoint_of` are gone.

    ```mlir
    %0 = het.embedding %wte, %ids : ...
    %1:3 = het.layer_norm %0, %g, %b : ...
    // becomes
    %0 = het.embedding %wte, %ids {het.unit = "embed"} : ...
    %1:3 = het.layer_norm %0, %g, %b {het.unit = "block0.attn"} : ...
    ```
  }];
  let options = [
    Option<"inference", "inference", "bool", "false",
           "a model whose first result depends on no weight is one unit, `model`">
  ];
}

def PrintUnits : Pass<"het-print-units", "::mlir::func::FuncOp"> {
  let summary = "Prints what each unit costs";
  let description = [{
    *Requires* units (`het-number-units`).

    *Does* print to standard output, as JSON, the table that planning works with:
    for each unit and one sample its parameters, arithmetic and traffic in
    forward and backward, bytes kept between them, and bytes to later units.

    *Ensures* nothing: the function is unchanged.
  }];
}

//===----------------------------------------------------------------------===//
// The fence
//===----------------------------------------------------------------------===//

def VerifyModel : Pass<"het-verify-model", "::mlir::func::FuncOp"> {
  let summary = "The fence after the Model phase: what later phases rely on";
  let description = [{
    *Requires*: nothing. *Does*: reports each violation; notes in each named
    result's `het.batch_dim` which dim counts its samples (-1: none does).

    | after the Model phase | |
    |---|---|
    | ops | het ops only, and the return |
    | types | statically shaped tensors |
    | trained parameters | each has a `het.gradient`, or `het.no_gradient` says why not; once differentiated |
    | samples | no op but the loss lets an element of one sample reach another |

    The last is followed from the inputs' `het.batch_dim` through each forward op:
    transposes and reshapes may move the dim, products may pair it; nothing may
    reduce, cut, index or permute it. Nor may an operand without samples have
    rows of its own along it: the sample's place in the batch would matter.
    Dropout draws by the sample's number, so its operand has samples, in dim 0.
    A `het.reduce` with `het.of_microbatch` is meant to reduce the batch, for a
    term of the loss: what depends on it must not meet samples again.
    With `het.batch_size = 1` nothing can meet and nothing is followed: where a
    file's batch is free, the compiler also looks at the model with two.

    *Ensures*: the table.

    ```mlir
    // error: 'het.reduce' op lets one sample reach another: it reduces dim 0, the batch
    %m = het.reduce mean %x dims [0] keep : (tensor<2x8xf32>) -> tensor<1x8xf32>
    ```
  }];
}

#endif
