//===- Evaluation.cpp - what a plan costs ---------------------------------===//

#include "autohet/Planner/Evaluation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace autohet {
namespace {

/// A stage that holds a parameter.
struct Holder {
  unsigned replica, stage;
};

/// Who holds which parameter, and what part of its state each holder owns.
class Ownership {
public:
  Ownership(const ResolvedPlan &plan, llvm::StringRef stateOwner,
            const CostModel &costs)
      : plan(plan), holders(costs.units().parameters.size()) {
    if (stateOwner == "first")
      policy = First;
    else if (stateOwner != "spread")
      pinned = costs.machines().findDevice(stateOwner);
    for (auto [r, replica] : llvm::enumerate(plan.replicas))
      for (auto [s, stage] : llvm::enumerate(replica.stages))
        for (unsigned unit : stage.units)
          for (unsigned parameter : costs.units().units[unit].parameters)
            add(parameter, r, s);
  }

  llvm::ArrayRef<Holder> of(unsigned parameter) const {
    return holders[parameter];
  }

  /// The part of `parameter` that holder number `index` owns.
  double share(unsigned parameter, unsigned index) const {
    llvm::ArrayRef<Holder> all = holders[parameter];
    if (pinned)
      for (auto [candidate, holder] : llvm::enumerate(all))
        if (llvm::is_contained(stageOf(holder).devices, *pinned))
          return candidate == index;
    if (policy == First)
      return index == 0;
    return 1.0 / static_cast<double>(all.size());
  }

  /// The part of a stage's trained bytes that the stage owns.
  double stageShare(unsigned replica, unsigned stage,
                    const UnitTable &table) const {
    double held = 0, owned = 0;
    for (unsigned parameter = 0; parameter < holders.size(); ++parameter) {
      if (!table.parameters[parameter].trained)
        continue;
      for (auto [index, holder] : llvm::enumerate(holders[parameter]))
        if (holder.replica == replica && holder.stage == stage) {
          held += table.parameters[parameter].bytes;
          owned += table.parameters[parameter].bytes * share(parameter, index);
        }
    }
    return held > 0 ? owned / held : 0;
  }

  const ResolvedStage &stageOf(const Holder &holder) const {
    return plan.replicas[holder.replica].stages[holder.stage];
  }

private:
  enum Policy { Spread, First };

  void add(unsigned parameter, unsigned replica, unsigned stage) {
    for (const Holder &holder : holders[parameter])
      if (holder.replica == replica && holder.stage == stage)
        return; // tied, in one stage
    holders[parameter].push_back({replica, stage});
  }

  const ResolvedPlan &plan;
  std::vector<std::vector<Holder>> holders;
  Policy policy = Spread;
  std::optional<unsigned> pinned;
};

double receivedBytes(const ResolvedReplica &replica, unsigned stage,
                     const CostModel &costs) {
  double bytes = 0;
  for (unsigned other = 0; other < stage; ++other)
    bytes += costs.bytesBetween(replica.stages[other].units,
                                replica.stages[stage].units);
  return bytes;
}

class Evaluator {
public:
  Evaluator(const ResolvedPlan &plan, Schedule schedule,
            llvm::StringRef stateOwner, const CostModel &costs)
      : plan(plan), schedule(schedule), costs(costs),
        owners(plan, stateOwner, costs) {}

