//===- Evaluation.cpp - what a plan costs ---------------------------------===//

#include "autohet/Planner/Evaluation.h"
#include "GradientTraffic.h"
#include "NodeCards.h"
#include "StepBorder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace autohet {
namespace {

std::vector<unsigned> stagesOfUnits(const ResolvedReplica &replica,
                                    const UnitTable &table) {
  std::vector<unsigned> stageOf(table.units.size());
  for (auto [s, stage] : llvm::enumerate(replica.stages))
    for (unsigned unit : stage.units)
      stageOf[unit] = s;
  return stageOf;
}

/// What one sample brings into each stage and takes out of it.
std::vector<StageTies> transfersOf(const ResolvedReplica &replica,
                                   const UnitTable &table) {
  std::vector<StageTies> ties(replica.stages.size());
  std::vector<unsigned> stageOf = stagesOfUnits(replica, table);
  for (auto [from, unit] : llvm::enumerate(table.units))
    for (const UnitEdge &edge : unit.successors)
      if (stageOf[from] != stageOf[edge.to]) {
        ties[stageOf[edge.to]].received_bytes += edge.bytes_per_sample;
        ties[stageOf[from]].sent_bytes += edge.bytes_per_sample;
      }
  return ties;
}

int64_t inFlightOf(const ResolvedReplica &replica, unsigned stage,
                   Schedule schedule, const CostModel &costs) {
  return costs.hasBackward()
             ? microbatchesInFlight(schedule, stage, replica.stages.size(),
                                    replica.microbatches)
             : kForwardOnlyInFlight;
}

/// What makes replicas take equal times: sizes, units, classes of devices, and
/// which devices share nodes.
using ReplicaMake = std::vector<int64_t>;

ReplicaMake makeOf(const ResolvedReplica &replica, const CostModel &costs) {
  ReplicaMake make = {replica.microbatch_size, replica.microbatches};
  llvm::SmallDenseMap<unsigned, int64_t> nodes;
  for (const ResolvedStage &stage : replica.stages) {
    make.push_back(-1);
    for (auto [index, unit] : llvm::enumerate(stage.units))
      if (index == 0 || unit != stage.units[index - 1] + 1)
        make.push_back(unit);
    make.push_back(stage.units.size());
    make.push_back(static_cast<int64_t>(stage.keeping));
    for (auto [device, weight] :
         llvm::zip_equal(stage.devices, stage.weights)) {
      make.push_back(costs.machineClasses().classOf(device));
      unsigned node = costs.machines().devices()[device].node;
      make.push_back(nodes.try_emplace(node, nodes.size()).first->second);
      make.push_back(weight);
    }
  }
  return make;
}

/// Beyond so many devices, replicas of one make in nodes that do the same work
/// are taken to exchange alike.
constexpr size_t maxExactDevices = 256;

/// What relays must gain over a direct exchange.
constexpr double leastGain = 0.001;

class Evaluator {
public:
  Evaluator(const ResolvedPlan &plan, Schedule schedule,
            llvm::StringRef stateOwner, const CostModel &costs,
            std::optional<GradientExchange> wanted)
      : plan(plan), schedule(schedule), costs(costs), wanted(wanted),
        owners(plan, stateOwner, costs), exchange(owners, costs) {}

  PlanEvaluation run() {
    std::map<ReplicaMake, unsigned> makes;
    for (auto [r, replica] : llvm::enumerate(plan.replicas)) {
      auto [place, isNew] =
          makes.try_emplace(makeOf(replica, costs), makes.size());
      result.make_of_replica.push_back(place->second);
      if (isNew) {
        Pipeline pipeline = buildPipeline(replica, schedule, costs);
        result.timelines.push_back(runPipeline(pipeline));
        longest_s = std::max(longest_s, result.timelines.back().end_s);
        result.forward_periods_s.push_back(pipeline.forwardPeriod());
      }
      addDevices(r);
    }
    if (costs.hasBackward())
      synchronize();
    else
      finishForward();
    bubble();
    result.step_s = result.pipeline_s + result.exposed_sync_s +
                    result.agreement_s + result.update_s +
                    result.exposed_parameters_s;
    return std::move(result);
  }

private:
  /// What replicas of one make have in common.
  struct MakeFacts {
    std::vector<StageTies> ties;                 ///< of each stage
    std::vector<std::vector<MemoryNeed>> memory; ///< and of each position
  };

