//===- StageSharder.h - one stage expanded over its ranks ------*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_STAGESHARDER_H
#define AUTOHET_PASSES_PLAN_STAGESHARDER_H

#include "Layout.h"
#include "autohet/Dialect/Dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// Who takes part in the stages of one replica: ranks by stage.
using StageRanks =
    llvm::DenseMap<std::pair<int64_t, int64_t>, llvm::SmallVector<int64_t>>;

/// Expands a stage's function into one function a rank. Every value of the
/// stage has a layout and one local value a rank; each op is cloned on each
/// rank for the layouts of its operands.
class StageSharder {
public:
  StageSharder(mlir::func::FuncOp stage, const StageRanks &ranks,
               int64_t &nextChannel);

  /// Creates the functions behind the stage's, which stays.
  mlir::LogicalResult run();

private:
  using Locals = llvm::SmallVector<mlir::Value>;

  //===--- StageSharder.cpp: ops ---===//
  mlir::LogicalResult expand(mlir::Operation *op);
  mlir::LogicalResult expandByRule(mlir::Operation *op);
  void expandWhole(mlir::Operation *op);
  mlir::LogicalResult expandAttention(het::AttentionOp op);
  mlir::LogicalResult expandAttentionBackward(het::AttentionBackwardOp op);
  void expandCrossEntropy(het::CrossEntropyOp op, const Layout &logits);
  void expandEmbeddingBackward(het::EmbeddingBackwardOp op, const Layout &rows);
  void expandGradient(het::GradientOp op);
  void expandSend(dist::SendOp op);
  void expandRecv(dist::RecvOp op);
  void expandReturn(mlir::func::ReturnOp op);
  /// Clones `op` on a rank with these operands and results of these layouts.
  mlir::Operation *cloneLocal(mlir::Operation *op, unsigned rank,
                              mlir::ValueRange operands,
                              llvm::ArrayRef<Layout> results);
  void setResults(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> clones,
                  llvm::ArrayRef<Layout> results);

  //===--- StageLayouts.cpp: conversions ---===//
  /// `value` in the layout `wanted`, for `reader`.
  Locals convert(mlir::Value value, const Layout &wanted,
                 mlir::Operation *reader);
  Locals takeParts(mlir::Value value, const Layout &wanted,
                   mlir::Operation *reader);
  Locals gather(llvm::ArrayRef<mlir::Value> parts, const Layout &layout,
                mlir::RankedTensorType whole, mlir::Operation *reader);
  Locals exchangeSums(llvm::ArrayRef<mlir::Value> partial,
                      mlir::Operation *reader);
  /// What every rank has, on every rank: entry [to][from].
  llvm::SmallVector<Locals> exchange(llvm::ArrayRef<mlir::Value> values,
                                     mlir::Operation *reader);

  const Layout &layoutOf(mlir::Value value) { return layouts[value]; }
  unsigned size() const { return ranks.size(); }
  /// Copies phase and unit of `from`.
  template <typename OpT>
  OpT mark(OpT op, mlir::Operation *from) {
    for (llvm::StringRef name : {het::kUnitAttr, het::kPhaseAttr})
      if (mlir::Attribute attribute = from->getAttr(name))
        op->setAttr(name, attribute);
    return op;
  }

  mlir::func::FuncOp stage;
  dist::StageAttr info;
  const StageRanks &allRanks;
  int64_t &nextChannel;
  llvm::SmallVector<int64_t> ranks;
  ShardSeeds seeds;
  llvm::SmallVector<mlir::func::FuncOp> funcs;
  llvm::SmallVector<mlir::OpBuilder> builders;
  llvm::DenseMap<mlir::Value, Layout> layouts;
  llvm::DenseMap<mlir::Value, Locals> locals;
  /// Conversions that were made, by value.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Layout, Locals>>>
      converted;
};

} // namespace autohet

#endif
