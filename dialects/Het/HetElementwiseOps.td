//===- HetElementwiseOps.td - one element at a time --------*- tablegen -*-===//
//
// Broadcasting is NumPy's, written nowhere in the IR.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_ELEMENTWISE_OPS
#define AUTOHET_HET_ELEMENTWISE_OPS

include "Het/HetOpBase.td"

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

def Het_FloorOp : Het_RoundingOp<"floor", "the largest whole number not above x">;
def Het_CeilOp : Het_RoundingOp<"ceil", "the smallest whole number not below x">;
def Het_RoundOp : Het_RoundingOp<"round", "the nearest whole number, of two the even one">;

def Het_RemOp : Het_IntegerLikeOp<"rem", "the remainder of lhs / rhs, with the sign of lhs">;
def Het_ShiftLeftOp : Het_IntegerLikeOp<"shift_left", "lhs * 2^rhs, for integers">;
def Het_ShiftRightOp : Het_IntegerLikeOp<"shift_right", "lhs / 2^rhs rounded down, for integers">;

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

#endif