  void addDevices(unsigned r) {
    const ResolvedReplica &replica = plan.replicas[r];
    unsigned make = result.make_of_replica[r];
    bool isNew = facts.size() <= make;
    if (isNew) {
      facts.emplace_back().ties = transfersOf(replica, costs.units());
      facts[make].memory.resize(replica.stages.size());
    }
    MakeFacts &known = facts[make];
    for (unsigned s = 0; s < replica.stages.size(); ++s) {
      const ResolvedStage &stage = replica.stages[s];
      // Where holders own unlike parts, equal replicas may differ in that.
      if (isNew || !owners.isEven()) {
        known.memory[s].clear();
        int64_t inFlight = inFlightOf(replica, s, schedule, costs);
        for (unsigned position = 0; position < stage.devices.size();
             ++position) {
          owners.setShares({r, s}, position, known.ties[s]);
          known.memory[s].push_back(costs.memory(
              stage.units, stage.weights, position, replica.microbatch_size,
              inFlight, known.ties[s], stage.keeping));
        }
      }
      double busy = result.timelineOf(r).busySeconds(s);
      for (auto [position, device] : llvm::enumerate(stage.devices)) {
        DeviceEvaluation &entry = result.devices.emplace_back();
        entry.device = device;
        entry.replica = r;
        entry.stage = s;
        entry.position = position;
        entry.memory = known.memory[s][position];
        entry.busy_s = busy;
      }
    }
  }

  void finishForward() {
    result.latency_s = longest_s;
    for (auto [replica, make] :
         llvm::zip_equal(plan.replicas, result.make_of_replica))
      result.interval_s = std::max(result.interval_s,
                                   static_cast<double>(replica.microbatches) *
                                       result.forward_periods_s[make]);
    if (costs.planObjective() == PlanObjective::Throughput)
      longest_s = result.interval_s;
    result.pipeline_s = longest_s;
    result.exposed_of_replica_s.assign(plan.replicas.size(), 0);
  }

  /// What one way of exchanging takes in the whole plan.
  struct ExchangeTime {
    std::vector<Traffic> traffic;
    std::vector<unsigned> kinds; ///< of each of the result's devices
    std::vector<double> exposed_of_replica_s;
    // Of the replica that is last with all of it.
    double pipeline_s = 0, exposed_sync_s = 0, exposed_parameters_s = 0;
    double update_s = 0;

    double total() const {
      return pipeline_s + exposed_sync_s + exposed_parameters_s + update_s;
    }
  };

  void synchronize() {
    numberNodes();
    StepBorder border(plan, result, owners, costs);
    ExchangeTime best =
        timeExchange(border, wanted.value_or(GradientExchange::Direct));
    result.gradient_exchange = wanted.value_or(GradientExchange::Direct);
    if (!wanted && mayRelay()) {
      ExchangeTime other = timeExchange(border, GradientExchange::Hierarchical);
      if (other.total() * (1 + leastGain) < best.total()) {
        best = std::move(other);
        result.gradient_exchange = GradientExchange::Hierarchical;
      }
    }
    for (auto [entry, kind] : llvm::zip_equal(result.devices, best.kinds)) {
      const Traffic &traffic = best.traffic[kind];
      entry.sync_s = traffic.first_s + traffic.second_s;
      // No less than directly, which is what searches reckon with.
      double &bytes = entry.memory.exchange_bytes;
      bytes = std::max(bytes,
                       exchangeBytes(traffic.buffer_bytes,
                                     entry.memory.activation_bytes,
                                     inFlightOf(plan.replicas[entry.replica],
                                                entry.stage, schedule, costs)));
    }
    result.update_s = best.update_s;
    result.exposed_of_replica_s = std::move(best.exposed_of_replica_s);
    result.pipeline_s = best.pipeline_s;
    result.exposed_sync_s = best.exposed_sync_s;
    result.exposed_parameters_s = best.exposed_parameters_s;
    if (result.devices.size() > 1)
      result.agreement_s =
          2 * largestLatency() * llvm::Log2_64_Ceil(result.devices.size());
  }

