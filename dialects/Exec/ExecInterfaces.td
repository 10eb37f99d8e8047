//===- ExecInterfaces.td - what a command must answer -------*- tablegen -*-===//

#ifndef AUTOHET_EXEC_INTERFACES
#define AUTOHET_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def Exec_CommandInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::autohet::exec";
  let description = [{
    A command of a stream: which buffers it reads and writes, and for which
    microbatch it works. Memory planning and simulation ask nothing else.
  }];
  let methods = [
    InterfaceMethod<"Buffers read, in operand order.",
      "::llvm::SmallVector<::mlir::Value>", "getReads">,
    InterfaceMethod<"Buffers written.",
      "::llvm::SmallVector<::mlir::Value>", "getWrites">,
    InterfaceMethod<"The microbatch, relative to the loop's index inside a loop.",
      "int64_t", "getMicrobatchNumber", (ins), [{
        return $_op.getMicrobatch();
      }]>
  ];
}

#endif
