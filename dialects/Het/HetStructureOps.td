//===- HetStructureOps.td - constants, parameters, gradients -*- tablegen -*-===//
//
// What a program of het ops begins and ends with.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_HET_STRUCTURE_OPS
#define AUTOHET_HET_STRUCTURE_OPS

include "Het/HetOpBase.td"

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
    and `reason` are set by `het-classify-parameters`. `aliases` are the other
    names that a tied parameter has in PyTorch: files that are written for
    people hold it under each.

    Constraints:
    - (C1) what is transposed is a matrix;
    - (C2) `offset` is not negative;
    - (C3) neither `name` nor an alias is there twice.

    Example:
    ```mlir
    het.weight_source "lm_head.weight" in "gpt2.onnx" at 193732 transposed aliases ["wte.weight"] : tensor<48x101xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$file, I64Attr:$offset,
    UnitAttr:$transposed, UnitAttr:$shared, UnitAttr:$untrained,
    OptionalAttr<StrAttr>:$reason, OptionalAttr<StrArrayAttr>:$aliases,
    TypeAttrOf<Het_Tensor>:$stored);
  let assemblyFormat = [{
    $name `in` $file `at` $offset (`transposed` $transposed^)? (`shared` $shared^)?
    (`untrained` $untrained^)? (`because` $reason^)? (`aliases` $aliases^)?
    attr-dict `:` $stored
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getStoredType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getStored());
    }
    /// The parameter's shape: PyTorch's.
    ::llvm::SmallVector<int64_t> getShape();
    /// All of them, `name` first.
    ::llvm::SmallVector<::llvm::StringRef> getAllNames();
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

#endif
