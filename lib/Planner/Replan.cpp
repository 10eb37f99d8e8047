//===- Replan.cpp - the next plan when machines come or go ----------------===//

#include "autohet/Planner/Replan.h"
#include "Judge.h"
#include "StateByRoom.h"
#include "autohet/Planner/UnitTableCosts.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <set>

namespace autohet {
namespace {

// With more stages than this, devices stay as they were placed.
constexpr size_t maxAlignedStages = 512;
// Of what is left of a deadline, for a search.
constexpr double searchPart = 0.6;

class Replanner {
public:
  Replanner(const UnitTable &table, const Plan &before,
            const Cluster &clusterBefore, const Cluster &cluster,
            const ReplanOptions &options)
      : table(table), before(before), clusterBefore(clusterBefore),
        cluster(cluster), options(options),
        old(resolvePlan(before, table, clusterBefore)),
        costs(table, cluster, before.optimizer,
              options.planner.memory_fraction) {
    for (const Device &device : clusterBefore.devices())
      survivors.push_back(cluster.findDevice(device.name));
    rememberHeld();
  }

  llvm::Expected<ReplanResult> run() {
    // What the old plan's replicas are worth is looked at behind the search.
    PlannerOptions search = options.planner;
    search.deadline = search.deadline.part(searchPart);
    llvm::Expected<PlannerResult> searched =
        planCluster(table, cluster, search);
    if (!searched)
      return searched.takeError();
    addPlan(searched->best.resolved, "search");
    for (const PlannedStep &step : searched->alternatives)
      addPlan(step.resolved, "search");
    for (const ModeResult &mode : searched->modes)
      if (mode.step)
        addPlan(mode.step->resolved,
                "search, mode " + plannerModeName(mode.mode).str());
    addKept();

    ReplanResult result;
    result.state_bytes = stateBytesOf(table, before.optimizer);
    double fastest = std::numeric_limits<double>::infinity();
    for (const ReplanCandidate &candidate : candidates)
      fastest = std::min(fastest, candidate.step.evaluation.step_s);
    for (ReplanCandidate &candidate : candidates)
      candidate.score =
          options.speed_weight * candidate.step.evaluation.step_s / fastest +
          options.move_weight * candidate.moves.movedBytes() /
              result.state_bytes;
    llvm::sort(candidates, [](const auto &a, const auto &b) {
      return std::make_pair(a.score, a.moves.movedBytes()) <
             std::make_pair(b.score, b.moves.movedBytes());
    });
    result.candidates = std::move(candidates);
    result.planned = std::move(*searched);
    result.planned.best = result.candidates.front().step;
    result.planned.lower_bound_s = std::min(
        result.planned.lower_bound_s, result.planned.best.evaluation.step_s);
    result.moves = result.candidates.front().moves;
    result.origin = result.candidates.front().origin;
    return result;
  }

private:
  //===-- Candidates -------------------------------------------------------===//

  void addPlan(const ResolvedPlan &plan, std::string origin) {
    addJudged(plan, origin);
    ResolvedPlan aligned = align(plan);
    addJudged(aligned, origin + ", devices kept");
  }

  // Numbers of microbatches are chosen again: batches follow the devices.
  void addJudged(ResolvedPlan plan, std::string origin) {
    if (!candidates.empty() && options.planner.deadline.isOver(judging_s))
      return;
    double begin_s = options.planner.deadline.now();
    std::vector<ReplicaLine> lines;
    int64_t samples = 0;
    PlanEvaluation evaluation = costs.evaluate(
        plan, Schedule::OneForwardOneBackward, options.planner.state_owner);
    for (auto [number, replica] : llvm::enumerate(plan.replicas)) {
      double way = 0, period = 0;
      for (const ResolvedStage &stage : replica.stages) {
        double seconds = costs.costModel()
                             ->stageSeconds(stage, replica.microbatch_size)
                             .total();
        way += seconds;
        period = std::max(period, seconds);
      }
      // As it was simulated, where that says more than the stages do.
      double end = evaluation.timelineOf(number).end_s;
      if (replica.microbatches > 1 && end > way)
        period = (end - way) / static_cast<double>(replica.microbatches - 1);
      lines.push_back({period, way, 0});
      samples += replica.microbatch_size * replica.microbatches;
    }
    PlannerOptions quiet = options.planner;
    quiet.max_alternatives = 0;
    Judge judge(costs, quiet);
    judge.shares_state = mayShareState(costs, quiet);
    if (samples == quiet.global_batch)
      judge.consider(plan);
    judge.considerCounts(std::move(plan), lines);
    judging_s = options.planner.deadline.now() - begin_s;
    std::optional<PlannedStep> best = judge.takeBest();
    if (!best || llvm::any_of(candidates, [&](const ReplanCandidate &other) {
          return other.step.plan == best->plan;
        }))
      return;
    ReplanCandidate candidate;
    candidate.moves =
        findStateMoves(before, clusterBefore, best->plan, cluster, table);
    candidate.step = std::move(*best);
    candidate.origin = std::move(origin);
    candidates.push_back(std::move(candidate));
  }

