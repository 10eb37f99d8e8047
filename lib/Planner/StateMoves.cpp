//===- StateMoves.cpp - from one plan's slices to another's ---------------===//

#include "autohet/Planner/StateMoves.h"
#include "autohet/Planner/CostModel.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <set>

namespace autohet {
namespace {

// Cuts of shares such as thirds meet up to this.
constexpr double tolerance = 1e-9;

struct Part {
  unsigned device = 0;
  double begin = 0, end = 1;
};
using Parts = std::vector<Part>;

/// Where the state of training lies under a plan.
class StateLayout {
public:
  StateLayout(const Plan &plan, const Cluster &cluster, const UnitTable &table)
      : holders(table.parameters.size()), owners(table.parameters.size()) {
    ResolvedPlan resolved = resolvePlan(plan, table, cluster);
    std::optional<unsigned> pinned;
    if (plan.state_owner != "spread" && plan.state_owner != "first")
      pinned = cluster.findDevice(plan.state_owner);
    // [parameter]: what each stage that holds it has on its devices.
    std::vector<std::vector<Held>> stages(table.parameters.size());
    for (const ResolvedReplica &replica : resolved.replicas)
      for (const ResolvedStage &stage : replica.stages)
        addStage(stage, table, stages);
    for (auto [parameter, ofStages] : llvm::enumerate(stages)) {
      for (const Held &held : ofStages)
        llvm::append_range(holders[parameter], held.parts);
      if (table.parameters[parameter].trained)
        owners[parameter] = ownersOf(ofStages, plan.state_owner, pinned);
    }
  }

  std::vector<Parts> holders, owners; ///< [parameter]

private:
  /// What a stage has of a parameter.
  struct Held {
    Parts parts;
    int64_t state_share = 1;
  };

  static void addStage(const ResolvedStage &stage, const UnitTable &table,
                       std::vector<std::vector<Held>> &stages) {
    Parts parts;
    double begin = 0;
    std::vector<double> shares = sharesOf(stage.weights);
    for (auto [device, share] : llvm::zip_equal(stage.devices, shares)) {
      parts.push_back({device, begin, begin + share});
      begin += share;
    }
    parts.back().end = 1;
    // A tied parameter lies in a stage once.
    std::set<unsigned> seen;
    for (unsigned unit : stage.units)
      for (unsigned parameter : table.units[unit].parameters)
        if (seen.insert(parameter).second)
          stages[parameter].push_back({parts, stage.state_share});
  }

  // Between any two cuts of any holder, each holder owns a part by its share,
  // in the order of the plan.
  static Parts ownersOf(llvm::ArrayRef<Held> stages, llvm::StringRef rule,
                        std::optional<unsigned> pinned) {
    if (stages.empty())
      return {};
    const Held *only = rule == "first" ? stages.data() : nullptr;
    if (pinned)
      for (const Held &held : stages)
        if (llvm::any_of(held.parts, [&](const Part &part) {
              return part.device == pinned;
            }))
          only = &held;
    if (only)
      return only->parts;
    double all = 0;
    for (const Held &held : stages)
      all += static_cast<double>(held.state_share);
    Parts owners;
    std::vector<double> cuts = cutsOf(stages);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      double begin = cuts[i], each = (cuts[i + 1] - begin) / all;
      for (const Held &held : stages) {
        if (held.state_share == 0)
          continue;
        double part = each * static_cast<double>(held.state_share);
        owners.push_back({holderOf(held.parts, begin), begin, begin + part});
        begin += part;
      }
      owners.back().end = cuts[i + 1];
    }
    return owners;
  }

  static std::vector<double> cutsOf(llvm::ArrayRef<Held> stages) {
    std::vector<double> cuts;
    for (const Held &held : stages)
      for (const Part &part : held.parts) {
        cuts.push_back(part.begin);
        cuts.push_back(part.end);
      }
    llvm::sort(cuts);
    cuts.erase(
        std::unique(cuts.begin(), cuts.end(),
                    [](double a, double b) { return b - a < tolerance; }),
        cuts.end());
    return cuts;
  }

  static unsigned holderOf(const Parts &parts, double place) {
    for (const Part &part : parts)
      if (place < part.end - tolerance)
        return part.device;
    return parts.back().device;
  }
};

class MoveFinder {
public:
  MoveFinder(const Plan &before, const Cluster &clusterBefore,
             const Plan &after, const Cluster &clusterAfter,
             const UnitTable &table)
      : cluster(clusterAfter), table(table), old(before, clusterBefore, table),
        fresh(after, clusterAfter, table),
        stateFactor(stateBytesPerByte(after.optimizer)),
        seconds(clusterAfter.devices().size()) {
    for (const Device &device : clusterBefore.devices())
      survivors.push_back(clusterAfter.findDevice(device.name));
  }