  /// Whether relays change anything: with one node, or one holder in each, they
  /// have nothing to pass on.
  bool mayRelay() const {
    return llvm::any_of(owners.cellClasses(), [](const CellClass &cells) {
      return cells.nodeCount() > 1 && cells.nodeCount() < cells.parties.size();
    });
  }

  /// Make, stage, position, share in state.
  using DeviceWork = std::array<int64_t, 4>;

  DeviceWork workOf(const DeviceEvaluation &entry) const {
    return {result.make_of_replica[entry.replica], entry.stage, entry.position,
            owners.stageOf({entry.replica, entry.stage}).state_share};
  }

  /// Nodes whose devices do the same work get one number.
  void numberNodes() {
    std::vector<std::vector<DeviceWork>> work(costs.machines().nodes.size());
    for (const DeviceEvaluation &entry : result.devices)
      work[nodeOf(entry)].push_back(workOf(entry));
    std::map<std::vector<DeviceWork>, unsigned> known;
    for (auto &ofNode : work) {
      llvm::sort(ofNode);
      kind_of_node.push_back(
          known.try_emplace(ofNode, known.size()).first->second);
    }
  }

  // Every holder sends each owner that owner's part of its gradient, itself or
  // through a relay; new parameters take the same ways back. A device sends
  // and receives at once.
  ExchangeTime timeExchange(StepBorder &border, GradientExchange how) {
    ExchangeTime time;
    bool isExact = result.devices.size() <= maxExactDevices;
    std::map<std::pair<DeviceWork, unsigned>, unsigned> known;
    for (const DeviceEvaluation &entry : result.devices) {
      auto [place, isNew] = known.try_emplace(
          {workOf(entry), kind_of_node[nodeOf(entry)]}, time.traffic.size());
      if (isNew || isExact) {
        place->second = time.traffic.size();
        time.traffic.push_back(
            exchange.of(entry, result.make_of_replica[entry.replica], how));
      }
      time.kinds.push_back(place->second);
    }
    StepBorderTimes times = border.time(time.traffic, time.kinds);
    addCards(timeCards(plan, result, time.traffic, time.kinds, border,
                       costs.machines()),
             times);
    double last_s = -1;
    for (const ReplicaBorder &replica : times.replicas)
      last_s = std::max(last_s, replica.end());
    // What follows when all have sent is one wait of all.
    double rest_s = times.end_s - last_s;
    for (auto [r, replica] : llvm::enumerate(times.replicas)) {
      double pipeline_s = result.timelineOf(r).end_s;
      time.exposed_of_replica_s.push_back(replica.end() - pipeline_s + rest_s);
      if (replica.end() < last_s || time.pipeline_s > 0)
        continue;
      time.pipeline_s = pipeline_s;
      time.exposed_parameters_s = replica.late_s - replica.update_s;
      time.exposed_sync_s =
          std::max(0.0, replica.sent_s - replica.late_s - pipeline_s);
      time.update_s = times.end_s - pipeline_s - time.exposed_sync_s -
                      time.exposed_parameters_s;
    }
    return time;
  }

  // A card that several share may be busy for longer than any of their links.
  void addCards(const std::vector<std::vector<CardTimes>> &cards,
                StepBorderTimes &times) {
    for (auto [r, replica] : llvm::enumerate(times.replicas)) {
      const PipelineTimeline &timeline = result.timelineOf(r);
      double before_s = replica.late_s;
      for (auto [s, card] : llvm::enumerate(cards[r])) {
        const PipelineCommand &first = timeline.first(s);
        double others_s = card.back_s - card.own_back_s;
        replica.late_s =
            std::max({replica.late_s,
                      others_s + card.own_back_s * card.message - first.start_s,
                      card.back_s - first.end_s});
      }
      double more_s = replica.late_s - before_s;
      replica.sent_s += more_s;
      replica.end_s += more_s;
      times.end_s = std::max(times.end_s, replica.end());
      for (const CardTimes &card : cards[r])
        replica.sent_s = std::max(replica.sent_s, replica.late_s + card.end_s);
      times.end_s = std::max(times.end_s, replica.end());
    }
  }

  unsigned nodeOf(const DeviceEvaluation &entry) const {
    return costs.machines().devices()[entry.device].node;
  }

