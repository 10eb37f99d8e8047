//===- DistOps.td - who computes what -----------------------*- tablegen -*-===//
//
// Placement, stages and what crosses devices. Before sharding, a stage holds ops
// on whole tensors; after it, a function a device (`#dist.program`) holds ops on
// that device's own boxes, and values cross only by the ops at the end of this
// file.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_DIST_OPS
#define AUTOHET_DIST_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Het/HetTypes.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::autohet::dist";
  let summary = "Who computes what: programs of devices and what crosses them";
  let useDefaultAttributePrinterParser = 1;
  let description = [{
    Five discardable attributes belong to it: `dist.plan` of the module, the
    plan file's text; `dist.nodes` of the module, the cluster's nodes in order;
    `dist.stage` and `dist.program` of functions; `dist.label` of a transfer of
    gradients or parameters, which says what it carries. A function's result that
    is a box of a model's output says so by `dist.offsets` and
    `dist.global_shape`.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def Dist_ProgramAttr : AttrDef<Dist_Dialect, "Program"> {
  let mnemonic = "program";
  let summary = "Whose function this is";
  let description = [{
    On a function: it is the training step of the device `device`, rank `rank` of
    `world`, in stage `stage` of the `stages` of replica `replica`, which does
    `microbatches` of `microbatch_size` samples starting with sample
    `first_sample` of the `global_batch`.

    Constraints:
    - (C1) rank and stage lie within world and stages, and there are no more
      stages than ranks and at most 2^16 ranks;
    - (C2) counts are positive and below 2^31, and the samples lie within the
      batch.

    Example:
    ```mlir
    #dist.program<device = "n0/1", rank = 1, world = 2, replica = 0, stage = 1, stages = 2,
                  microbatches = 4, microbatch_size = 2, first_sample = 0, global_batch = 8>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$device, "int64_t":$rank, "int64_t":$world,
    "int64_t":$replica, "int64_t":$stage, "int64_t":$stages, "int64_t":$microbatches,
    "int64_t":$microbatch_size, "int64_t":$first_sample, "int64_t":$global_batch);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dist_StageAttr : AttrDef<Dist_Dialect, "Stage"> {
  let mnemonic = "stage";
  let summary = "Which part of which replica a function is";
  let description = [{
    On a function: it is stage `stage` of the `stages` of replica `replica`, on
    whole tensors. `ranks` of the job's `world` share it in proportion to
    `weights`; `devices` are their names. In such a function the peer of a
    transfer is a stage of the same replica.

    Constraints:
    - (C1) ranks and stage lie within world and stages, and there are no more
      stages than ranks and at most 2^16 ranks;
    - (C2) counts are positive and below 2^31, and the samples lie within the
      batch;
    - (C3) there is a positive weight and a name, a string, for each rank;
    - (C4) the weights' sum is below 2^31.

    Example:
    ```mlir
    #dist.stage<replica = 0, stage = 1, stages = 2, world = 3, ranks = [1, 2], weights = [2, 1],
                devices = ["n0/1", "n1/0"], microbatches = 4, microbatch_size = 2, first_sample = 0,
                global_batch = 8>
    ```
  }];
  let parameters = (ins "int64_t":$replica, "int64_t":$stage, "int64_t":$stages, "int64_t":$world,
    "::mlir::DenseI64ArrayAttr":$ranks, "::mlir::DenseI64ArrayAttr":$weights,
    "::mlir::ArrayAttr":$devices, "int64_t":$microbatches, "int64_t":$microbatch_size,
    "int64_t":$first_sample, "int64_t":$global_batch);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Between devices
//===----------------------------------------------------------------------===//

def Dist_SendOp : Dist_Op<"send"> {
  let summary = "Sends a value to another rank";
  let description = [{
    Matched by the `dist.recv` of the peer with the same channel, microbatch by
    microbatch. Several values travel as one message, one behind the other.
    `inline`: part of a collective that computation waits for; otherwise it runs
    beside computation.

    Constraints:
    - (C1) there is a value;
    - (C2) `peer` is below 2^16 and `channel` below 2^20.

    Example:
    ```mlir
    dist.send %x to 1 channel 3 : tensor<2x12x48xf32>
    ```
  }];
  let arguments = (ins Variadic<Het_Tensor>:$values, I64Attr:$peer, I64Attr:$channel, UnitAttr:$inlined);
  let assemblyFormat = "$values `to` $peer `channel` $channel (`inline` $inlined^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of a transfer between stages, which has one.
    ::mlir::Value getValue() { return ::llvm::getSingleElement(getValues()); }
  }];
}

def Dist_RecvOp : Dist_Op<"recv"> {
  let summary = "Receives a value from another rank";
  let description = [{
    Constraints: those of `dist.send`.

    Example:
    ```mlir
    %x = dist.recv from 0 channel 3 : tensor<2x12x48xf32>
    ```
  }];
  let arguments = (ins I64Attr:$peer, I64Attr:$channel, UnitAttr:$inlined);
  let results = (outs Variadic<Het_Tensor>:$values);
  let assemblyFormat = "`from` $peer `channel` $channel (`inline` $inlined^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of a transfer between stages, which has one.
    ::mlir::Value getResult() { return ::llvm::getSingleElement(getValues()); }
    ::mlir::RankedTensorType getType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getResult().getType());
    }
  }];
}

//===----------------------------------------------------------------------===//
// The update
//===----------------------------------------------------------------------===//

def Dist_LocalGradientOp : Dist_Op<"local_gradient"> {
  let summary = "The gradient that this device has summed over its microbatches";
  let description = [{
    Of the box of the parameter `name` that starts at `offsets` of a whole of
    shape `global_shape`: what the `het.gradient` ops of the same box added up,
    or of one that this is a run of rows of, at a multiple of 64 bytes.

    Constraints: (C1) the box lies within the whole.

    Example:
    ```mlir
    %g = dist.local_gradient "wte.weight" at [0, 0] of [101, 48] : tensor<101x48xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$global_shape);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = "$name `at` $offsets `of` $global_shape attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Dist_NormOp : Dist_Op<"norm"> {
  let summary = "Counts an owned slice's gradient in the norm";
  let description = [{
    Example:
    ```mlir
    dist.norm %g : tensor<101x48xf32>
    ```
  }];
  let arguments = (ins Het_Tensor:$gradient);
  let assemblyFormat = "$gradient attr-dict `:` type($gradient)";
}

def Dist_AgreeOp : Dist_Op<"agree"> {
  let summary = "The one agreement of a step, which gates every update";
  let description = [{
    Example:
    ```mlir
    dist.agree
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Dist_UpdateOp : Dist_Op<"update", [AllTypesMatch<["gradient", "result"]>]> {
  let summary = "The owner's optimizer step on its slice; gives the new bytes";
  let description = [{
    Constraints: (C1) the box lies within the whole; (C2) gradient and result have
    one type.

    Example:
    ```mlir
    %p = dist.update "wte.weight" at [0, 0] of [101, 48] by %g : tensor<101x48xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$offsets,
    DenseI64ArrayAttr:$global_shape, Het_Tensor:$gradient);
  let results = (outs Het_Tensor:$result);
  let assemblyFormat = [{
    $name `at` $offsets `of` $global_shape `by` $gradient attr-dict `:` type($gradient)
  }];
  let hasVerifier = 1;
}

def Dist_StoreParameterOp : Dist_Op<"store_parameter"> {
  let summary = "Puts new bytes into the box that this device computes with";
  let description = [{
    `value` is the whole new content of the device's box at `offsets` of the
    parameter: its own update, or the owners' slices put together. With `rows`
    it is that of a run of the box's rows, at a multiple of 64 bytes: one slice,
    which goes where it belongs by itself.

    Constraints: (C1) the box lies within the whole.

    Example:
    ```mlir
    dist.store_parameter "wte.weight" %p at [0, 0] of [101, 48] : tensor<101x48xf32>
    dist.store_parameter "wte.weight" rows %q at [64, 0] of [101, 48] : tensor<37x48xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$rows, Het_Tensor:$value,
    DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$global_shape);
  let assemblyFormat = [{
    $name (`rows` $rows^)? $value `at` $offsets `of` $global_shape attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

#endif
