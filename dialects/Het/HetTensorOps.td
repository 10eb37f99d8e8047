//===- HetTensorOps.td - products, reductions, indices, shapes -*- tablegen -*-===//
//
// The general tensor ops, from which everything unrecognised is built.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_TENSOR_OPS
#define AUTOHET_HET_TENSOR_OPS

include "Het/HetOpBase.td"

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
// Index
//===----------------------------------------------------------------------===//

def Het_EmbeddingOp : Het_DifferentiableOp<"embedding"> {
  let summary = "Rows of a table";
  let description = [{
    `result[i.., :] = table[ids[i..], :]`. Ids outside the table are a run-time
    error that names the id. `first_row` is the number of the table's first row
    where the table is a box of a larger one with `all_rows`: ids outside the box
    give rows of 0 (a partial sum), which is how a vocabulary is split; those
    outside the larger one are the error.

    Constraints:
    - (C1) table is [V, H]; the result is ids' shape followed by H;
    - (C2) `first_row` and `all_rows` are given together, and the box lies within
      the larger table.

    Example:
    ```mlir
    %y = het.embedding %table, %ids : (tensor<101x48xf32>, tensor<2x12xi64>) -> tensor<2x12x48xf32>
    ```
  }];
  let arguments = (ins Het_FloatTensor:$table, Het_IntTensor:$ids,
    OptionalAttr<I64Attr>:$first_row, OptionalAttr<I64Attr>:$all_rows);
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

def Het_GatherOp : Het_DifferentiableOp<"gather"> {
  let summary = "Slices of a tensor, by index along one dim";
  let description = [{
    As ONNX Gather: the result's shape is the operand's with dim `dim` replaced
    by the indices' shape. Negative indices count from the end. Of float tables
    of rank 2, `het.embedding` is the form that can be divided by rows.

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

def Het_GatherNdOp : Het_DifferentiableOp<"gather_nd"> {
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

#endif