  // Over all pairs of devices that are used, by class: there are few classes.
  double largestLatency() const {
    const MachineClasses &classes = costs.machineClasses();
    double largest = 0;
    std::map<unsigned, std::set<unsigned>> classesOfNode;
    std::set<unsigned> used;
    for (const DeviceEvaluation &entry : result.devices) {
      unsigned own = classes.classOf(entry.device);
      auto &inside = classesOfNode[nodeOf(entry)];
      for (unsigned other : inside)
        largest = std::max({largest, classes.link(own, other, true).latency_s,
                            classes.link(other, own, true).latency_s});
      inside.insert(own);
      used.insert(own);
    }
    if (classesOfNode.size() > 1)
      for (unsigned from : used)
        for (unsigned to : used)
          if (from != to || classes[from].devices.size() > 1)
            largest =
                std::max(largest, classes.link(from, to, false).latency_s);
    return largest;
  }

  void bubble() {
    double idle = 0, all = 0;
    for (const DeviceEvaluation &entry : result.devices) {
      double rate = costs.machines().kindOf(entry.device).flops_per_s;
      idle += rate * (longest_s - entry.busy_s);
      all += rate * longest_s;
    }
    result.bubble = all > 0 ? idle / all : 0;
  }

  const ResolvedPlan &plan;
  Schedule schedule;
  const CostModel &costs;
  std::optional<GradientExchange> wanted;
  Ownership owners;
  GradientTraffic exchange;
  double longest_s = 0;               ///< pipeline
  std::vector<unsigned> kind_of_node; ///< equal: they do the same work
  std::vector<MakeFacts> facts;       ///< of each make
  PlanEvaluation result;
};

} // namespace

Pipeline buildPipeline(const ResolvedReplica &replica, Schedule schedule,
                       const CostModel &costs) {
  Pipeline pipeline;
  pipeline.microbatches = replica.microbatches;
  pipeline.schedule = schedule;
  pipeline.is_forward_only = !costs.hasBackward();
  double samples = static_cast<double>(replica.microbatch_size);
  for (const ResolvedStage &stage : replica.stages)
    pipeline.stages.push_back(
        costs.stageSeconds(stage, replica.microbatch_size));
  std::map<std::pair<unsigned, unsigned>, double> bytes; // to, from
  std::vector<unsigned> stageOf = stagesOfUnits(replica, costs.units());
  for (auto [from, unit] : llvm::enumerate(costs.units().units))
    for (const UnitEdge &edge : unit.successors)
      if (stageOf[from] != stageOf[edge.to] && edge.bytes_per_sample > 0)
        bytes[{stageOf[edge.to], stageOf[from]}] += edge.bytes_per_sample;
  for (auto [stages, count] : bytes) {
    const ResolvedStage &sender = replica.stages[stages.second];
    const ResolvedStage &receiver = replica.stages[stages.first];
    unsigned senders = sender.devices.size(),
             receivers = receiver.devices.size();
    pipeline.edges.push_back({stages.second, stages.first, count * samples,
                              costs.groupLink(sender.devices, receiver.devices),
                              costs.groupLink(receiver.devices, sender.devices),
                              llvm::divideCeil(receivers, senders),
                              llvm::divideCeil(senders, receivers)});
  }
  return pipeline;
}

PlanEvaluation evaluatePlan(const ResolvedPlan &plan, Schedule schedule,
                            llvm::StringRef stateOwner, const CostModel &costs,
                            std::optional<GradientExchange> exchange) {
  return Evaluator(plan, schedule, stateOwner, costs, exchange).run();
}

double estimateMemory(const ResolvedPlan &plan, unsigned r, unsigned s,
                      unsigned position, Schedule schedule,
                      llvm::StringRef stateOwner, const CostModel &costs) {
  const ResolvedReplica &replica = plan.replicas[r];
  const ResolvedStage &stage = replica.stages[s];
  StageTies ties = transfersOf(replica, costs.units())[s];
  Ownership(plan, stateOwner, costs).setShares({r, s}, position, ties);
  return costs
      .memory(stage.units, stage.weights, position, replica.microbatch_size,
              inFlightOf(replica, s, schedule, costs), ties, stage.keeping)
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
