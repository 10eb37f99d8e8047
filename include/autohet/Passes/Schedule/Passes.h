//===- Passes.h - the passes and pipelines of the Schedule phase ----*- C++ -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE_PASSES_H
#define AUTOHET_PASSES_SCHEDULE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <memory>

namespace autohet {

#define GEN_PASS_DECL
#include "autohet/Passes/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autohet/Passes/Schedule/Passes.h.inc"

/// The name of the buffer that `exec-add-scratch` declares.
inline constexpr llvm::StringLiteral kScratchBuffer = "scratch";

/// Registers the phase's pipelines under their names, for autohet-opt.
void registerSchedulePipelines();

} // namespace autohet

#endif
