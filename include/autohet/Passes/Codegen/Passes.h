//===- Passes.h - the passes and pipelines of the Codegen phase -*- C++ -*-===//

#ifndef AUTOHET_PASSES_CODEGEN_PASSES_H
#define AUTOHET_PASSES_CODEGEN_PASSES_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <memory>

namespace autohet {

#define GEN_PASS_DECL
#include "autohet/Passes/Codegen/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "autohet/Passes/Codegen/Passes.h.inc"

/// Lowers kernels (functions of het ops on static tensors) to the LLVM dialect.
void buildKernelPipeline(mlir::OpPassManager &pm);

/// The dialects that the pipeline passes through, and their interfaces.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// Registers the phase's pipelines under their names, for autohet-opt.
void registerCodegenPipelines();

} // namespace autohet

#endif
