//===- ExecOps.td - the exec dialect -------------------------*- tablegen -*-===//

#ifndef AUTOHET_EXEC_OPS
#define AUTOHET_EXEC_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::autohet::exec";
}

class Exec_Op<string mnemonic, list<Trait> traits = []> : Op<Exec_Dialect, mnemonic, traits>;

#endif
