//===- Philox.h - dropout masks in generated code ---------------*- C++ -*-===//
//
// The arithmetic of runtime/random.h, bit for bit, built from arith ops.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_CODEGEN_PHILOX_H
#define AUTOHET_PASSES_CODEGEN_PHILOX_H

#include "mlir/IR/Builders.h"
#include <optional>

namespace autohet {

/// Draws the mask of one dropout op, whose operand is a box of a whole tensor.
class DropoutMask {
public:
  /// Loads the seed, step and first sample from `context`, once. `shape` is the
  /// operand's; `offsets` and `globalShape` as in het.dropout.
  DropoutMask(mlir::OpBuilder &b, mlir::Location loc, mlir::Value context,
              double probability, int64_t opId, llvm::ArrayRef<int64_t> shape,
              std::optional<llvm::ArrayRef<int64_t>> offsets,
              std::optional<llvm::ArrayRef<int64_t>> globalShape);

  /// The factor of the element at `position` (index values, of the operand):
  /// 0 or 1 / (1 - p); 1 everywhere while the run evaluates.
  mlir::Value factorAt(mlir::OpBuilder &b, mlir::Location loc,
                       llvm::ArrayRef<mlir::Value> position) const;

private:
  mlir::Value seed, step, firstSample; // i64
  mlir::Value evaluates;               // i1
  double probability;
  int64_t opId;
  llvm::SmallVector<int64_t> offsets, globalShape;
};

} // namespace autohet

#endif
