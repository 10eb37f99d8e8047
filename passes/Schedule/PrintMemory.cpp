//===- PrintMemory.cpp - exec-print-memory --------------------------------===//

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Schedule/MemoryUse.h"
#include "autohet/Passes/Schedule/Passes.h"

namespace autohet {
#define GEN_PASS_DEF_PRINTMEMORY
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

struct PrintMemory : autohet::impl::PrintMemoryBase<PrintMemory> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      if (!program.getSpaceBytes()) {
        program.emitError("has no planned memory: run exec-plan-memory first");
        return signalPassFailure();
      }
    llvm::outs() << formatMemoryUse(getOperation(),
                                    [](StringRef) { return 0.0; });
  }
};

} // namespace
