//===- StageSharder.h - one stage expanded over its ranks ------*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_STAGESHARDER_H
#define AUTOHET_PASSES_PLAN_STAGESHARDER_H

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Passes/Plan/StageLayouts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// Who takes part in the stages of one replica: ranks by stage.
using StageRanks =
    llvm::DenseMap<std::pair<int64_t, int64_t>, llvm::SmallVector<int64_t>>;

/// What the program of a stage's device of that number is of.
dist::ProgramAttr programOf(dist::StageAttr stage, unsigned number);

/// Expands the function of a stage of several devices into one function a rank.
/// Every value of the stage has a layout (StageLayouts.h) and one local value a
/// rank.
class StageSharder : private het::ShardBuilder {
public:
  StageSharder(mlir::func::FuncOp stage, const StageRanks &ranks,
               int64_t &nextChannel);

  /// Creates the functions behind the stage's, which stays.
  void run();

private:
  using Layout = het::Layout;
  using Locals = het::RankValues;

  //===--- StageSharder.cpp: ops ---===//
  void expand(mlir::Operation *op);
  void build(mlir::Operation *op);
  //===--- what crosses the stage's border ---===//
  void expandParameter(het::ParameterOp op);
  void expandGradient(het::GradientOp op);
  void expandSend(dist::SendOp op);
  void expandRecv(dist::RecvOp op);
  void expandReturn(mlir::func::ReturnOp op);

  //===--- StageConversions.cpp ---===//
  /// `value` in the layout `wanted`.
  Locals convert(mlir::Value value, const Layout &wanted);
  Locals localsOf(mlir::Value value);
  Locals takeParts(const Locals &whole, const Layout &wanted);
  Locals takeParameterParts(het::ParameterOp parameter, const Layout &wanted);
  Locals gather(const Locals &parts, const Layout &layout,
                mlir::RankedTensorType whole);
  llvm::SmallVector<unsigned> othersOf(unsigned rank) const;
  Locals exchangeSums(const Locals &partial);
  Locals exchangeSumsInSlices(const Locals &partial);
  llvm::SmallVector<Locals> exchangeSlices(const Locals &flat,
                                           llvm::ArrayRef<het::Part> slices);
  mlir::Value sumInOrder(unsigned rank, const Locals &parts);

  //===--- het::ShardBuilder ---===//
  unsigned getNumRanks() const override { return ranks.size(); }
  mlir::OpBuilder &on(unsigned rank) override { return builders[rank]; }
  llvm::SmallVector<Locals> exchange(const Locals &values) override;

  /// What is built for an op is of that op's unit and phase.
  struct Stamp : mlir::OpBuilder::Listener {
    void notifyOperationInserted(mlir::Operation *op,
                                 mlir::OpBuilder::InsertPoint) override;
    mlir::Operation *source = nullptr;
  };

  mlir::func::FuncOp stage;
  dist::StageAttr info;
  const StageRanks &allRanks;
  int64_t &nextChannel;
  llvm::SmallVector<int64_t> ranks;
  StageLayouts layouts;
  Stamp stamp;
  llvm::SmallVector<mlir::func::FuncOp> funcs;
  llvm::SmallVector<mlir::OpBuilder> builders;
  llvm::DenseMap<mlir::Value, Locals> locals; ///< of parameters: the whole
  /// Conversions that were made, by value.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Layout, Locals>>>
      converted;
};

} // namespace autohet

#endif
