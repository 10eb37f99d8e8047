//===- Pipeline.h - the Plan phase as one pipeline -------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_PLAN_PIPELINE_H
#define AUTOHET_PASSES_PLAN_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include <string>

namespace autohet {

struct PlanPipelineOptions : mlir::PassPipelineOptions<PlanPipelineOptions> {
  Option<std::string> stages{
      *this, "stages",
      llvm::cl::desc("Stages in the short form; else the module's plan")};
  Option<int64_t> globalBatch{*this, "global-batch",
                              llvm::cl::desc("Samples a step, with stages"),
                              llvm::cl::init(0)};
  Option<std::string> stateOwner{*this, "state-owner",
                                 llvm::cl::desc("spread, first or a device"),
                                 llvm::cl::init("spread")};
  ListOption<std::string> stateShares{
      *this, "state-shares",
      llvm::cl::desc("DEVICE=N: its share in spread state, otherwise 1")};
  Option<std::string> gradientExchange{*this, "gradient-exchange",
                                       llvm::cl::desc("direct or hierarchical"),
                                       llvm::cl::init("direct")};
};

/// From the differentiated model and a plan to each device's function.
void buildPlanPipeline(mlir::OpPassManager &pm,
                       const PlanPipelineOptions &options);

} // namespace autohet

#endif
