//===- Rotary.h - where rotary patterns are --------------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_ROTARY_H
#define AUTOHET_PASSES_MODEL_ROTARY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// Calls `visit` for the tables, cosines or sines, of each rotary pattern that
/// is still decomposed, whether or not `het-fuse-rotary` could prove it one.
void visitRotaryTables(mlir::func::FuncOp function,
                       llvm::function_ref<void(mlir::Value table)> visit);

} // namespace autohet

#endif
