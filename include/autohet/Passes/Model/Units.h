//===- Units.h - the model's units as planning sees them --------*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_UNITS_H
#define AUTOHET_PASSES_MODEL_UNITS_H

#include "autohet/Plan/UnitTable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// The table of a function that `het-number-units` has been through: costs come
/// from its ops, edges from its values. Per sample, with `het.batch_size` (1
/// where the function has none).
UnitTable collectUnits(mlir::func::FuncOp function);

/// A hash of what the model computes, whatever the batch size: ops, how they
/// are connected, units and parameters.
uint64_t hashStructure(mlir::func::FuncOp function);

} // namespace autohet

#endif
