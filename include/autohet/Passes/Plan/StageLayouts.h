//===- StageLayouts.h - how a stage's values lie on its ranks --*- C++ -*-===//
//
// The decisions of tensor parallelism, apart from what is built for them: the
// sharder builds it, and the planner's units are priced by it, so that what is
// planned as divided is what will be divided.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_PLAN_STAGELAYOUTS_H
#define AUTOHET_PASSES_PLAN_STAGELAYOUTS_H

#include "autohet/Passes/Plan/ShardSeeds.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// The layout of every value of a stage. Ops are asked in program order:
/// each chooses by the layouts of its operands (ShardableOpInterface).
class StageLayouts {
public:
  StageLayouts(mlir::Block &stage, llvm::ArrayRef<int64_t> weights)
      : seeds(stage, weights), ranks(weights.size()) {}

  /// The layouts that an op runs in; its results have theirs from now on, and
  /// so does a parameter that it is the first to divide.
  het::ShardLayouts choose(mlir::Operation *op);

  /// How many heads, hidden elements or classes a divided parameter is cut
  /// between; 0 where others lead.
  int64_t extentOf(het::ParameterOp parameter) const {
    return seeds.extentOf(parameter.getName(), parameter.getOffsets());
  }

  het::Layout of(mlir::Value value) const { return layouts.lookup(value); }

private:
  /// What the readers of an op's results would like best.
  llvm::SmallVector<het::Layout> wantedLayouts(mlir::Operation *op) const;

  ShardSeeds seeds;
  unsigned ranks;
  llvm::DenseMap<mlir::Value, het::Layout> layouts;
};

} // namespace autohet

#endif