  PlanEvaluation run() {
    for (auto [r, replica] : llvm::enumerate(plan.replicas)) {
      result.timelines.push_back(
          runPipeline(buildPipeline(replica, schedule, costs)));
      result.pipeline_s =
          std::max(result.pipeline_s, result.timelines.back().end_s);
      for (unsigned s = 0; s < replica.stages.size(); ++s)
        addDevices(r, s);
    }
    synchronize();
    bubble();
    result.step_s = result.pipeline_s + result.exposed_sync_s +
                    result.agreement_s + result.update_s +
                    result.exposed_parameters_s;
    return std::move(result);
  }

private:
  void addDevices(unsigned r, unsigned s) {
    const ResolvedReplica &replica = plan.replicas[r];
    const ResolvedStage &stage = replica.stages[s];
    std::vector<double> shares = sharesOf(stage.weights);
    double owned = owners.stageShare(r, s, costs.units());
    double received = receivedBytes(replica, s, costs);
    int64_t inFlight = microbatchesInFlight(schedule, s, replica.stages.size(),
                                            replica.microbatches);
    for (auto [position, device] : llvm::enumerate(stage.devices)) {
      DeviceEvaluation &entry = result.devices.emplace_back();
      entry.device = device;
      entry.replica = r;
      entry.stage = s;
      entry.position = position;
      entry.memory =
          costs.memory(stage.units, shares[position], replica.microbatch_size,
                       inFlight, owned, received, stage.recompute);
      entry.busy_s = result.timelines[r].busySeconds(s);
    }
  }

  // Every holder sends each owner that owner's part of its gradient; new
  // parameters take the same ways back. A device sends and receives at once.
  void synchronize() {
    std::vector<std::vector<double>> stageSync(plan.replicas.size());
    for (auto [r, replica] : llvm::enumerate(plan.replicas))
      stageSync[r].assign(replica.stages.size(), 0);
    double update = 0, largestLatency = 0;
    for (DeviceEvaluation &entry : result.devices) {
      double out = 0, in = 0, owned = 0;
      std::vector<unsigned> peers;
      exchange(entry, out, in, owned, peers);
      double latency = 0;
      for (unsigned peer : peers)
        latency += costs.link(entry.device, peer).latency_s;
      entry.sync_s = std::max(out, in) + latency;
      double &slowest = stageSync[entry.replica][entry.stage];
      slowest = std::max(slowest, entry.sync_s);
      update = std::max(update, costs.updateSeconds(entry.device, owned));
      for (const DeviceEvaluation &other : result.devices)
        largestLatency = std::max(
            largestLatency, costs.link(entry.device, other.device).latency_s);
    }
    result.update_s = update;
    if (result.devices.size() > 1)
      result.agreement_s =
          2 * largestLatency * llvm::Log2_64_Ceil(result.devices.size());

    // The buckets of a stage follow its last backward unit by unit, and its
    // new parameters come before the next forward unit by unit.
    double end = result.pipeline_s;
    for (auto [r, replica] : llvm::enumerate(plan.replicas))
      for (auto [s, stage] : llvm::enumerate(replica.stages)) {
        const std::vector<PipelineCommand> &commands =
            result.timelines[r].stages[s];
        double sync = stageSync[r][s];
        double units = static_cast<double>(stage.units.size());
        const PipelineCommand &last = commands.back();
        double backward = last.end_s - last.start_s;
        end = std::max({end, last.end_s + sync / units,
                        last.start_s + backward / units + sync});
        const PipelineCommand &first = commands.front();
        result.exposed_parameters_s =
            std::max({result.exposed_parameters_s, sync / units - first.start_s,
                      sync - first.end_s});
      }
    result.exposed_sync_s = end - result.pipeline_s;
  }

