//===- HetLayerOps.td - what a transformer is made of ------*- tablegen -*-===//
//
// The ops that are recognised, kept whole, and have kernels of their own.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_LAYER_OPS
#define AUTOHET_HET_LAYER_OPS

include "Het/HetOpBase.td"

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

def Het_SoftmaxOp : Het_DifferentiableOp<"softmax"> {
  let summary = "Softmax over the last dim";
  let description = [{
    `exp(x - max x) / sum exp(x - max x)`; a row of -inf alone gives NaN, or 0
    where `zero_empty_rows` is set (PyTorch's attention with boolean masks).

    Constraints: (C1) rank at least 1; operand and result have one type.

    Example:
    ```mlir
    %y = het.softmax %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, UnitAttr:$zero_empty_rows);
  let results = (outs Het_FloatTensor:$result);
}

def Het_SoftmaxBackwardOp : Het_PureOp<"softmax_backward"> {
  let summary = "`result * (gradient - sum(gradient * result))` over the last dim";
  let description = [{
    Constraints: (C1) the three have one type.

    Example:
    ```mlir
    %dx = het.softmax_backward %y, %dy : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$result, Het_FloatTensor:$gradient);
  let results = (outs Het_FloatTensor:$operand_gradient);
}

def Het_LayerNormOp : Het_DifferentiableOp<"layer_norm"> {
  let summary = "Layer normalisation over the last dim";
  let description = [{
    `(x - mean) * rstd * scale + bias`, `rstd = 1 / sqrt(var + epsilon)` with the
    biased variance. Also returns mean and rstd, one a row, for the adjoint.

    Constraints:
    - (C1) scale and bias are `[H]`, H the operand's last extent;
    - (C2) mean and rstd have the operand's shape without its last dim.

    Example:
    ```mlir
    %y, %mean, %rstd = het.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64}
      : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, Het_FloatTensor:$scale, Het_FloatTensor:$bias, F64Attr:$epsilon);
  let results = (outs Het_FloatTensor:$result, Het_FloatTensor:$mean, Het_FloatTensor:$rstd);
  let hasVerifier = 1;
}

def Het_LayerNormBackwardOp : Het_PureOp<"layer_norm_backward"> {
  let summary = "Gradients of layer_norm";
  let description = [{
    From operand, scale, mean, rstd and the result's gradient: the gradients by
    operand, scale and bias.

    Constraints: as `het.layer_norm`, (C3) gradient has the operand's type.

    Example:
    ```mlir
    %dx, %dg, %db = het.layer_norm_backward %x, %g, %mean, %rstd, %dy
      : (tensor<2x8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, Het_FloatTensor:$scale,
    Het_FloatTensor:$mean, Het_FloatTensor:$rstd, Het_FloatTensor:$gradient);
  let results = (outs Het_FloatTensor:$operand_gradient, Het_FloatTensor:$scale_gradient,
    Het_FloatTensor:$bias_gradient);
  let hasVerifier = 1;
}

def Het_RmsNormOp : Het_DifferentiableOp<"rms_norm"> {
  let summary = "Root-mean-square normalisation over the last dim";
  let description = [{
    `x * rstd * scale`, `rstd = 1 / sqrt(mean(x^2) + epsilon)`; also returns rstd.

    Constraints:
    - (C1) scale is `[H]`, H the operand's last extent;
    - (C2) rstd has the operand's shape without its last dim.

    Example:
    ```mlir
    %y, %rstd = het.rms_norm %x, %g {epsilon = 1.0e-6 : f64}
      : (tensor<2x8xf32>, tensor<8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, Het_FloatTensor:$scale, F64Attr:$epsilon);
  let results = (outs Het_FloatTensor:$result, Het_FloatTensor:$rstd);
  let hasVerifier = 1;
}

def Het_RmsNormBackwardOp : Het_PureOp<"rms_norm_backward"> {
  let summary = "Gradients of rms_norm";
  let description = [{
    Constraints: as `het.rms_norm`, (C3) gradient has the operand's type.

    Example:
    ```mlir
    %dx, %dg = het.rms_norm_backward %x, %g, %rstd, %dy
      : (tensor<2x8xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, Het_FloatTensor:$scale,
    Het_FloatTensor:$rstd, Het_FloatTensor:$gradient);
  let results = (outs Het_FloatTensor:$operand_gradient, Het_FloatTensor:$scale_gradient);
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Het_AttentionOp : Het_DifferentiableOp<"attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `softmax(scale * query · key^T + mask) · value`, head by head. Query head h
    reads key/value head `kv_heads[h]` (an explicit map, so that any set of
    query heads can live on one device). `mask` is optional and broadcasts
    against [B, heads, S, T]: f32 is added, i1 keeps where true. `causal` keeps
    key t for query s where `t <= s + T - S`. `zero_empty_rows`: a query that may
    see nothing gives 0, not NaN. Dropout acts on the probabilities, as
    `het.dropout` with `dropout_op_id`.

    `log_sum_exp` is, for each query, the logarithm of the sum of exponentials
    of its scores; the adjoint recomputes probabilities from it.

    Constraints:
    - (C1) query is [B, H, S, D], key [B, K, T, D], value [B, K, T, Dv];
    - (C2) `kv_heads` has H entries, each below K;
    - (C3) mask, where given, broadcasts to [B, H, S, T] and is f32 or i1.

    Example:
    ```mlir
    %o, %l = het.attention %q, %k, %v {scale = 0.25 : f64, causal, kv_heads = array<i64: 0, 0>}
      : (tensor<2x2x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>) -> (tensor<2x2x5x16xf32>, tensor<2x2x5xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$query, Het_FloatTensor:$key, Het_FloatTensor:$value,
    Optional<Het_Tensor>:$mask, F64Attr:$scale, DenseI64ArrayAttr:$kv_heads,
    UnitAttr:$causal, UnitAttr:$zero_empty_rows,
    OptionalAttr<F64Attr>:$dropout_p, OptionalAttr<I64Attr>:$dropout_op_id,
    OptionalAttr<DenseI64ArrayAttr>:$offsets,
    OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Het_FloatTensor:$result, Het_FloatTensor:$log_sum_exp);
  let hasVerifier = 1;
  let extraClassDeclaration = !strconcat(Het_ChoosesShards, Het_BecomesShard);
}

def Het_AttentionBackwardOp : Het_PureOp<"attention_backward"> {
  let summary = "Gradients of attention by query, key and value";
  let description = [{
    Recomputes the probabilities row by row from `log_sum_exp`.

    Constraints: as `het.attention`,
    - (C4) gradient has the type of `result`;
    - (C5) result and log_sum_exp are of the shapes that `het.attention` gives.

    Example:
    ```mlir
    %dq, %dk, %dv = het.attention_backward %q, %k, %v, %o, %l, %do {scale = 0.25 : f64, causal, kv_heads = array<i64: 0>}
      : (tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5xf32>, tensor<2x1x5x16xf32>)
        -> (tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>, tensor<2x1x5x16xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$query, Het_FloatTensor:$key, Het_FloatTensor:$value,
    Het_FloatTensor:$result, Het_FloatTensor:$log_sum_exp, Het_FloatTensor:$gradient,
    Optional<Het_Tensor>:$mask, F64Attr:$scale, DenseI64ArrayAttr:$kv_heads,
    UnitAttr:$causal, UnitAttr:$zero_empty_rows,
    OptionalAttr<F64Attr>:$dropout_p, OptionalAttr<I64Attr>:$dropout_op_id,
    OptionalAttr<DenseI64ArrayAttr>:$offsets,
    OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Het_FloatTensor:$query_gradient, Het_FloatTensor:$key_gradient,
    Het_FloatTensor:$value_gradient);
  let hasVerifier = 1;
  let extraClassDeclaration = !strconcat(Het_ChoosesShards, Het_BecomesShard);
}

def Het_RotaryOp : Het_DifferentiableOp<"rotary"> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates pairs of the last dim's first R elements (R = twice the extent of
    cos and sin): halves `(x[i], x[i + R/2])`, or neighbours `(x[2i], x[2i+1])`
    where `interleaved`. `inverse` rotates backwards: it is the adjoint.

    `y1 = x1 cos - x2 sin`, `y2 = x2 cos + x1 sin`.

    Constraints:
    - (C1) operand is [B, H, S, D]; cos and sin have one type;
    - (C2) cos and sin are [.., S, R/2], R <= D even, and broadcast to [B, H, S, R/2].

    Example:
    ```mlir
    %y = het.rotary %x, %cos, %sin : (tensor<2x4x5x8xf32>, tensor<1x1x5x4xf32>, tensor<1x1x5x4xf32>) -> tensor<2x4x5x8xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, Het_FloatTensor:$cos, Het_FloatTensor:$sin,
    UnitAttr:$interleaved, UnitAttr:$inverse);
  let results = (outs Het_FloatTensor:$result);
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

def Het_CrossEntropyOp : Het_DifferentiableOp<"cross_entropy"> {
  let summary = "Sum of the cross entropy of logits against labels";
  let description = [{
    `loss_sum` is the sum, over labels other than `ignore_index`, of
    `log_sum_exp - logits[label]`. It is a sum: the mean over the *global* batch
    is taken with a count that is known only at run time. `log_sum_exp` has one
    element a label.

    Constraints: (C1) labels have the logits' shape without its last dim.

    Example:
    ```mlir
    %loss, %lse = het.cross_entropy %logits, %labels {ignore_index = -100 : i64}
      : (tensor<2x12x101xf32>, tensor<2x12xi64>) -> (tensor<f32>, tensor<2x12xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$logits, Het_IntTensor:$labels, I64Attr:$ignore_index);
  let results = (outs Het_FloatTensor:$loss_sum, Het_FloatTensor:$log_sum_exp);
  let hasVerifier = 1;
  let extraClassDeclaration = !strconcat(Het_ChoosesShards, Het_BuildsShards);
}

def Het_CrossEntropyPartOp : Het_PureOp<"cross_entropy_part"> {
  let summary = "What a box of the classes tells a cross entropy over all of them";
  let description = [{
    Label by label: `log_sum_exp` of the logits of the box, whose first class is
    number `first_class`; `label_logit`, the logit of the label where the box has
    its class, else 0. What ranks with different classes exchange, instead of
    logits, to find the loss. A label that is neither `ignore_index` nor one of
    all `classes` is an error at run time, on every rank.

    Constraints:
    - (C1) labels have the logits' shape without its last dim;
    - (C2) the box lies within the classes.

    Example:
    ```mlir
    %lse, %picked = het.cross_entropy_part %logits, %labels {classes = 101 : i64, first_class = 50 : i64, ignore_index = -100 : i64}
      : (tensor<2x12x51xf32>, tensor<2x12xi64>) -> (tensor<2x12xf32>, tensor<2x12xf32>)
    ```
  }];
  let arguments = (ins Het_FloatTensor:$logits, Het_IntTensor:$labels, I64Attr:$first_class,
    I64Attr:$classes, I64Attr:$ignore_index);
  let results = (outs Het_FloatTensor:$log_sum_exp, Het_FloatTensor:$label_logit);
  let hasVerifier = 1;
}

def Het_CrossEntropyBackwardOp : Het_PureOp<"cross_entropy_backward"> {
  let summary = "Gradient of cross_entropy by the logits";
  let description = [{
    `gradient * (exp(logits - log_sum_exp) - [class = label])`, 0 in ignored rows.
    `first_class` is the number of the logits' first class where they are a box
    of all classes.

    Constraints: as `het.cross_entropy`, (C2) gradient is a scalar.

    Example:
    ```mlir
    %dx = het.cross_entropy_backward %logits, %labels, %lse, %g {ignore_index = -100 : i64}
      : (tensor<2x12x101xf32>, tensor<2x12xi64>, tensor<2x12xf32>, tensor<f32>) -> tensor<2x12x101xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$logits, Het_IntTensor:$labels, Het_FloatTensor:$log_sum_exp,
    Het_ScalarTensor:$gradient, I64Attr:$ignore_index, OptionalAttr<I64Attr>:$first_class);
  let results = (outs Het_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

#endif
