//===- Passes.h - the passes and pipelines of the Model phase ----*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_PASSES_H
#define AUTOHET_PASSES_MODEL_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <memory>

namespace autohet {

#define GEN_PASS_DECL
#include "autohet/Passes/Model/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autohet/Passes/Model/Passes.h.inc"

/// Registers the phase's pipelines under their names, for autohet-opt.
void registerModelPipelines();

} // namespace autohet

#endif
