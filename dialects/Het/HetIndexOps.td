//===- HetIndexOps.td - order, places and running sums -----*- tablegen -*-===//
//
// What depends on the order of elements, or on places that are data.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_INDEX_OPS
#define AUTOHET_HET_INDEX_OPS

include "Het/HetOpBase.td"

def Het_ArgReduceOp : Het_PureOp<"arg_reduce"> {
  let summary = "The place of the largest or smallest element along a dim";
  let description = [{
    Of equal ones the first, or with `last` the last. `dim` is folded away.

    Constraints:
    - (C1) `kind` is max or min;
    - (C2) `dim` is a dim of the operand, of extent 1 or more.

    Example:
    ```mlir
    %i = het.arg_reduce max %x dim 1 : (tensor<2x3x4xf32>) -> tensor<2x4xi64>
    ```
  }];
  let arguments = (ins Het_ReduceKindAttr:$kind, Het_Tensor:$operand, I64Attr:$dim, UnitAttr:$last);
  let results = (outs Het_IntTensor:$result);
  let assemblyFormat = [{
    $kind $operand `dim` $dim (`last` $last^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Het_CumulativeSumOp : Het_DifferentiableOp<"cumulative_sum"> {
  let summary = "Running sums along a dim";
  let description = [{
    Element i of `dim` is the sum of the operand's elements up to i, with
    `exclusive` without i itself, with `reverse` from i to the end.

    Constraints:
    - (C1) operand and result have one type;
    - (C2) `dim` is a dim of the operand.

    Example:
    ```mlir
    %y = het.cumulative_sum %x dim 1 exclusive : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = [{
    $operand `dim` $dim (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Het_TopKOp : Het_DifferentiableOp<"top_k"> {
  let summary = "The k largest or smallest elements of each row, in order, and their places";
  let description = [{
    Along the last dim; of equal elements the one that comes first comes first.
    Values are differentiable, places are constants to calculus.

    Constraints: (C1) `k` is between 0 and the operand's last extent.

    Example:
    ```mlir
    %v, %i = het.top_k %x {k = 2 : i64, largest} : (tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
    ```
  }];
  let arguments = (ins Het_Tensor:$operand, I64Attr:$k, UnitAttr:$largest);
  let results = (outs Het_Tensor:$values, Het_IntTensor:$indices);
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Het_ScatterKind : I32EnumAttr<"ScatterKind", "what an update does to an element", [
    I32EnumAttrCase<"replace", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>,
    I32EnumAttrCase<"max", 3>, I32EnumAttrCase<"min", 4>]> {
  let cppNamespace = "::autohet::het";
  let genSpecializedAttr = 0;
}
def Het_ScatterKindAttr : EnumAttr<Het_Dialect, Het_ScatterKind, "scatter_kind"> {
  let assemblyFormat = "$value";
}

def Het_ScatterNdOp : Het_DifferentiableOp<"scatter_nd"> {
  let summary = "A tensor with some of its elements or slices updated";
  let description = [{
    The last dim of `indices` holds index tuples into the operand's first dims;
    negative indices count from the end. Updates of one place take effect in
    the order of their tuples. An index outside is a run-time error. What is
    replaced or added to is differentiable.

    Constraints:
    - (C1) tuples are no longer than the operand's rank;
    - (C2) updates are the indices' shape without its last dim, followed by the
      operand's dims that tuples do not index, of the operand's element type.

    Example:
    ```mlir
    %y = het.scatter_nd add %x, %i, %u : (tensor<4x5xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> tensor<4x5xf32>
    ```
  }];
  let arguments = (ins Het_ScatterKindAttr:$kind, Het_Tensor:$operand, Het_IntTensor:$indices, Het_Tensor:$updates);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = "$kind $operand `,` $indices `,` $updates attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif
