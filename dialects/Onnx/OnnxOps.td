//===- OnnxOps.td - the onnx dialect -------------------------*- tablegen -*-===//

#ifndef AUTOHET_ONNX_OPS
#define AUTOHET_ONNX_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::autohet::onnx";
}

class Onnx_Op<string mnemonic, list<Trait> traits = []> : Op<Onnx_Dialect, mnemonic, traits>;

#endif
