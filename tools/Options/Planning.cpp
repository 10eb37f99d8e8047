//===- Planning.cpp - a plan with what it will cost -------------------------===//

#include "Planning.h"

using namespace autohet;

/// No plan is faster: all arithmetic of a step on all devices at once.
static double lowerBound(const CostModel &costs, int64_t globalBatch) {
  double rate = 0;
  for (unsigned device = 0; device < costs.machines().devices().size();
       ++device)
    rate += costs.machines().kindOf(device).flops_per_s;
  return costs.flopsPerSample() * static_cast<double>(globalBatch) / rate;
}

llvm::Expected<PlannerResult> autohet::findPlan(PlannerKind kind,
                                                const UnitTable &table,
                                                const Cluster &cluster,
                                                const PlannerOptions &options) {
  if (kind == PlannerKind::Asymmetric)
    return planCluster(table, cluster, options);
  CostModel costs(table, cluster, options.optimizer);
  std::optional<PlannedStep> symmetric = planSymmetric(costs, options);
  if (!symmetric)
    return llvm::createStringError(
        "no symmetric plan (equal layers and batches on a grid of devices) "
        "makes a global batch of " +
        llvm::Twine(options.global_batch) +
        " within the devices' memory; --planner=asymmetric may find another "
        "one");
  PlannerResult result;
  result.best = std::move(*symmetric);
  result.lower_bound_s = lowerBound(costs, options.global_batch);
  result.reasons.push_back(
      "the best symmetric plan, as --planner=symmetric asks for");
  return result;
}

PlannerResult autohet::judgePlan(const Plan &plan, llvm::StringRef reason,
                                 const UnitTable &table,
                                 const Cluster &cluster) {
  CostModel costs(table, cluster, plan.optimizer);
  PlannerResult result;
  result.best.plan = plan;
  result.best.resolved = resolvePlan(plan, table, cluster);
  result.best.evaluation = evaluatePlan(result.best.resolved, plan.schedule,
                                        plan.state_owner, costs);
  result.lower_bound_s = lowerBound(costs, plan.global_batch);
  result.reasons.push_back(reason.str());
  return result;
}