  // Replicas that have all their devices stay; the others' devices, and what
  // was idle or joined, make replicas of their own, or none.
  void addKept() {
    ResolvedPlan kept;
    std::set<unsigned> used;
    int64_t lostSamples = 0;
    for (const ResolvedReplica &replica : old.replicas) {
      ResolvedReplica copy = replica;
      bool isWhole = true;
      for (ResolvedStage &stage : copy.stages) {
        stage.state_share = 1; // who owned the rest may be gone
        for (unsigned &device : stage.devices) {
          isWhole &= survivors[device].has_value();
          device = survivors[device].value_or(0);
        }
      }
      int64_t own = replica.microbatch_size * replica.microbatches;
      if (!isWhole) {
        lostSamples += own;
        continue;
      }
      for (const ResolvedStage &stage : copy.stages)
        used.insert(stage.devices.begin(), stage.devices.end());
      kept.replicas.push_back(std::move(copy));
    }
    if (kept.replicas.empty())
      return;
    addJudged(kept, "kept replicas");
    std::vector<std::string> names;
    for (auto [number, device] : llvm::enumerate(cluster.devices()))
      if (!used.count(number))
        names.push_back(device.name);
    if (names.empty())
      return;
    llvm::Expected<Cluster> rest = cluster.filter(names);
    if (!rest) {
      llvm::consumeError(rest.takeError());
      return;
    }
    // Their part of the batch: that of the lost replicas, or by devices.
    PlannerOptions part = options.planner;
    part.compare.clear();
    part.deadline = part.deadline.part(searchPart);
    int64_t byDevices = options.planner.global_batch *
                        static_cast<int64_t>(names.size()) /
                        static_cast<int64_t>(cluster.devices().size());
    part.global_batch = std::max<int64_t>(1, std::max(lostSamples, byDevices));
    if (part.microbatch_size)
      part.global_batch =
          std::max<int64_t>(1, part.global_batch / *part.microbatch_size) *
          *part.microbatch_size;
    if (part.max_devices) {
      if (*part.max_devices <= used.size())
        return;
      *part.max_devices -= used.size();
    }
    llvm::Expected<PlannerResult> found = planCluster(table, *rest, part);
    if (!found) { // they cannot hold the model: they stay idle
      llvm::consumeError(found.takeError());
      return;
    }
    for (ResolvedReplica replica : found->best.resolved.replicas) {
      for (ResolvedStage &stage : replica.stages)
        for (unsigned &device : stage.devices)
          device = *cluster.findDevice(rest->devices()[device].name);
      kept.replicas.push_back(std::move(replica));
    }
    addJudged(kept, "kept replicas and new ones");
    addJudged(align(kept), "kept replicas and new ones, devices kept");
  }

  //===-- Devices ----------------------------------------------------------===//

  // [new device]: bytes of each parameter that lie there.
  void rememberHeld() {
    held.resize(cluster.devices().size());
    oldReplica.assign(held.size(), std::numeric_limits<unsigned>::max());
    for (auto [number, replica] : llvm::enumerate(old.replicas))
      for (const ResolvedStage &stage : replica.stages)
        for (auto [device, share] :
             llvm::zip_equal(stage.devices, sharesOf(stage.weights))) {
          if (!survivors[device])
            continue;
          oldReplica[*survivors[device]] = number;
          for (unsigned unit : stage.units)
            for (unsigned parameter : table.units[unit].parameters)
              held[*survivors[device]][parameter] = share;
        }
  }

  double heldBytes(unsigned device, const ResolvedStage &stage,
                   double share) const {
    double bytes = 0;
    for (unsigned unit : stage.units)
      for (unsigned parameter : table.units[unit].parameters) {
        auto found = held[device].find(parameter);
        if (found != held[device].end())
          bytes += table.parameters[parameter].bytes *
                   std::min(share, found->second);
      }
    return bytes;
  }

