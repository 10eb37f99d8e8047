//===- DistOps.td - the dist dialect -------------------------*- tablegen -*-===//

#ifndef AUTOHET_DIST_OPS
#define AUTOHET_DIST_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::autohet::dist";
}

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

#endif
