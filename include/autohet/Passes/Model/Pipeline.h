//===- Pipeline.h - the Model phase as one pipeline ------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_MODEL_PIPELINE_H
#define AUTOHET_PASSES_MODEL_PIPELINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include <string>

namespace autohet {

struct ModelPipelineOptions : mlir::PassPipelineOptions<ModelPipelineOptions> {
  Option<int64_t> batch{*this, "batch",
                        llvm::cl::desc("Samples; 0: as in the file"),
                        llvm::cl::init(0)};
  Option<std::string> batchDim{
      *this, "batch-dim",
      llvm::cl::desc("Name of the dim that counts samples")};
  ListOption<std::string> dims{
      *this, "dims", llvm::cl::desc("NAME=N: extents of symbolic dims")};
  ListOption<std::string> ties{*this, "ties",
                               llvm::cl::desc("NAME=OTHER: one parameter")};
  ListOption<std::string> shared{
      *this, "shared", llvm::cl::desc("Parameters with several uses")};
  Option<std::string> constants{*this, "constants",
                                llvm::cl::desc("Names that are not trained")};
  Option<std::string> freeze{
      *this, "freeze", llvm::cl::desc("Names without gradient and state")};
  Option<std::string> loss{*this, "loss",
                           llvm::cl::desc("cross-entropy or mse"),
                           llvm::cl::init("cross-entropy")};
  Option<std::string> output{*this, "output",
                             llvm::cl::desc("The output that the loss is of")};
  Option<int64_t> ignoreIndex{*this, "ignore-index",
                              llvm::cl::desc("The label that does not count"),
                              llvm::cl::init(-100)};
  Option<bool> differentiate{
      *this, "differentiate",
      llvm::cl::desc("Attach the loss, differentiate, number units"),
      llvm::cl::init(true)};
  Option<bool> inference{
      *this, "inference",
      llvm::cl::desc("The model is only computed: nothing is trained"),
      llvm::cl::init(false)};
};

/// From a file's nodes to the differentiated model in units.
void buildModelPipeline(mlir::OpPassManager &pm,
                        const ModelPipelineOptions &options);

/// Its second half, for a model that is built in het: loss, gradients, units.
void buildTrainingPipeline(mlir::OpPassManager &pm,
                           const ModelPipelineOptions &options);

/// The input of a file's graph whose dim 0 counts samples where nobody says
/// otherwise: the first one of integers (tokens); of a model that has none
/// (pixels, say), the first. Null in a graph without inputs.
mlir::BlockArgument findBatchInput(mlir::func::FuncOp graph);

} // namespace autohet

#endif
