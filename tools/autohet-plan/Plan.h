//===- Plan.h - from a model and machines to a plan ------------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_PLAN_PLAN_H
#define AUTOHET_TOOLS_PLAN_PLAN_H

#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Planner/Planner.h"

namespace autohet {

struct PlanOptions {
  ModelFile model;
  ClusterSource machines;
  Precision precision = Precision::FP32;
  PlannerOptions planner;
  std::string plan;   ///< judged instead of searched, if given
  std::string output; ///< of the plan; empty: none
  bool isJson = false, remarks = false, megatron = false;
};

mlir::LogicalResult plan(const PlanOptions &options,
                         mlir::MLIRContext &context);

} // namespace autohet

#endif
