//===- GradientTraffic.h - who owns, and what an exchange takes -*- C++ -*-===//
//
// A parameter has holders, the stages that compute with it, and each part of it
// one owner among them, which adds gradients up and updates. From that follows
// what each device sends and receives once a step.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_GRADIENTTRAFFIC_H
#define AUTOHET_LIB_PLANNER_GRADIENTTRAFFIC_H

#include "autohet/Planner/Evaluation.h"
#include <tuple>

namespace autohet {

/// A stage that holds a parameter.
struct Holder {
  unsigned replica, stage;

  bool operator==(const Holder &other) const {
    return replica == other.replica && stage == other.stage;
  }
  bool operator<(const Holder &other) const {
    return std::tie(replica, stage) < std::tie(other.replica, other.stage);
  }
};

/// Who holds which parameter, and what part of its state each holder owns.
class Ownership {
public:
  Ownership(const ResolvedPlan &plan, llvm::StringRef stateOwner,
            const CostModel &costs);

  /// Whether all holders own equal parts.
  bool isSpread() const { return areSpread; }
  llvm::ArrayRef<Holder> of(unsigned parameter) const {
    return holders[parameter];
  }
  /// Equal for parameters of equal holders and owners.
  unsigned groupOf(unsigned parameter) const { return groups[parameter]; }
  /// The part of `parameter` that a holder owns.
  double share(unsigned parameter, const Holder &holder) const {
    llvm::ArrayRef<Holder> all = holders[parameter];
    if (owners[parameter])
      return all[*owners[parameter]] == holder;
    return 1.0 / static_cast<double>(all.size());
  }

  /// The part of a stage's trained bytes that the stage owns.
  double stageShare(const Holder &holder) const;

  const ResolvedStage &stageOf(const Holder &holder) const {
    return plan.replicas[holder.replica].stages[holder.stage];
  }

private:
  void add(unsigned parameter, Holder holder);

  const ResolvedPlan &plan;
  const CostModel &costs;
  bool areSpread;
  std::vector<std::vector<Holder>> holders;
  std::vector<std::optional<unsigned>> owners; ///< into holders
  std::vector<unsigned> groups;                ///< of each parameter
};

/// One device's part of the exchange: seconds that its links are busy, and what
/// it computes.
struct Traffic {
  double first_s = 0;  ///< what leaves under the last backward
  double second_s = 0; ///< what relays add up and pass on behind it
  /// Adding gradients up, and updating what the device owns.
  Work update;
};

/// Every holder sends each owner that owner's part of its gradient, itself or
/// through a relay in its node. A device sends and receives at once.
Traffic trafficOf(const DeviceEvaluation &entry, const Ownership &owners,
                  const CostModel &costs, GradientExchange how);

} // namespace autohet

#endif
