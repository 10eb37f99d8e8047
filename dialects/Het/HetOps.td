//===- HetOps.td - the operations of the model --------------*- tablegen -*-===//
//
// In order: structure, elementwise, products, normalisation, attention, index,
// shape, losses, gradients. Every op infers its result types; broadcasting is
// NumPy's, written nowhere in the IR.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_OPS
#define AUTOHET_HET_OPS

include "Het/HetBase.td"
include "Het/HetInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Base classes
//===----------------------------------------------------------------------===//

class Het_Op<string mnemonic, list<Trait> traits = []>
    : Op<Het_Dialect, mnemonic, traits # [
        DeclareOpInterfaceMethods<Het_ShardableInterface>,
        DeclareOpInterfaceMethods<Het_CostedInterface>]> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// What an op overrides of ShardableOpInterface, for its extraClassDeclaration.
defvar Het_ChoosesShards = [{
    std::optional<ShardLayouts> chooseShards(::llvm::ArrayRef<Layout> operands,
                                             ::llvm::ArrayRef<Layout> wanted);
}];
defvar Het_BecomesShard = [{
    void becomeShard(::mlir::Operation *whole, const ShardLayouts &layouts,
                     unsigned rank);
}];
defvar Het_BuildsShards = [{
    ::llvm::SmallVector<RankValues>
    buildShards(ShardBuilder &builder, ::llvm::ArrayRef<RankValues> operands,
                const ShardLayouts &layouts);
}];

// Types are inferred by the op's own `inferReturnTypes`, in HetInference.cpp.
class Het_PureOp<string mnemonic, list<Trait> traits = []>
    : Het_Op<mnemonic, traits # [Pure, InferTypeOpAdaptor]>;

class Het_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Het_PureOp<mnemonic, traits # [DeclareOpInterfaceMethods<Het_DifferentiableInterface>]>;

// Elementwise: inference, sharding and cost are shared, see HetElementwise.cpp.
class Het_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Het_PureOp<mnemonic, traits # [DeclareOpInterfaceMethods<Het_ElementwiseInterface>]> {
  let hasFolder = 1;
}
class Het_DifferentiableElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Het_ElementwiseOp<mnemonic, traits # [DeclareOpInterfaceMethods<Het_DifferentiableInterface>]>;

class Het_UnaryOp<string mnemonic, string formula>
    : Het_DifferentiableElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula;
  let description = "`result[i] = " # formula # "`, of the operand's type.\n\n"
    # "Constraints: (C1) operand and result have one type.\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %x : (tensor<2x3xf32>) -> tensor<2x3xf32>\n```";
  let arguments = (ins Het_Tensor:$operand);
  let results = (outs Het_Tensor:$result);
}

class Het_BinaryOp<string mnemonic, string formula>
    : Het_DifferentiableElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula # ", with broadcasting";
  let description = "`result[i] = " # formula # "`, where lhs and rhs are broadcast against each other.\n\n"
    # "Constraints:\n- (C1) both have one element type;\n- (C2) their shapes broadcast (NumPy's rule).\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>\n```";
  let arguments = (ins Het_Tensor:$lhs, Het_Tensor:$rhs);
  let results = (outs Het_Tensor:$result);
}

