//===- Plan.h - from a model and machines to a plan ------------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_PLAN_PLAN_H
#define AUTOHET_TOOLS_PLAN_PLAN_H

#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Planner/Replan.h"
#include "autohet/Report/PlanText.h"

namespace autohet {

struct PlanOptions {
  ModelFile model;
  ClusterSource machines;
  Precision precision = Precision::FP32;
  PlannerOptions planner;
  /// A plan that ran before, if machines came or went since: patterns of
  /// devices that it had, and of devices that it cannot have had.
  std::string from;
  std::vector<std::string> lost, joined;
  double speed_weight = 1, move_weight = 0.1;
  std::string plan;   ///< judged instead of searched, if given
  std::string output; ///< of the plan; empty: none
  /// Sailor's published profiles as the cost model, with the model's name in
  /// them instead of a file; empty: the model's own facts.
  std::string sailor_data, sailor_zone, sailor_output;
  /// Whether they were asked for: a plan that is judged must agree.
  bool has_batch = false, has_optimizer = false, has_owner = false;
  bool isJson = false, remarks = false, megatron = false;
  /// Best plans to lower and simulate, nothing: as many as take little time;
  /// and how many of those to run.
  std::optional<unsigned> finalists;
  unsigned measureTop = 0;
  bool emulate = false; ///< each kind's speed, in those runs
  /// For autohet-compile: what was said of the model and the machines; and a
  /// folder for the runs.
  std::vector<std::string> arguments;
  std::string work;
};

mlir::LogicalResult plan(const PlanOptions &options,
                         mlir::MLIRContext &context);
mlir::LogicalResult planWithSailor(const PlanOptions &options,
                                   mlir::MLIRContext &context);

/// Prints the plan, and writes it where asked for.
mlir::LogicalResult report(const PlanOptions &options,
                           const PlannerResult &result, const UnitTable &units,
                           const Cluster &cluster, int64_t tokens,
                           mlir::MLIRContext &context, PlanTextFacts facts = {},
                           const ReplanResult *moves = nullptr);
mlir::LogicalResult writeOutput(llvm::StringRef path, llvm::StringRef text,
                                mlir::MLIRContext &context);

} // namespace autohet

#endif
