//===- PrintUnits.cpp - het-print-units -----------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Passes.h"
#include "autohet/Passes/Model/Units.h"

namespace autohet {
#define GEN_PASS_DEF_PRINTUNITS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

struct PrintUnits : autohet::impl::PrintUnitsBase<PrintUnits> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    if (failed(verifyStraightLine(getOperation())))
      return signalPassFailure();
    for (Operation &op : getOperation().front().without_terminator())
      if (op.hasAttr(kUnitAttr) && !isa<CostedOpInterface>(op)) {
        op.emitOpError("is in a unit, but has no cost");
        return signalPassFailure();
      }
    llvm::outs() << formatUnitTable(collectUnits(getOperation())) << "\n";
  }
};

} // namespace
