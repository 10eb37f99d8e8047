//===- Planner.cpp - the best plan for a cluster --------------------------===//

#include "autohet/Planner/Planner.h"
#include "Finalists.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

namespace autohet {
namespace {

// Estimates of groupings are that good: they leave out how transfers and
// gradients overlap.
constexpr double estimateSlack = 1.2;
// How far explainInfeasible() looks, and how exactly.
constexpr double largestFactor = 1 << 20, factorPrecision = 1.02;

std::string bytes(double count) {
  return formatQuantity(count, Dimension::Bytes);
}

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

/// What a search found, with everything that explanations need.
struct Search {
  Search(const CostModel &costs, const PlannerOptions &options)
      : replicas(costs, options.memory_fraction),
        groupings(costs, options, replicas),
        finalists(costs, options, replicas, groupings.deviceClasses(),
                  groupings.microbatchSizes()) {
    // By rising estimate: far behind the best plan none is worth a closer look.
    for (const Grouping &grouping : groupings.run()) {
      if (finalists.best &&
          grouping.estimate_s >
              estimateSlack * finalists.best->evaluation.step_s)
        break;
      finalists.consider(grouping);
    }
    symmetric = planSymmetric(costs, options);
    // A grid is a plan too: never answer with a slower one.
    if (symmetric)
      finalists.consider(symmetric->resolved);
    finalists.improve();
  }

  ReplicaSearch replicas;
  GroupingSearch groupings;
  Finalists finalists;
  std::optional<PlannedStep> symmetric;
};

/// Nothing fits: looks for the plan that would with the least more memory (in
/// proportion, on all devices), and says what it lacks.
llvm::Error explainInfeasible(const CostModel &costs,
                              const PlannerOptions &options) {
  auto searchWith = [&](double factor) {
    PlannerOptions roomier = options;
    roomier.memory_fraction *= factor;
    return Search(costs, roomier).finalists.best;
  };
  double tooLittle = 1, enough = 2;
  std::optional<PlannedStep> nearest;
  while (!(nearest = searchWith(enough)) && enough < largestFactor)
    tooLittle = enough, enough *= 2;
  while (nearest && enough > factorPrecision * tooLittle) {
    double middle = std::sqrt(tooLittle * enough);
    if (std::optional<PlannedStep> found = searchWith(middle))
      nearest = std::move(found), enough = middle;
    else
      tooLittle = middle;
  }
  const Cluster &cluster = costs.machines();
  std::string text;
  double worst = 0;
  if (nearest)
    for (const DeviceEvaluation &entry : nearest->evaluation.devices) {
      double room =
          options.memory_fraction * cluster.kindOf(entry.device).memory_bytes;
      double lack = entry.memory.total() - room;
      if (lack <= worst)
        continue;
      worst = lack;
      std::string units =
          llvm::join(compressUnits(nearest->resolved.replicas[entry.replica]
                                       .stages[entry.stage]
                                       .units,
                                   costs.units()),
                     ", ");
      text =
          llvm::formatv(
              ": the plan that comes nearest needs about {0} on device "
              "'{1}' (replica {2}, stage {3}: {4}) and lacks {5} there",
              bytes(entry.memory.total()), cluster.devices()[entry.device].name,
              entry.replica, entry.stage, units, bytes(lack))
              .str();
    }
  return llvm::createStringError(
      "no plan fits into the cluster's memory" + text +
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
  Search search(costs, options);
  const Finalists &finalists = search.finalists;
  if (!finalists.best)
    return explainInfeasible(costs, options);
  PlannerResult result;
  result.symmetric = std::move(search.symmetric);
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