  void exchange(const DeviceEvaluation &entry, double &out, double &in,
                double &owned, std::vector<unsigned> &peers) {
    const ResolvedStage &stage =
        plan.replicas[entry.replica].stages[entry.stage];
    std::vector<double> shares = sharesOf(stage.weights);
    std::vector<unsigned> seen;
    for (unsigned unit : stage.units)
      for (unsigned parameter : costs.units().units[unit].parameters) {
        const UnitParameter &data = costs.units().parameters[parameter];
        if (!data.trained || llvm::is_contained(seen, parameter))
          continue;
        seen.push_back(parameter);
        double divisible = costs.units().units[unit].divisible;
        double bytes =
            data.bytes * (1 - divisible + divisible * shares[entry.position]);
        llvm::ArrayRef<Holder> holders = owners.of(parameter);
        double mine = 0;
        for (auto [index, holder] : llvm::enumerate(holders))
          if (holder.replica == entry.replica && holder.stage == entry.stage)
            mine = owners.share(parameter, index);
        owned += bytes * mine;
        for (auto [index, holder] : llvm::enumerate(holders)) {
          if (holder.replica == entry.replica && holder.stage == entry.stage)
            continue;
          llvm::ArrayRef<unsigned> devices = owners.stageOf(holder).devices;
          unsigned peer = devices[entry.position % devices.size()];
          out += bytes * owners.share(parameter, index) /
                 costs.link(entry.device, peer).bandwidth_bytes_per_s;
          in += bytes * mine /
                costs.link(peer, entry.device).bandwidth_bytes_per_s;
          if (!llvm::is_contained(peers, peer))
            peers.push_back(peer);
        }
      }
  }

  void bubble() {
    double idle = 0, all = 0;
    for (const DeviceEvaluation &entry : result.devices) {
      double rate = costs.machines().kindOf(entry.device).flops_per_s;
      idle += rate * (result.pipeline_s - entry.busy_s);
      all += rate * result.pipeline_s;
    }
    result.bubble = all > 0 ? idle / all : 0;
  }

  const ResolvedPlan &plan;
  Schedule schedule;
  const CostModel &costs;
  Ownership owners;
  PlanEvaluation result;
};

} // namespace

Pipeline buildPipeline(const ResolvedReplica &replica, Schedule schedule,
                       const CostModel &costs) {
  Pipeline pipeline;
  pipeline.microbatches = replica.microbatches;
  pipeline.schedule = schedule;
  double samples = static_cast<double>(replica.microbatch_size);
  for (const ResolvedStage &stage : replica.stages)
    pipeline.stages.push_back(
        costs.stageSeconds(stage, replica.microbatch_size));
  for (unsigned to = 0; to < replica.stages.size(); ++to)
    for (unsigned from = 0; from < to; ++from) {
      const ResolvedStage &sender = replica.stages[from];
      const ResolvedStage &receiver = replica.stages[to];
      double bytes = costs.bytesBetween(sender.units, receiver.units);
      if (bytes > 0)
        pipeline.edges.push_back(
            {from, to, bytes * samples,
             costs.groupLink(sender.devices, receiver.devices),
             costs.groupLink(receiver.devices, sender.devices)});
    }
  return pipeline;
}

PlanEvaluation evaluatePlan(const ResolvedPlan &plan, Schedule schedule,
                            llvm::StringRef stateOwner,
                            const CostModel &costs) {
  return Evaluator(plan, schedule, stateOwner, costs).run();
}

double estimateMemory(const ResolvedPlan &plan, unsigned r, unsigned s,
                      unsigned position, Schedule schedule,
                      llvm::StringRef stateOwner, const CostModel &costs) {
  const ResolvedReplica &replica = plan.replicas[r];
  const ResolvedStage &stage = replica.stages[s];
  Ownership owners(plan, stateOwner, costs);
  return costs
      .memory(stage.units, sharesOf(stage.weights)[position],
              replica.microbatch_size,
              microbatchesInFlight(schedule, s, replica.stages.size(),
                                   replica.microbatches),
              owners.stageShare(r, s, costs.units()),
              receivedBytes(replica, s, costs), stage.recompute)
      .total();
}

std::optional<std::pair<unsigned, double>>
PlanEvaluation::worstShortage(const Cluster &cluster) const {
  std::optional<std::pair<unsigned, double>> worst;
  for (auto [index, entry] : llvm::enumerate(devices)) {
    double missing =
        entry.memory.total() - cluster.kindOf(entry.device).memory_bytes;
    if (missing > 0 && (!worst || missing > worst->second))
      worst = {index, missing};
  }
  return worst;
}

} // namespace autohet
