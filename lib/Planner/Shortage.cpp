//===- Shortage.cpp - what is missing where nothing fits -------------------===//

#include "Explain.h"
#include "JointSearch.h"
#include "StateByRoom.h"
#include "autohet/Planner/UnitTableCosts.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace autohet {

// How far a plan is looked for, and how exactly.
static constexpr double largestFactor = int64_t(1) << 40,
                        factorPrecision = 1.02;

static std::string bytes(double count) {
  return formatQuantity(count, Dimension::Bytes);
}

namespace {

/// Looks for any plan, where devices have more memory or need less of it.
class ShortageSearch {
public:
  ShortageSearch(const UnitTable &table, const Cluster &cluster,
                 const PlannerOptions &options)
      : table(table), cluster(cluster), options(options) {}

  llvm::Error explain();

private:
  /// With so many times the memory.
  std::optional<PlannedStep> planWith(double factor,
                                      const PlannerOptions &wanted);
  std::optional<PlannedStep> findNearest();
  std::string describe(const PlannedStep &nearest) const;
  std::vector<std::string> findRemedies();

  const UnitTable &table;
  const Cluster &cluster;
  const PlannerOptions &options;
  /// Whether one pipeline over all devices is enough to look at: whether it
  /// fits is soon known.
  bool isQuick = true;
};

std::optional<PlannedStep>
ShortageSearch::planWith(double factor, const PlannerOptions &wanted) {
  UnitTableCosts costs(table, cluster, wanted.optimizer,
                       wanted.memory_fraction * factor, wanted.objective);
  PlannerOptions any = wanted;
  any.max_alternatives = 0;
  // Any plan will do.
  any.target_gap = std::numeric_limits<double>::infinity();
  if (isQuick) {
    if (!any.microbatch_size)
      any.microbatch_size = 1;
    Judge judge(costs, any);
    JointSearch(judge).runOnePipeline();
    return judge.takeBest();
  }
  if (!any.state_parts)
    any.state_parts = StateParts::Uneven;
  Judge judge(costs, any);
  judge.shares_state = mayShareState(costs, any);
  JointSearch(judge).run();
  return judge.takeBest();
}

// What no pipeline of all devices can hold, no plan can. So first it is that
// one; and the whole space only where there are too many devices for it, or
// fewer are allowed.
std::optional<PlannedStep> ShortageSearch::findNearest() {
  std::optional<PlannedStep> nearest;
  double tooLittle = 1, enough = 2;
  isQuick = planWith(largestFactor, options).has_value();
  while (!(nearest = planWith(enough, options)) && enough < largestFactor &&
         !options.deadline.isOver())
    tooLittle = enough, enough *= 2;
  while (nearest && enough > factorPrecision * tooLittle &&
         !options.deadline.isOver()) {
    double middle = std::sqrt(tooLittle * enough);
    if (std::optional<PlannedStep> found = planWith(middle, options))
      nearest = std::move(found), enough = middle;
    else
      tooLittle = middle;
  }
  return nearest;
}

std::string ShortageSearch::describe(const PlannedStep &nearest) const {
  std::string text;
  double worst = 0;
  for (const DeviceEvaluation &entry : nearest.evaluation.devices) {
    double memory = cluster.kindOf(entry.device).memory_bytes;
    double lack = entry.memory.total() - options.memory_fraction * memory;
    if (lack <= worst)
      continue;
    worst = lack;
    const ResolvedStage &stage =
        nearest.resolved.replicas[entry.replica].stages[entry.stage];
    text = llvm::formatv(
               ": the plan that comes nearest needs about {0} on device "
               "'{1}' (replica {2}, stage {3}: {4}) and lacks {5} there, "
               "where {6} % of its {7} may be used",
               bytes(entry.memory.total()),
               cluster.devices()[entry.device].name, entry.replica, entry.stage,
               llvm::join(compressUnits(stage.units, table), ", "), bytes(lack),
               std::lround(100 * options.memory_fraction), bytes(memory))
               .str();
  }
  return text;
}

// Only what does help by itself is named.
std::vector<std::string> ShortageSearch::findRemedies() {
  std::vector<std::string> remedies;
  if (!isQuick)
    return remedies;
  auto tryWith = [&](const PlannerOptions &changed, llvm::StringRef name) {
    if (planWith(1, changed))
      remedies.push_back(name.str());
  };
  if (options.microbatch_size.value_or(1) > 1) {
    PlannerOptions smaller = options;
    smaller.microbatch_size = 1;
    tryWith(smaller, "microbatches of 1");
  }
  if (stateBytesPerByte(options.optimizer) > 0) {
    PlannerOptions stateless = options;
    stateless.optimizer = OptimizerKind::SGD;
    tryWith(stateless, "the optimizer sgd, which has no state");
  }
  if (!options.allow_recompute && !table.is_forward_only) {
    PlannerOptions again = options;
    again.allow_recompute = true;
    tryWith(again, "computing forward again (which no runtime does yet: "
                   "autohet-plan --allow recompute)");
  }
  bool hasHosts = llvm::any_of(cluster.kinds, [](const DeviceKind &kind) {
    return kind.host_bandwidth_bytes_per_s > 0;
  });
  if (!options.allow_offload && !table.is_forward_only && hasHosts) {
    PlannerOptions onHost = options;
    onHost.allow_offload = true;
    tryWith(onHost, "activations on the host (which no runtime does yet: "
                    "autohet-plan --allow offload)");
  }
  return remedies;
}

llvm::Error ShortageSearch::explain() {
  std::string text;
  if (std::optional<PlannedStep> nearest = findNearest())
    text = describe(*nearest);
  std::vector<std::string> remedies = findRemedies();
  remedies.push_back("more devices");
  return llvm::createStringError(
      "no plan fits into the cluster's memory" + text +
      "; what would help: " + llvm::join(remedies, ", ") + " or more memory");
}

} // namespace

llvm::Error explainInfeasible(const UnitTable &table, const Cluster &cluster,
                              const PlannerOptions &options) {
  return ShortageSearch(table, cluster, options).explain();
}

} // namespace autohet
