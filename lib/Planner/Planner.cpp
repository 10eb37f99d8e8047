//===- Planner.cpp - the best plan for a cluster --------------------------===//

#include "autohet/Planner/Planner.h"
#include "Explain.h"
#include "JointSearch.h"
#include "ModeSearch.h"
#include "autohet/Planner/UnitTableCosts.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>

namespace autohet {
namespace {

llvm::Error checkInput(const UnitTable &table, const Cluster &cluster,
                       const PlannerOptions &options) {
  if (table.units.empty())
    return llvm::createStringError("the model has no units to plan");
  if (cluster.devices().empty())
    return llvm::createStringError("the cluster has no devices");
  if (options.global_batch < 1)
    return llvm::createStringError("the global batch must be at least 1");
  if (options.max_devices && *options.max_devices < 1)
    return llvm::createStringError("a plan needs at least one device");
  if (options.microbatch_size &&
      (*options.microbatch_size < 1 ||
       options.global_batch % *options.microbatch_size))
    return llvm::createStringError(
        "a global batch of " + llvm::Twine(options.global_batch) +
        " cannot be made of microbatches of " +
        llvm::Twine(*options.microbatch_size) + "; the nearest are " +
        llvm::Twine(options.global_batch / *options.microbatch_size *
                    *options.microbatch_size) +
        " and " +
        llvm::Twine((options.global_batch / *options.microbatch_size + 1) *
                    *options.microbatch_size));
  return llvm::Error::success();
}

/// What one mode reaches.
ModeResult runMode(PlannerMode mode, const PlanCosts &costs,
                   const PlannerOptions &options) {
  ModeResult result;
  result.mode = mode;
  Judge judge(costs, options);
  result.why_not = searchMode(mode, judge);
  result.step = judge.takeBest();
  return result;
}

/// Plans in the mode that was asked for; nothing where none fits.
std::optional<PlannerResult> search(const PlanCosts &costs,
                                    const PlannerOptions &options) {
  PlannerResult result;
  Judge judge(costs, options);
  // The bound is one of the whole space, whatever the mode.
  JointSearch joint(judge);
  if (options.mode == PlannerMode::Joint)
    joint.run();
  else
    joint.boundOnly();
  for (PlannerMode mode : options.compare) {
    result.modes.push_back(runMode(mode, costs, options));
    const std::optional<PlannedStep> &step = result.modes.back().step;
    if (mode == PlannerMode::Symmetric)
      result.symmetric = step;
    // A restricted plan is a plan too: never answer with a slower one.
    if (step && options.mode == PlannerMode::Joint)
      judge.consider(step->resolved);
  }
  if (options.mode != PlannerMode::Joint)
    searchMode(options.mode, judge);
  if (!judge.best)
    return std::nullopt;
  result.effort = {judge.secondsSinceStart(), joint.pricedTemplates(),
                   judge.evaluated_plans, judge.isLate()};
  std::optional<double> usingAll_s = judge.best_using_all_s;
  result.alternatives = judge.takeAlternatives();
  result.best = *judge.takeBest();
  result.lower_bound_s =
      std::min(joint.boundSeconds(), result.best.evaluation.step_s);
  explainResult(result, usingAll_s, costs, options);
  return result;
}

} // namespace

llvm::Expected<PlannerResult> planCluster(const PlanCosts &costs,
                                          const PlannerOptions &options) {
  if (llvm::Error error = checkInput(costs.units(), costs.machines(), options))
    return error;
  if (std::optional<PlannerResult> result = search(costs, options))
    return std::move(*result);
  return llvm::createStringError(whyModeHasNoPlan(options.mode));
}

llvm::Expected<PlannerResult> planCluster(const UnitTable &table,
                                          const Cluster &cluster,
                                          const PlannerOptions &options) {
  if (llvm::Error error = checkInput(table, cluster, options))
    return error;
  UnitTableCosts costs(table, cluster, options.optimizer,
                       options.memory_fraction);
  if (std::optional<PlannerResult> result = search(costs, options))
    return std::move(*result);
  return explainInfeasible(table, cluster, options);
}

std::optional<PlannedStep> planSymmetric(const CostModel &costs,
                                         const PlannerOptions &options) {
  UnitTableCosts all(costs.units(), costs.machines(), costs.optimizerKind(),
                     options.memory_fraction);
  return runMode(PlannerMode::Symmetric, all, options).step;
}

} // namespace autohet
