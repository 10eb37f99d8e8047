//===- Planner.h - the best plan for a cluster ------------------*- C++ -*-===//
//
// Groups devices into replicas of different shape, cuts each replica's pipeline
// by speed and memory, shares the batch in proportion, and shows beside it the
// best symmetric plan: what a Megatron-style grid of equal parts would reach.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_PLANNER_H
#define AUTOHET_PLANNER_PLANNER_H

#include "autohet/Planner/Evaluation.h"

namespace autohet {

struct PlannerOptions {
  int64_t global_batch = 1;
  OptimizerKind optimizer = OptimizerKind::AdamW;
  /// Of every replica; else chosen for each.
  std::optional<int64_t> microbatch_size;
  int64_t max_microbatch_size = 64;
  /// Else the better one.
  std::optional<Schedule> schedule;
  std::string state_owner = "spread";
  /// Of each device's memory; the rest is for what estimates do not see.
  double memory_fraction = 0.95;
  bool allow_idle = true;
  /// Groupings looked at before the search becomes a local one.
  unsigned max_groupings = 20000;
};

struct PlannedStep {
  Plan plan;
  ResolvedPlan resolved;
  PlanEvaluation evaluation;
};

struct PlannerResult {
  PlannedStep best;
  /// None where no symmetric plan fits.
  std::optional<PlannedStep> symmetric;
  /// No plan is faster: all arithmetic on all devices at once.
  double lower_bound_s = 0;
  /// Why the plan is as it is, one sentence each.
  std::vector<std::string> reasons;
};

/// The same input gives the same plan. The error says what is wrong with the
/// input, or which device lacks how many bytes where nothing fits.
llvm::Expected<PlannerResult> planCluster(const UnitTable &table,
                                          const Cluster &cluster,
                                          const PlannerOptions &options);

/// The best symmetric plan alone: dp × pp × tp over all devices or any subset,
/// equal layers (±1), equal batches, its best microbatch size and schedule.
std::optional<PlannedStep> planSymmetric(const CostModel &costs,
                                         const PlannerOptions &options);

/// Plan, times and memory as text for people.
std::string formatPlannerResult(const PlannerResult &result,
                                const UnitTable &table, const Cluster &cluster);

} // namespace autohet

#endif
