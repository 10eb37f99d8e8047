//===- Parameters.h - what a model trains ----------------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_PARAMETERS_H
#define AUTOHET_PASSES_MODEL_PARAMETERS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace llvm {
class Regex;
} // namespace llvm

namespace autohet {

/// On a function: the names of parameters that its file says are frozen.
inline constexpr llvm::StringLiteral kFrozenListAttr = "het.frozen_parameters";

/// Lists the float constants of a model, trained or not, with the reason, one a
/// line. `het-classify-parameters` has run.
///   trained    wte.weight [97, 32]: embedding table
///   untrained  where [2, 1, 12, 12]: added to attention scores
void printParameters(mlir::ModuleOp module, llvm::raw_ostream &os);

/// The parameters of which `pattern` finds a name: a tied one has several, and
/// any of them will do.
llvm::StringSet<> findParameters(mlir::ModuleOp module,
                                 const llvm::Regex &pattern);

} // namespace autohet

#endif