  double heldBytes(llvm::ArrayRef<unsigned> devices,
                   const ResolvedStage &stage) const {
    double bytes = 0;
    for (auto [device, share] :
         llvm::zip_equal(devices, sharesOf(stage.weights)))
      bytes += heldBytes(device, stage, share);
    return bytes;
  }

  /// Devices that may stand for each other: of the same classes, in this order.
  std::vector<unsigned> classesOf(llvm::ArrayRef<unsigned> devices) const {
    std::vector<unsigned> classes;
    for (unsigned device : devices)
      classes.push_back(costs.classes().classOf(device));
    return classes;
  }

  // Exchanges equal devices of stages, and with idle ones, while more stays
  // where it is; then puts replicas into the order of those that they were.
  ResolvedPlan align(ResolvedPlan plan) const {
    std::vector<ResolvedStage *> stages;
    std::vector<bool> used(cluster.devices().size());
    for (ResolvedReplica &replica : plan.replicas)
      for (ResolvedStage &stage : replica.stages) {
        stages.push_back(&stage);
        for (unsigned device : stage.devices)
          used[device] = true;
      }
    if (stages.size() > maxAlignedStages)
      return plan;
    for (bool helped = true; helped;) {
      helped = false;
      for (size_t one = 0; one < stages.size(); ++one) {
        for (size_t other = one + 1; other < stages.size(); ++other)
          helped |= exchange(*stages[one], *stages[other]);
        helped |= takeIdle(*stages[one], used);
      }
    }
    auto place = [&](const ResolvedReplica &replica) {
      unsigned first = std::numeric_limits<unsigned>::max();
      for (const ResolvedStage &stage : replica.stages)
        for (unsigned device : stage.devices)
          first = std::min(first, oldReplica[device]);
      return first;
    };
    std::vector<std::pair<unsigned, size_t>> order;
    for (auto [number, replica] : llvm::enumerate(plan.replicas))
      order.push_back({place(replica), number});
    llvm::sort(order);
    ResolvedPlan sorted;
    for (auto [first, number] : order)
      sorted.replicas.push_back(std::move(plan.replicas[number]));
    return sorted;
  }

  bool exchange(ResolvedStage &one, ResolvedStage &other) const {
    constexpr double leastGain = 1;
    if (one.devices.size() != other.devices.size() ||
        classesOf(one.devices) != classesOf(other.devices))
      return false;
    double now = heldBytes(one.devices, one) + heldBytes(other.devices, other);
    double then = heldBytes(other.devices, one) + heldBytes(one.devices, other);
    if (then < now + leastGain)
      return false;
    std::swap(one.devices, other.devices);
    return true;
  }

  // A single device's place; the members of a larger stage share a node.
  bool takeIdle(ResolvedStage &stage, std::vector<bool> &used) const {
    if (stage.devices.size() != 1)
      return false;
    unsigned now = stage.devices.front(), best = now;
    double most = heldBytes(stage.devices, stage) + 1;
    unsigned index = costs.classes().classOf(now);
    for (unsigned device : costs.classes()[index].devices) {
      if (used[device])
        continue;
      double bytes = heldBytes({device}, stage);
      if (bytes > most)
        most = bytes, best = device;
    }
    if (best == now)
      return false;
    used[now] = false;
    used[best] = true;
    stage.devices.front() = best;
    return true;
  }

  const UnitTable &table;
  const Plan &before;
  const Cluster &clusterBefore, &cluster;
  const ReplanOptions &options;
  ResolvedPlan old;
  UnitTableCosts costs;
  std::vector<std::optional<unsigned>> survivors; ///< of each old device
  std::vector<std::map<unsigned, double>> held;   ///< share by parameter
  std::vector<unsigned> oldReplica;
  std::vector<ReplanCandidate> candidates;
  double judging_s = 0; ///< what the last one took
};

} // namespace

llvm::Expected<ReplanResult> replan(const UnitTable &table, const Plan &before,
                                    const Cluster &clusterBefore,
                                    const Cluster &clusterAfter,
                                    const ReplanOptions &options) {
  const std::string &owner = options.planner.state_owner;
  if (owner != "spread" && owner != "first" && !clusterAfter.findDevice(owner))
    return llvm::createStringError("the owner of the optimizer's state, '" +
                                   owner +
                                   "', is not there any more: name another");
  ReplanOptions same = options;
  same.planner.optimizer = before.optimizer; // its state is what moves
  return Replanner(table, before, clusterBefore, clusterAfter, same).run();
}

} // namespace autohet
