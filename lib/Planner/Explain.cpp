//===- Explain.cpp - why a plan is as it is -------------------------------===//

#include "Explain.h"
#include "StateByRoom.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

namespace autohet {

// Idle devices are named one by one up to so many of a kind.
static constexpr size_t maxNamedIdle = 8;

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
  else if (usingAll_s && *usingAll_s <= result.best.evaluation.step_s)
    // GPipe has to be worth its activations; and programs are looked at closer.
    reason = "a plan that uses every device is estimated at " +
             seconds(*usingAll_s) +
             ", which is too little less, or not what its programs take";
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

} // namespace autohet
