//===- Explain.cpp - why a plan is as it is -------------------------------===//

#include "Explain.h"
#include "JointSearch.h"
#include "StateByRoom.h"
#include "autohet/Planner/UnitTableCosts.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <map>
#include <set>

namespace autohet {

// How far explainInfeasible() looks, and how exactly.
static constexpr double largestFactor = 1 << 20, factorPrecision = 1.02;
// Idle devices are named one by one up to so many of a kind.
static constexpr size_t maxNamedIdle = 8;

static std::string bytes(double count) {
  return formatQuantity(count, Dimension::Bytes);
}
static std::string seconds(double count) {
  return formatQuantity(count, Dimension::Seconds);
}

std::string PlannerResult::gapText() const {
  // A percentage of more than 100 is no nearness.
  if (gap() > 1)
    return llvm::formatv("this one takes {0:f1} times as long", 1 + gap())
        .str();
  return llvm::formatv("this one is within {0:f1} % of the best", 100 * gap())
      .str();
}

static void explainIdle(PlannerResult &result, std::optional<double> usingAll_s,
                        const PlanCosts &costs, const PlannerOptions &options) {
  const Cluster &cluster = costs.machines();
  std::vector<bool> used(cluster.devices().size());
  for (const DeviceEvaluation &entry : result.best.evaluation.devices)
    used[entry.device] = true;
  std::map<unsigned, std::vector<unsigned>> idle; // of each kind
  for (unsigned device = 0; device < used.size(); ++device)
    if (!used[device])
      idle[cluster.devices()[device].kind].push_back(device);
  if (idle.empty())
    return;
  std::string reason;
  if (options.max_devices &&
      result.best.evaluation.devices.size() >= *options.max_devices)
    reason =
        "a plan may use " + std::to_string(*options.max_devices) + " devices";
  else if (usingAll_s)
    reason = "the best plan found that uses every device takes " +
             seconds(*usingAll_s) + " instead of " +
             seconds(result.best.evaluation.step_s);
  else
    reason = "no plan found that uses every device";
  std::vector<std::string> names;
  for (auto &[kind, devices] : idle) {
    const std::string &kindName = cluster.kinds[kind].name;
    if (devices.size() > maxNamedIdle)
      names.push_back(std::to_string(devices.size()) + " of kind " + kindName);
    else
      for (unsigned device : devices)
        names.push_back(cluster.devices()[device].name + " (" + kindName + ")");
    result.idle.push_back({devices, reason});
  }
  result.reasons.push_back("idle: " + llvm::join(names, ", ") + "; " + reason);
}

void explainResult(PlannerResult &result, std::optional<double> usingAll_s,
                   const PlanCosts &costs, const PlannerOptions &options) {
  explainIdle(result, usingAll_s, costs, options);
  double step = result.best.evaluation.step_s;
  if (options.mode != PlannerMode::Joint) {
    result.origin = "the best plan of mode " +
                    plannerModeName(options.mode).str() + ", as was asked for";
    result.reasons.push_back(result.origin);
  }
  if (withEvenState(result.best.resolved))
    result.reasons.push_back("the optimizer's state is spread by room: equal "
                             "parts of it would not fit");
  for (const ModeResult &mode : result.modes) {
    std::string name = plannerModeName(mode.mode).str();
    if (mode.step)
      result.reasons.push_back(
          "the best " + name + " plan takes " +
          seconds(mode.step->evaluation.step_s) + ": this one is " +
          formatQuantity(mode.step->evaluation.step_s / step, Dimension::None) +
          " x as fast");
    else
      result.reasons.push_back(mode.why_not);
  }
  result.reasons.push_back(
      "no plan can take less than " + seconds(result.lower_bound_s) +
      ", whatever its replicas, stages and batches are: " + result.gapText());
  if (result.effort.is_cut_short)
    result.reasons.push_back("the search was cut short by its deadline");
}

std::string whyModeHasNoPlan(PlannerMode mode) {
  if (mode == PlannerMode::Joint)
    return "no plan makes the global batch within the devices' memory";
  return "no plan of mode " + plannerModeName(mode).str() +
         " makes the global batch within the devices' memory; the whole space "
         "may have one";
}

llvm::Error explainInfeasible(const UnitTable &table, const Cluster &cluster,
                              const PlannerOptions &options, double started_s) {
  // One replica alone: what no pipeline of all devices can hold, no plan can.
  bool isLate = false;
  auto searchWith = [&](double factor) {
    UnitTableCosts roomier(table, cluster, options.optimizer,
                           options.memory_fraction * factor, options.objective);
    PlannerOptions single = options;
    single.max_alternatives = 0;
    if (!single.state_parts)
      single.state_parts = StateParts::Uneven;
    // Any plan will do.
    single.target_gap = std::numeric_limits<double>::infinity();
    Judge judge(roomier, single, started_s);
    judge.shares_state = mayShareState(roomier, single);
    JointSearch(judge).run();
    isLate = judge.isLate();
    return judge.takeBest();
  };
  double tooLittle = 1, enough = 2;
  std::optional<PlannedStep> nearest;
  while (!(nearest = searchWith(enough)) && enough < largestFactor && !isLate)
    tooLittle = enough, enough *= 2;
  while (nearest && enough > factorPrecision * tooLittle && !isLate) {
    double middle = std::sqrt(tooLittle * enough);
    if (std::optional<PlannedStep> found = searchWith(middle))
      nearest = std::move(found), enough = middle;
    else
      tooLittle = middle;
  }
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
                                   table),
                     ", ");
      text =
          llvm::formatv(
              ": the plan that comes nearest needs about {0} on device "
              "'{1}' (replica {2}, stage {3}: {4}) and lacks {5} there, "
              "where {6} % of its {7} may be used",
              bytes(entry.memory.total()), cluster.devices()[entry.device].name,
              entry.replica, entry.stage, units, bytes(lack),
              std::lround(100 * options.memory_fraction),
              bytes(cluster.kindOf(entry.device).memory_bytes))
              .str();
    }
  std::string help = "more devices, more memory, or an optimizer with less "
                     "state would help";
  if (options.microbatch_size && *options.microbatch_size > 1)
    help = "a smaller microbatch, " + help;
  return llvm::createStringError("no plan fits into the cluster's memory" +
                                 text + "; " + help);
}

} // namespace autohet
