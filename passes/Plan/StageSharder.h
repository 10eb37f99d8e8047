//===- StageSharder.h - one stage expanded over its ranks ------*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_STAGESHARDER_H
#define AUTOHET_PASSES_PLAN_STAGESHARDER_H

#include "Layout.h"
#include "autohet/Dialect/Dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// Who takes part in the stages of one replica: ranks by stage.
using StageRanks = llvm::DenseMap<std::pair<int64_t, int64_t>, SmallVector<int64_t>>;

/// Expands a stage's function into one function a rank. Every value of the stage
/// has a layout and one local value a rank; each op is cloned on each rank for
/// the layouts of its operands.
class StageSharder {
public:
  StageSharder(func::FuncOp stage, const StageRanks &ranks, int64_t &nextChannel);

  /// Creates the functions behind the stage's, which stays.
  LogicalResult run();

private:
  using Locals = SmallVector<Value>;

  //===--- StageSharder.cpp: ops ---===//
  LogicalResult expand(Operation *op);
  LogicalResult expandByRule(Operation *op);
  void expandWhole(Operation *op);
  LogicalResult expandAttention(het::AttentionOp op);
  LogicalResult expandAttentionBackward(het::AttentionBackwardOp op);
  void expandCrossEntropy(het::CrossEntropyOp op, const Layout &logits);
  void expandEmbeddingBackward(het::EmbeddingBackwardOp op, const Layout &rows);
  void expandGradient(het::GradientOp op);
  void expandSend(dist::SendOp op);
  void expandRecv(dist::RecvOp op);
  void expandReturn(func::ReturnOp op);
  /// Clones `op` on a rank with these operands and results of these layouts.
  Operation *cloneLocal(Operation *op, unsigned rank, ValueRange operands,
                        ArrayRef<Layout> results);
  void setResults(Operation *op, ArrayRef<Operation *> clones, ArrayRef<Layout> results);

  //===--- StageLayouts.cpp: conversions ---===//
  /// `value` in the layout `wanted`, for `reader`.
  Locals convert(Value value, const Layout &wanted, Operation *reader);
  Locals takeParts(Value value, const Layout &wanted, Operation *reader);
  Locals sumUp(ArrayRef<Value> partial, Operation *reader);
  Locals gather(ArrayRef<Value> parts, const Layout &layout, RankedTensorType whole,
                Operation *reader);
  Locals exchangeSums(ArrayRef<Value> partial, Operation *reader);
  /// What every rank has, on every rank: entry [to][from].
  SmallVector<Locals> exchange(ArrayRef<Value> values, Operation *reader);

  const Layout &layoutOf(Value value) { return layouts[value]; }
  unsigned size() const { return ranks.size(); }
  /// Copies phase and unit of `from`.
  template <typename OpT>
  OpT mark(OpT op, Operation *from) {
    for (StringRef name : {het::kUnitAttr, het::kPhaseAttr})
      if (Attribute attribute = from->getAttr(name))
        op->setAttr(name, attribute);
    return op;
  }

  func::FuncOp stage;
  dist::StageAttr info;
  const StageRanks &allRanks;
  int64_t &nextChannel;
  SmallVector<int64_t> ranks;
  ShardSeeds seeds;
  SmallVector<func::FuncOp> funcs;
  SmallVector<OpBuilder> builders;
  llvm::DenseMap<Value, Layout> layouts;
  llvm::DenseMap<Value, Locals> locals;
  /// Conversions that were made, by value.
  llvm::DenseMap<Value, SmallVector<std::pair<Layout, Locals>>> converted;
};

} // namespace autohet

#endif
