//===- UnitWork.h - the work of the model's units --------------*- C++ -*-===//
//
// Of the kernels and products that the Schedule phase would make of the model,
// as the simulator prices them; and of each, what tensor-parallel ranks would
// divide, by the rules that the sharder follows.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_UNITWORK_H
#define AUTOHET_PASSES_MODEL_UNITWORK_H

#include "autohet/Passes/Plan/StageLayouts.h"
#include "autohet/Passes/Schedule/KernelGroups.h"
#include "autohet/Plan/UnitTable.h"

#include "mlir/IR/IRMapping.h"

namespace autohet {

class UnitWork {
public:
  /// `passOf` says where the work of an op of the model, or of its copy, goes;
  /// null: it is not counted.
  UnitWork(mlir::func::FuncOp model, double samples,
           llvm::function_ref<PassWork *(mlir::Operation *)> passOf);

  /// Whether ranks have parts of a value of the model.
  bool isDivided(mlir::Value value) const {
    return layouts.of(copied.lookup(value)).kind == het::Layout::Split;
  }
  bool isDividedByRows(mlir::Value value) const {
    return layouts.of(copied.lookup(value)).isSplitAlong(0);
  }
  int64_t extentOf(het::ParameterOp parameter) const {
    return layouts.extentOf(parameter);
  }

private:
  //===--- What ranks exchange ---===//
  void chooseLayouts();
  void convert(mlir::Operation *reader, mlir::Value value,
               const het::Layout &wanted);
  void addExchange(RankExchange::Kind kind, mlir::Value value,
                   mlir::Operation *of);

  //===--- What they compute ---===//
  void findScalingValues();
  bool scales(mlir::Operation *op) const;
  bool isRunDivided(mlir::Operation *op) const;
  void addKernel(PassWork &pass, llvm::ArrayRef<mlir::Operation *> ops);
  void addProduct(PassWork &pass, het::MatmulOp product);
  void addSum(PassWork &pass, het::GradientOp gradient);
  /// Of all samples, or the same for any number of them.
  void add(PassWork &pass, double Work::*quantity, double amount, bool scales,
           bool isDivided) const;

  mlir::IRMapping copied; ///< from the model
  mlir::OwningOpRef<mlir::func::FuncOp> copy;
  double samples;
  llvm::function_ref<PassWork *(mlir::Operation *)> passOf;
  StageLayouts layouts; ///< in the copy
  llvm::DenseMap<mlir::Operation *, het::ShardLayouts> runs;
  /// Values that have been made whole on all ranks.
  llvm::DenseSet<mlir::Value> madeWhole;
  llvm::DenseSet<mlir::Value> scaling, gradients;
  llvm::DenseMap<mlir::Operation *, unsigned> groupOf;
};

} // namespace autohet

#endif
