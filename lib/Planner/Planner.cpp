//===- Planner.cpp - the best plan for a cluster --------------------------===//

#include "autohet/Planner/Planner.h"
#include "Finalists.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>
#include <set>

namespace autohet {
namespace {

// Estimates of groupings are that good: they leave out how transfers and
// gradients overlap.
constexpr double estimateSlack = 1.2;

llvm::Error checkInput(const UnitTable &table, const Cluster &cluster,
                       const PlannerOptions &options) {
  if (table.units.empty())
    return llvm::createStringError("the model has no units to plan");
  if (cluster.devices().empty())
    return llvm::createStringError("the cluster has no devices");
  if (options.global_batch < 1)
    return llvm::createStringError("the global batch must be at least 1");
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

/// Nothing fits: plans as if memory were free, and says what the plan that
/// lacks least lacks.
llvm::Error explainInfeasible(const UnitTable &table, const Cluster &cluster,
                              const PlannerOptions &options) {
  CostModel costs(table, cluster, options.optimizer);
  ReplicaSearch replicas(costs, std::numeric_limits<double>::infinity());
  GroupingSearch search(costs, options, replicas);
  double least = std::numeric_limits<double>::infinity();
  std::string text;
  for (const Grouping &grouping : search.run())
    for (int64_t size :
         {search.microbatchSizes().front(), grouping.microbatch_size}) {
      ResolvedPlan plan;
      for (const std::vector<unsigned> &devices :
           search.deviceClasses().assign(grouping.groups)) {
        const ReplicaFront &front =
            replicas.solve(devices, size, grouping.groups.size(), false);
        if (front.empty())
          break;
        plan.replicas.push_back(
            {size, options.global_batch, front.front().stages});
      }
      PlanEvaluation evaluation = evaluatePlan(
          plan, Schedule::OneForwardOneBackward, options.state_owner, costs);
      auto shortage = evaluation.worstShortage(cluster);
      if (!shortage || shortage->second >= least)
        continue;
      least = shortage->second;
      const DeviceEvaluation &entry = evaluation.devices[shortage->first];
      std::string units = llvm::join(
          compressUnits(plan.replicas[entry.replica].stages[entry.stage].units,
                        table),
          ", ");
      text = "the plan that comes nearest needs " +
             formatQuantity(entry.memory.total(), Dimension::Bytes) +
             " on device '" + cluster.devices()[entry.device].name +
             "' (replica " + std::to_string(entry.replica) + ", stage " +
             std::to_string(entry.stage) + ": " + units + ") and lacks " +
             formatQuantity(least, Dimension::Bytes) + " there";
    }
  return llvm::createStringError(
      "no plan fits into the cluster's memory" +
      (text.empty() ? "" : ": " + text) +
      "; more devices, more memory, or an optimizer with less state would "
      "help");
}

std::string speedUp(double slow, double fast) {
  return formatQuantity(slow / fast, Dimension::None) + " x";
}

void explain(const Finalists &finalists, const CostModel &costs,
             PlannerResult &result) {
  const Cluster &cluster = costs.machines();
  std::set<unsigned> used;
  for (const DeviceEvaluation &entry : result.best.evaluation.devices)
    used.insert(entry.device);
  std::vector<std::string> idle;
  for (auto [index, device] : llvm::enumerate(cluster.devices()))
    if (!used.count(index))
      idle.push_back(device.name + " (" + cluster.kindOf(index).name + ")");
  double step = result.best.evaluation.step_s;
  if (!idle.empty())
    result.reasons.push_back(
        "idle: " + llvm::join(idle, ", ") +
        (finalists.best_using_all_s
             ? "; the best plan found that uses every device takes " +
                   formatQuantity(*finalists.best_using_all_s,
                                  Dimension::Seconds) +
                   " instead of " + formatQuantity(step, Dimension::Seconds)
             : "; no plan found that uses every device"));
  if (result.symmetric)
    result.reasons.push_back(
        "the best symmetric plan takes " +
        formatQuantity(result.symmetric->evaluation.step_s,
                       Dimension::Seconds) +
        ": this one is " + speedUp(result.symmetric->evaluation.step_s, step) +
        " as fast");
  else
    result.reasons.push_back("no symmetric plan fits");
  result.reasons.push_back(
      "no plan can take less than " +
      formatQuantity(result.lower_bound_s, Dimension::Seconds) +
      ", the arithmetic of a step on all devices at once");
}

} // namespace

llvm::Expected<PlannerResult> planCluster(const UnitTable &table,
                                          const Cluster &cluster,
                                          const PlannerOptions &options) {
  if (llvm::Error error = checkInput(table, cluster, options))
    return error;
  CostModel costs(table, cluster, options.optimizer);
  ReplicaSearch replicas(costs, options.memory_fraction);
  GroupingSearch search(costs, options, replicas);
  Finalists finalists(costs, options, replicas, search.deviceClasses(),
                      search.microbatchSizes());
  // By rising estimate: far behind the best plan none is worth a closer look.
  for (const Grouping &grouping : search.run()) {
    if (finalists.best &&
        grouping.estimate_s > estimateSlack * finalists.best->evaluation.step_s)
      break;
    finalists.consider(grouping);
  }

  PlannerResult result;
  result.symmetric = planSymmetric(costs, options);
  // A grid is a plan too: never answer with a slower one.
  if (result.symmetric)
    finalists.consider(result.symmetric->resolved);
  finalists.improve();
  if (!finalists.best)
    return explainInfeasible(table, cluster, options);
  result.best = *finalists.best;
  writePlan(result.best, costs, options);

  double rate = 0;
  for (unsigned device = 0; device < cluster.devices().size(); ++device)
    rate += cluster.kindOf(device).flops_per_s;
  result.lower_bound_s =
      costs.flopsPerSample() * static_cast<double>(options.global_batch) / rate;
  explain(finalists, costs, result);
  return result;
}

} // namespace autohet