class Het_LogicalOp<string mnemonic, string formula>
    : Het_ElementwiseOp<mnemonic> {
  let summary = "Elementwise " # formula # " of booleans, with broadcasting";
  let description = "`result[i] = " # formula # "` on i1.\n\n"
    # "Constraints: (C1) the shapes broadcast.\n\n"
    # "Example:\n```mlir\n%y = het." # mnemonic # " %a, %b : (tensor<2x1xi1>, tensor<3xi1>) -> tensor<2x3xi1>\n```";
  let arguments = (ins Het_BoolTensor:$lhs, Het_BoolTensor:$rhs);
  let results = (outs Het_BoolTensor:$result);
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Het_ConstantOp : Het_Op<"constant", [Pure, ConstantLike, InferTypeOpAdaptor]> {
  let summary = "A small tensor written in the program";
  let description = [{
    For shapes, indices and scalars; what comes from a model file as weights is
    a `het.parameter`.

    Constraints: (C1) the result has the value's type.

    Example:
    ```mlir
    %c = het.constant dense<[1, 2]> : tensor<2xi64>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Het_ParameterOp : Het_Op<"parameter", [Pure]> {
  let summary = "A use of a named, external tensor";
  let description = [{
    The tensor `name`, or the box of it that starts at `offsets` and has the
    result's shape. Each op is one *use*: two uses of a name are a tied
    parameter or two views of a fused one, and their gradients are summed. The
    shape is PyTorch's, whatever the file's exporter folded.

    `trained` is false for tables and masks (they have no gradient).

    Constraints:
    - (C1) `global_shape` and `offsets` are given together, with the result's rank;
    - (C2) the box lies within `global_shape`;
    - (C3) the result is statically shaped.

    Example:
    ```mlir
    %w = het.parameter "h.0.attn.c_attn.weight" offsets [0, 48] of [48, 144] : tensor<48x48xf32>
    %m = het.parameter "mask" untrained : tensor<1x1x12x12xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$untrained,
    OptionalAttr<DenseI64ArrayAttr>:$offsets,
    OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = [{
    $name (`untrained` $untrained^)? (`offsets` $offsets^ `of` $global_shape)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type,
    "::llvm::StringRef":$name, CArg<"bool", "true">:$trained)>];
  let extraClassDeclaration = [{
    bool isTrained() { return !getUntrained(); }
    /// The whole tensor's shape.
    ::llvm::ArrayRef<int64_t> getWholeShape();
  }];
}

def Het_WeightSourceOp : Op<Het_Dialect, "weight_source", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "Where the initial bytes of a parameter lie";
  let description = [{
    One a parameter, at module level, so that the text of a program is complete
    without its weights. `stored` is the type in the file: little-endian,
    row-major, from byte `offset` on. `transposed`: the exporter folded a
    transpose into the constant, and the parameter has PyTorch's shape, the
    reverse. `shared`: several uses are meant to be one parameter. `untrained`
    and `reason` are set by `het-classify-parameters`.

    Constraints:
    - (C1) what is transposed is a matrix;
    - (C2) `offset` is not negative.

    Example:
    ```mlir
    het.weight_source "lm_head.weight" in "gpt2.onnx" at 193732 transposed : tensor<48x101xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$file, I64Attr:$offset,
    UnitAttr:$transposed, UnitAttr:$shared, UnitAttr:$untrained,
    OptionalAttr<StrAttr>:$reason, TypeAttrOf<AnyStaticShapeTensor>:$stored);
  let assemblyFormat = [{
    $name `in` $file `at` $offset (`transposed` $transposed^)? (`shared` $shared^)?
    (`untrained` $untrained^)? (`because` $reason^)? attr-dict `:` $stored
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getStoredType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getStored());
    }
    /// The parameter's shape: PyTorch's.
    ::llvm::SmallVector<int64_t> getShape();
  }];
}

def Het_GradientOp : Het_Op<"gradient"> {
  let summary = "The gradient by one use of a parameter";
  let description = [{
    Adds `value` to the gradient of the parameter `name` (or of the box that
    starts at `offsets`). Ends every chain that `differentiate` builds.

    Constraints: those of `het.parameter`, on the operand's type.

    Example:
    ```mlir
    het.gradient "wte.weight" %g : tensor<101x48xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Het_FloatTensor:$value,
    OptionalAttr<DenseI64ArrayAttr>:$offsets,
    OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let assemblyFormat = [{
    $name $value (`offsets` $offsets^ `of` $global_shape)? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getWholeShape();
  }];
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def Het_NegOp : Het_UnaryOp<"neg", "-x">;
def Het_AbsOp : Het_UnaryOp<"abs", "|x|">;
def Het_ExpOp : Het_UnaryOp<"exp", "exp(x)">;
def Het_LogOp : Het_UnaryOp<"log", "ln(x)">;
def Het_SqrtOp : Het_UnaryOp<"sqrt", "sqrt(x)">;
def Het_RsqrtOp : Het_UnaryOp<"rsqrt", "1 / sqrt(x)">;
def Het_ReciprocalOp : Het_UnaryOp<"reciprocal", "1 / x">;
def Het_TanhOp : Het_UnaryOp<"tanh", "tanh(x)">;
def Het_ErfOp : Het_UnaryOp<"erf", "erf(x)">;
def Het_SigmoidOp : Het_UnaryOp<"sigmoid", "1 / (1 + exp(-x))">;
def Het_SiluOp : Het_UnaryOp<"silu", "x / (1 + exp(-x))">;
def Het_ReluOp : Het_UnaryOp<"relu", "max(x, 0)">;
def Het_SinOp : Het_UnaryOp<"sin", "sin(x)">;
def Het_CosOp : Het_UnaryOp<"cos", "cos(x)">;

def Het_AddOp : Het_BinaryOp<"add", "lhs + rhs">;
def Het_SubOp : Het_BinaryOp<"sub", "lhs - rhs">;
def Het_MulOp : Het_BinaryOp<"mul", "lhs * rhs">;
def Het_DivOp : Het_BinaryOp<"div", "lhs / rhs (integers: towards zero)">;
def Het_ModOp : Het_BinaryOp<"mod", "lhs mod rhs, with the sign of rhs">;
def Het_PowOp : Het_BinaryOp<"pow", "lhs ^ rhs">;
def Het_MaxOp : Het_BinaryOp<"max", "max(lhs, rhs), NaN if either is">;
def Het_MinOp : Het_BinaryOp<"min", "min(lhs, rhs), NaN if either is">;

def Het_AndOp : Het_LogicalOp<"and", "lhs and rhs">;
def Het_OrOp : Het_LogicalOp<"or", "lhs or rhs">;
def Het_XorOp : Het_LogicalOp<"xor", "lhs xor rhs">;

def Het_NotOp : Het_ElementwiseOp<"not"> {
  let summary = "Elementwise negation of booleans";
  let description = [{
    Constraints: (C1) operand and result have one type.

    Example:
    ```mlir
    %y = het.not %x : (tensor<2x3xi1>) -> tensor<2x3xi1>
    ```
  }];
  let arguments = (ins Het_BoolTensor:$operand);
  let results = (outs Het_BoolTensor:$result);
}

def Het_IsNanOp : Het_ElementwiseOp<"is_nan"> {
  let summary = "Whether each element is NaN";
  let description = [{
    Constraints: (C1) the result is i1 of the operand's shape.

    Example:
    ```mlir
    %y = het.is_nan %x : (tensor<2x3xf32>) -> tensor<2x3xi1>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand);
  let results = (outs Het_BoolTensor:$result);
}

def Het_CompareOp : Het_ElementwiseOp<"compare"> {
  let summary = "Elementwise comparison, with broadcasting";
  let description = [{
    Signed for integers, ordered for floats (`ne` is true for NaN).

    Constraints:
    - (C1) both have one element type;
    - (C2) their shapes broadcast.

    Example:
    ```mlir
    %y = het.compare le %a, %b : (tensor<1x4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
    ```
  }];
  let arguments = (ins Het_ComparePredicateAttr:$predicate, Het_Tensor:$lhs, Het_Tensor:$rhs);
  let results = (outs Het_BoolTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
}

def Het_SelectOp : Het_DifferentiableElementwiseOp<"select"> {
  let summary = "`condition ? lhs : rhs`, with broadcasting of all three";
  let description = [{
    Constraints:
    - (C1) lhs and rhs have one element type;
    - (C2) the three shapes broadcast.

    Example:
    ```mlir
    %y = het.select %c, %a, %b : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Het_BoolTensor:$condition, Het_Tensor:$lhs, Het_Tensor:$rhs);
  let results = (outs Het_Tensor:$result);
}

def Het_CastOp : Het_DifferentiableElementwiseOp<"cast"> {
  let summary = "Converts each element to another type";
  let description = [{
    Float to integer truncates towards zero; anything to i1 is `x != 0`; i1 is 0
    or 1 otherwise. Differentiable between floats only.

    Constraints: (C1) the result has the operand's shape and element type `to`.

    Example:
    ```mlir
    %y = het.cast %x {to = f32} : (tensor<2xi64>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, TypeAttr:$to);
  let results = (outs Het_Tensor:$result);
}

def Het_GeluOp : Het_DifferentiableElementwiseOp<"gelu"> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `erf`: `x/2 (1 + erf(x / sqrt 2))`; `tanh`: `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.

    Constraints: (C1) operand and result have one type.

    Example:
    ```mlir
    %y = het.gelu tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Het_GeluFormAttr:$form, Het_FloatTensor:$operand);
  let results = (outs Het_FloatTensor:$result);
  let assemblyFormat = "$form $operand attr-dict `:` functional-type(operands, results)";
}

def Het_GeluBackwardOp : Het_ElementwiseOp<"gelu_backward"> {
  let summary = "`gradient * gelu'(operand)`";
  let description = [{
    Constraints: (C1) operand, gradient and result have one type.

    Example:
    ```mlir
    %dx = het.gelu_backward erf %x, %dy : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Het_GeluFormAttr:$form, Het_FloatTensor:$operand, Het_FloatTensor:$gradient);
  let results = (outs Het_FloatTensor:$result);
  let assemblyFormat = "$form $operand `,` $gradient attr-dict `:` functional-type(operands, results)";
}

def Het_SiluBackwardOp : Het_ElementwiseOp<"silu_backward"> {
  let summary = "`gradient * silu'(operand)`";
  let description = [{
    Constraints: (C1) operand, gradient and result have one type.

    Example:
    ```mlir
    %dx = het.silu_backward %x, %dy : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, Het_FloatTensor:$gradient);
  let results = (outs Het_FloatTensor:$result);
}

def Het_DropoutOp : Het_DifferentiableOp<"dropout"> {
  let summary = "Zeroes elements with probability p, scales the others by 1/(1-p)";
  let description = [{
    The mask is Philox by (seed, step, `op_id`, global element index): the same
    on every plan. The adjoint is the op itself, with the same id, on the
    gradient. `op_id` is fixed before planning and unique in the model. Where
    the operand is a box of the whole tensor, `offsets` and `global_shape` say
    which (the batch dim's offset is known only at run time and added there).

    Constraints:
    - (C1) 0 <= p < 1;
    - (C2) operand and result have one type.

    Example:
    ```mlir
    %y = het.dropout %x {p = 1.0e-1 : f64, op_id = 7 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$operand, F64Attr:$p, I64Attr:$op_id,
    OptionalAttr<DenseI64ArrayAttr>:$offsets,
    OptionalAttr<DenseI64ArrayAttr>:$global_shape);
  let results = (outs Het_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

def Het_MatmulOp : Het_DifferentiableOp<"matmul"> {
  let summary = "Sum of products over given dims";
  let description = [{
    The general product: batch dims are paired and kept, contracted dims are
    paired and summed over. The result's dims are the batch dims, then the
    others of lhs, then the others of rhs, each in its operand's order. Every
    matrix product, its two gradients and every transposed form are this op.

    Constraints:
    - (C1) both have one element type;
    - (C2) paired dims have equal extents and no dim is listed twice;
    - (C3) batch lists have one length, contract lists have one length of at least 1.

    Example:
    ```mlir
    // x [B, S, K] times a weight in PyTorch's layout [N, K]
    %y = het.matmul %x, %w contract [2] [1] : (tensor<2x5x8xf32>, tensor<9x8xf32>) -> tensor<2x5x9xf32>
    // scores of queries and keys
    %s = het.matmul %q, %k batch [0, 1] [0, 1] contract [3] [3]
       : (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) -> tensor<2x4x5x5xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$lhs, Het_FloatTensor:$rhs,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lhs_batch,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rhs_batch,
    DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Het_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`batch` $lhs_batch^ $rhs_batch)? `contract` $lhs_contract $rhs_contract
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Het_ReduceOp : Het_DifferentiableOp<"reduce"> {
  let summary = "Folds dims away by sum, mean, max, min or product";
  let description = [{
    Constraints:
    - (C1) `dims` are distinct dims of the operand, in rising order.

    Example:
    ```mlir
    %m = het.reduce mean %x dims [2] : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
    %k = het.reduce sum %x dims [0, 1] keep : (tensor<2x3x4xf32>) -> tensor<1x1x4xf32>
    ```
  }];
  let arguments = (ins Het_ReduceKindAttr:$kind, Het_Tensor:$operand,
    DenseI64ArrayAttr:$dims, UnitAttr:$keep);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = [{
    $kind $operand `dims` $dims (`keep` $keep^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

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

    Constraints: as `het.attention`, (C4) gradient has the type of `result`.

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
// Index
//===----------------------------------------------------------------------===//

def Het_EmbeddingOp : Het_DifferentiableOp<"embedding"> {
  let summary = "Rows of a table";
  let description = [{
    `result[i.., :] = table[ids[i..], :]`. Ids outside the table are a run-time
    error that names the id. `first_row` is the number of the table's first row
    where the table is a box of a larger one: ids outside the box give rows of 0
    (a partial sum), which is how a vocabulary is split.

    Constraints:
    - (C1) table is [V, H]; the result is ids' shape followed by H.

    Example:
    ```mlir
    %y = het.embedding %table, %ids : (tensor<101x48xf32>, tensor<2x12xi64>) -> tensor<2x12x48xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$table, Het_IntTensor:$ids, OptionalAttr<I64Attr>:$first_row);
  let results = (outs Het_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

def Het_EmbeddingBackwardOp : Het_PureOp<"embedding_backward"> {
  let summary = "Sums gradient rows into the rows of the table they came from";
  let description = [{
    `result[r, :] = sum over i with ids[i] = first_row + r of gradient[i, :]`.

    Constraints:
    - (C1) gradient is ids' shape followed by H; the result is [rows, H].

    Example:
    ```mlir
    %dt = het.embedding_backward %ids, %dy {rows = 101 : i64} : (tensor<2x12xi64>, tensor<2x12x48xf32>) -> tensor<101x48xf32>
    ```
  }];
  let arguments = (ins Het_IntTensor:$ids, Het_FloatTensor:$gradient, I64Attr:$rows, OptionalAttr<I64Attr>:$first_row);
  let results = (outs Het_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

def Het_GatherOp : Het_PureOp<"gather"> {
  let summary = "Slices of a tensor, by index along one dim";
  let description = [{
    As ONNX Gather: the result's shape is the operand's with dim `dim` replaced
    by the indices' shape. Negative indices count from the end. Of float tables
    that are trained, `het.embedding` is the differentiable form.

    Constraints: (C1) `dim` is a dim of the operand.

    Example:
    ```mlir
    %y = het.gather %x, %i {dim = 0 : i64} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, Het_IntTensor:$indices, I64Attr:$dim);
  let results = (outs Het_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Het_GatherNdOp : Het_PureOp<"gather_nd"> {
  let summary = "Elements or slices of a tensor, by index tuples";
  let description = [{
    As ONNX GatherND: the last dim of `indices` holds index tuples into the dims
    that follow the `batch_dims` leading ones.

    Constraints: (C1) tuples are no longer than the operand's remaining rank.

    Example:
    ```mlir
    %y = het.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<2x12xi1>, tensor<2x1x12x12x2xi64>) -> tensor<2x1x12x12xi1>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, Het_IntTensor:$indices, I64Attr:$batch_dims);
  let results = (outs Het_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Het_IotaOp : Het_PureOp<"iota"> {
  let summary = "`start + index * step` along the only dim";
  let description = [{
    Constraints: (C1) `count` is not negative.

    Example:
    ```mlir
    %i = het.iota {start = 0 : i64, step = 1 : i64, count = 12 : i64, element = i64} : () -> tensor<12xi64>
    ```
  }];
  let arguments = (ins I64Attr:$start, I64Attr:$step, I64Attr:$count, TypeAttr:$element);
  let results = (outs Het_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Het_ReshapeOp : Het_DifferentiableOp<"reshape"> {
  let summary = "The same elements under another shape";
  let description = [{
    Constraints: (C1) `shape` has as many elements as the operand.

    Example:
    ```mlir
    %y = het.reshape %x to [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, DenseI64ArrayAttr:$shape);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = "$operand `to` $shape attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

def Het_TransposeOp : Het_DifferentiableOp<"transpose"> {
  let summary = "Dims in another order";
  let description = [{
    Dim i of the result is dim `permutation[i]` of the operand.

    Constraints: (C1) `permutation` is one of the operand's dims.

    Example:
    ```mlir
    %y = het.transpose %x by [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = "$operand `by` $permutation attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Het_BroadcastOp : Het_DifferentiableOp<"broadcast"> {
  let summary = "Repeats a tensor up to a shape";
  let description = [{
    Constraints: (C1) the operand broadcasts to `shape` (NumPy's rule).

    Example:
    ```mlir
    %y = het.broadcast %x to [2, 3] : (tensor<1x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, DenseI64ArrayAttr:$shape);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = "$operand `to` $shape attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

def Het_SliceOp : Het_DifferentiableOp<"slice"> {
  let summary = "A regular part of a tensor";
  let description = [{
    Element i of dim d of the result is element `offsets[d] + i * strides[d]`.
    Strides may be negative.

    Constraints: (C1) the three lists have the operand's rank and the part lies within it.

    Example:
    ```mlir
    %y = het.slice %x offsets [0, 2] sizes [2, 2] strides [1, 1] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, DenseI64ArrayAttr:$offsets,
    DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$strides);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = [{
    $operand `offsets` $offsets `sizes` $sizes `strides` $strides attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

def Het_SliceBackwardOp : Het_PureOp<"slice_backward"> {
  let summary = "Puts a slice's gradient into zeros of the whole shape";
  let description = [{
    The adjoint of `het.slice` with the same offsets and strides.

    Constraints: (C1) the part lies within `shape`.

    Example:
    ```mlir
    %dx = het.slice_backward %dy offsets [0, 2] strides [1, 1] shape [2, 4] : (tensor<2x2xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$gradient, DenseI64ArrayAttr:$offsets,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$shape);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = [{
    $gradient `offsets` $offsets `strides` $strides `shape` $shape attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Het_BecomesShard;
}

def Het_ConcatOp : Het_DifferentiableOp<"concat"> {
  let summary = "Tensors one after the other along a dim";
  let description = [{
    Constraints: (C1) at least one operand; all agree but for dim `dim`.

    Example:
    ```mlir
    %y = het.concat %a, %b {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Variadic<Het_Tensor>:$parts, I64Attr:$dim);
  let results = (outs Het_Tensor:$result);
  let hasVerifier = 1;
  let hasFolder = 1;
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
