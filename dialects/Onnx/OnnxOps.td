//===- OnnxOps.td - a model file, as it was written ----------*- tablegen -*-===//
//
// What the reader produces and `onnx-to-het` consumes. Nothing is interpreted
// here: one op stands for every node, so a new operator needs no entry.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_ONNX_OPS
#define AUTOHET_ONNX_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::autohet::onnx";
  let summary = "A model file, as it was written";
  let description = [{
    A graph is a `func.func`. Its arguments carry `onnx.name` and, where the
    file has symbolic dims, `onnx.dims` (an array with an integer or a symbol's
    name for each dim); its results carry `onnx.name` and, where the file says
    it, `onnx.declared`, their type. A node's name is the location of its
    `onnx.node`. The types of values are not known yet, except
    for the graph's inputs and its constants.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
}

class Onnx_Op<string mnemonic, list<Trait> traits = []> : Op<Onnx_Dialect, mnemonic, traits>;

def Onnx_ValueType : TypeDef<Onnx_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "A tensor whose type only conversion will find";
}

// A result of a node, or something that is already typed.
def Onnx_AnyValue : AnyTypeOf<[Onnx_ValueType, AnyRankedTensor, NoneType]>;

def Onnx_NoneOp : Onnx_Op<"none", [Pure]> {
  let summary = "An optional operand that its node leaves out";
  let description = [{
    Example:
    ```mlir
    %0 = onnx.none : none
    ```
  }];
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Onnx_InitializerOp : Onnx_Op<"initializer", [Pure]> {
  let summary = "A named constant of the file";
  let description = [{
    Either the value itself (integers, booleans and single numbers: what shapes
    are computed from), or where its bytes lie: little-endian, row-major, from
    `offset` on. Bytes inside the model file are addressed the same way.

    Constraints:
    - (C1) `value` or `file`, `offset` and `bytes`, not both;
    - (C2) `value` has the result's type;
    - (C3) `bytes` is the size of the result.

    Example:
    ```mlir
    %w = onnx.initializer "wte.weight" file "gpt2.onnx" offset 4096 bytes 12416 : tensor<97x32xf32>
    %s = onnx.initializer "shape" value dense<[-1, 32]> : tensor<2xi64> : tensor<2xi64>
    ```
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<ElementsAttr>:$value,
    OptionalAttr<StrAttr>:$file, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$bytes);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = [{
    $name (`value` $value^)?
    (`file` $file^ `offset` $offset `bytes` $bytes)?
    attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Onnx_NodeOp : Onnx_Op<"node"> {
  let summary = "Any node of the graph";
  let description = [{
    `opset` is the version of the operator set of `domain` (absent: ai.onnx)
    that the file imports. `scope` is the path of the PyTorch module that the
    node comes from, where the exporter says so. `bodies` are its subgraphs, in
    the order of the names of the fields that hold them, each written as
    `"<GRAPH>"`; they may read values around them, and end in `onnx.yield`.
    `declared` is what the file says of the results' types, which nothing is
    computed from: a type, words where it is none that values have here, or
    `unit` where it says nothing.

    Constraints:
    - (C1) there are as many bodies as fields that hold one;
    - (C2) `declared` has an entry for each result.

    Example:
    ```mlir
    %1 = onnx.node "Gather"(%w, %0) opset 18 scope "transformer.wte" {axis = 0 : i64}
           : (tensor<97x32xf32>, !onnx.value) -> !onnx.value
    ```
  }];
  let arguments = (ins StrAttr:$op_type, Variadic<Onnx_AnyValue>:$inputs, I64Attr:$opset,
    OptionalAttr<StrAttr>:$domain, OptionalAttr<StrAttr>:$scope, DictionaryAttr:$fields,
    OptionalAttr<ArrayAttr>:$declared);
  let results = (outs Variadic<Onnx_ValueType>:$outputs);
  let regions = (region VariadicRegion<AnyRegion>:$bodies);
  let assemblyFormat = [{
    $op_type `(` $inputs `)` `opset` $opset (`domain` $domain^)?
    (`scope` $scope^)? $fields (`declared` $declared^)? attr-dict
    `:` functional-type($inputs, $outputs)
    (`bodies` $bodies^)?
  }];
  let hasVerifier = 1;
}

def Onnx_YieldOp : Onnx_Op<"yield", [Terminator]> {
  let summary = "The outputs of a subgraph";
  let description = [{
    Example:
    ```mlir
    onnx.yield %a, %b : !onnx.value, tensor<2xi64>
    ```
  }];
  let arguments = (ins Variadic<Onnx_AnyValue>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