  StateMoves run() {
    for (unsigned parameter = 0; parameter < table.parameters.size();
         ++parameter) {
      for (const Part &part : fresh.holders[parameter])
        need(parameter, StateKind::Weights, part, old.holders[parameter]);
      if (stateFactor > 0)
        for (const Part &part : fresh.owners[parameter])
          need(parameter, StateKind::OptimizerState, part,
               old.owners[parameter]);
    }
    llvm::sort(moves.slices, [](const StateSlice &a, const StateSlice &b) {
      return std::tie(a.to, a.kind, a.parameter, a.begin) <
             std::tie(b.to, b.kind, b.parameter, b.begin);
    });
    for (const Traffic &traffic : seconds)
      moves.seconds = std::max({moves.seconds, traffic.in_s, traffic.out_s});
    return std::move(moves);
  }

private:
  struct Traffic {
    double in_s = 0, out_s = 0;
  };

  // Splits what is needed at the old parts' cuts, and takes each piece from
  // where it is cheapest.
  void need(unsigned parameter, StateKind kind, const Part &wanted,
            const Parts &there) {
    std::vector<double> cuts = {wanted.begin, wanted.end};
    bool hasAny = false;
    for (const Part &part : there) {
      hasAny |= survivors[part.device] == wanted.device;
      for (double cut : {part.begin, part.end})
        if (cut > wanted.begin + tolerance && cut < wanted.end - tolerance)
          cuts.push_back(cut);
    }
    llvm::sort(cuts);
    // What is not divided lies on every device that has a part: it comes with
    // the first piece.
    double whole =
        kind == StateKind::Weights && !table.parameters[parameter].divided;
    bool isFirst = true;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i + 1] - cuts[i] < tolerance)
        continue;
      StateSlice slice;
      slice.parameter = parameter;
      slice.kind = kind;
      slice.begin = cuts[i];
      slice.end = cuts[i + 1];
      slice.to = wanted.device;
      slice.from = source(slice, there);
      slice.bytes = table.parameters[parameter].bytes * (1 - whole) *
                    (slice.end - slice.begin);
      if (kind == StateKind::OptimizerState)
        slice.bytes *= stateFactor;
      if (isFirst && (!hasAny || slice.isThere()))
        slice.bytes += table.parameters[parameter].bytes * whole;
      isFirst = isFirst && hasAny && !slice.isThere();
      add(std::move(slice));
    }
  }

  // The device itself, else one of its node, else who has sent least so far.
  std::optional<unsigned> source(const StateSlice &slice,
                                 const Parts &there) const {
    std::optional<unsigned> best;
    auto rank = [&](unsigned device) {
      bool isNear =
          cluster.devices()[device].node == cluster.devices()[slice.to].node;
      return std::make_tuple(device != slice.to, !isNear, seconds[device].out_s,
                             device);
    };
    for (const Part &part : there) {
      std::optional<unsigned> device = survivors[part.device];
      if (!device || part.begin > slice.begin + tolerance ||
          part.end < slice.end - tolerance)
        continue;
      if (!best || rank(*device) < rank(*best))
        best = device;
    }
    return best;
  }

  void add(StateSlice slice) {
    // Neighbours from one place are one slice.
    if (!moves.slices.empty()) {
      StateSlice &last = moves.slices.back();
      if (last.parameter == slice.parameter && last.kind == slice.kind &&
          last.to == slice.to && last.from == slice.from &&
          slice.begin - last.end < tolerance && slice.begin >= last.begin) {
        last.end = slice.end;
        last.bytes += slice.bytes;
        count(slice);
        return;
      }
    }
    count(slice);
    moves.slices.push_back(std::move(slice));
  }

  void count(const StateSlice &slice) {
    if (slice.isThere()) {
      moves.there_bytes += slice.bytes;
      return;
    }
    Traffic &to = seconds[slice.to];
    if (!slice.from) {
      moves.checkpoint_bytes += slice.bytes;
      to.in_s += slice.bytes / cluster.inter_node.bandwidth_bytes_per_s;
      return;
    }
    double time =
        slice.bytes / cluster.link(*slice.from, slice.to).bandwidth_bytes_per_s;
    to.in_s += time;
    seconds[*slice.from].out_s += time;
    bool isNear =
        cluster.devices()[*slice.from].node == cluster.devices()[slice.to].node;
    (isNear ? moves.near_bytes : moves.far_bytes) += slice.bytes;
  }

  const Cluster &cluster;
  const UnitTable &table;
  StateLayout old, fresh;
  double stateFactor;
  std::vector<std::optional<unsigned>> survivors; ///< of each old device
  std::vector<Traffic> seconds;                   ///< of each new device
  StateMoves moves;
};

} // namespace

StateMoves findStateMoves(const Plan &before, const Cluster &clusterBefore,
                          const Plan &after, const Cluster &clusterAfter,
                          const UnitTable &table) {
  return MoveFinder(before, clusterBefore, after, clusterAfter, table).run();
}

double stateBytesOf(const UnitTable &table, OptimizerKind optimizer) {
  double bytes = 0;
  for (const UnitParameter &parameter : table.parameters)
    bytes += parameter.bytes *
             (1 + (parameter.trained ? stateBytesPerByte(optimizer) : 0));
  return bytes;
}

} // namespace autohet
