//===- Parameters.h - what a model trains ----------------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_PARAMETERS_H
#define AUTOHET_PASSES_MODEL_PARAMETERS_H

#include "mlir/IR/BuiltinOps.h"

namespace autohet {

/// Lists the float constants of a model, trained or not, with the reason, one a
/// line. `het-classify-parameters` has run.
///   trained    wte.weight [97, 32]: embedding table
///   untrained  where [2, 1, 12, 12]: added to attention scores
void printParameters(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace autohet

#endif
