//===- Passes.h - the passes and pipelines of the Plan phase ----*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_PASSES_H
#define AUTOHET_PASSES_PLAN_PASSES_H

#include "autohet/Plan/Exchanges.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <memory>

namespace autohet {

#define GEN_PASS_DECL
#include "autohet/Passes/Plan/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autohet/Passes/Plan/Passes.h.inc"

/// Registers the phase's pipelines under their names, for autohet-opt.
void registerPlanPipelines();

} // namespace autohet

#endif
