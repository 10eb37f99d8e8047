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
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <map>
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

  /// Whether all holders of a parameter own equal parts.
  bool isEven() const { return areEven; }
  /// Whether no parameter's holders all have a share of 0.
  bool areAllOwned() const {
    return llvm::all_of(shares, [](double share) { return share > 0; });
  }
  /// Equal for parameters of equal holders and owners.
  unsigned groupOf(unsigned parameter) const { return groups[parameter]; }
  unsigned groupCount() const { return holders.size(); }
  /// Of a group's parameters: rising.
  llvm::ArrayRef<Holder> holdersOf(unsigned group) const {
    return holders[group];
  }
  /// The part of the group's parameters that a holder owns, of what its device
  /// in this position has.
  double share(unsigned group, const Holder &holder, unsigned position) const {
    if (const std::vector<unsigned> &owner = owners[group]; !owner.empty())
      return holders[group][owner[position % owner.size()]] == holder;
    return static_cast<double>(stageOf(holder).state_share) / shares[group];
  }

  /// Whether others divide what a stage's devices have of a group.
  bool isCutByOthers(unsigned group, const Holder &holder) const;

  /// The part of a stage's trained bytes that its device in this position owns,
  /// and what it exchanges for that.
  void setShares(const Holder &holder, unsigned position,
                 StageTies &ties) const;
  double stageShare(const Holder &holder) const {
    StageTies ties;
    setShares(holder, /*position=*/0, ties);
    return ties.owned;
  }

  const ResolvedStage &stageOf(const Holder &holder) const {
    return plan.replicas[holder.replica].stages[holder.stage];
  }

private:
  std::vector<std::vector<Holder>> holdersOfUnits() const;
  std::vector<unsigned> firstHolders(llvm::ArrayRef<Holder> all) const;

  const ResolvedPlan &plan;
  const CostModel &costs;
  bool areEven;
  std::vector<unsigned> groups;             ///< of each parameter
  std::vector<std::vector<Holder>> holders; ///< of each group
  /// Of each, into holders, by position; empty: they are spread.
  std::vector<std::vector<unsigned>> owners;
  std::vector<double> shares; ///< of each, of all holders
  /// Of each: whether its holders cut what they divide differently.
  std::vector<bool> are_cut_unlike;
};

/// What passes a node's network card.
struct CardBytes {
  double out = 0, in = 0;

  CardBytes &operator+=(const CardBytes &other) {
    out += other.out;
    in += other.in;
    return *this;
  }
};

/// What a device does for each byte that it holds of a group's parameters.
struct GroupTraffic {
  unsigned group = 0;
  // Seconds of its links: gradients, and new parameters the other way.
  double out_s = 0, in_s = 0, back_out_s = 0, back_in_s = 0;
  double sum_s = 0;    ///< adding gradients up, for itself and others
  double update_s = 0; ///< of what it owns
};

/// One device's part of the exchange: seconds that its links are busy.
struct Traffic {
  double first_s = 0;  ///< what leaves under the last backward
  double second_s = 0; ///< what relays add up and pass on behind it
  double latency_s = 0;
  CardBytes first_card, second_card; ///< of both, to and from other nodes
  std::vector<GroupTraffic> groups;  ///< the first hop's

  const GroupTraffic &of(unsigned group) const {
    return *llvm::find_if(groups, [&](const GroupTraffic &entry) {
      return entry.group == group;
    });
  }
};

/// What the devices of a plan send and receive. Every holder sends each owner
/// that owner's part of its gradient, itself or through a relay in its node. A
/// device sends and receives at once.
class GradientTraffic {
public:
  GradientTraffic(const Ownership &owners, const CostModel &costs)
      : owners(owners), costs(costs) {}

  /// Replicas of one `make` have equal stages, and extents of these.
  Traffic of(const DeviceEvaluation &entry, unsigned make,
             GradientExchange how);

private:
  /// Bytes that a device has of a group's parameters.
  struct SharedBytes {
    unsigned group = 0;
    double bytes = 0;
    double count = 0; ///< of parameters
  };
  /// A holder's device that those in the same place of other holders meet.
  struct Party {
    Holder holder;
    unsigned device = 0, turn = 0; ///< in the order of holders
  };
  struct NodeParties {
    unsigned node = 0;
    std::vector<Party> parties;
  };

  llvm::ArrayRef<SharedBytes> sharedBytesOf(const DeviceEvaluation &entry,
                                            unsigned make);
  llvm::ArrayRef<NodeParties> partiesOf(unsigned group, unsigned position);

  const Ownership &owners;
  const CostModel &costs;
  /// What many devices have in common: of a make's stage and position, and of a
  /// group and a position.
  std::map<std::array<unsigned, 3>, std::vector<SharedBytes>> shared;
  std::map<std::array<unsigned, 2>, std::vector<NodeParties>> met;
};

} // namespace autohet

#endif
