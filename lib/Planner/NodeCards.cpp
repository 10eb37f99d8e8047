//===- NodeCards.cpp - network cards that devices share -------------------===//

#include "NodeCards.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {
namespace {

/// What a stage's devices in one node exchange with other nodes.
struct NodeTraffic {
  CardBytes first, second;
  double ready_s = 0;  ///< its first gradients
  double done_s = 0;   ///< its last backward
  double message = 0;  ///< the part of it that is complete last
  double needed_s = 0; ///< the first forward of the next step
  CardTimes *times = nullptr;
};

/// The card in one direction, each stage when it is ready.
void queueOneWay(std::vector<NodeTraffic> &stages, double CardBytes::*way,
                 double bytesPerSecond) {
  auto secondsOf = [&](const CardBytes &bytes) {
    return bytes.*way / bytesPerSecond;
  };
  llvm::sort(stages, [](const NodeTraffic &a, const NodeTraffic &b) {
    return a.ready_s < b.ready_s;
  });
  double free_s = 0;
  std::vector<double> ends;
  for (const NodeTraffic &stage : stages) {
    double own = secondsOf(stage.first);
    free_s = std::max(free_s, stage.ready_s) + own;
    ends.push_back(std::max(free_s, stage.done_s + own * stage.message));
  }
  for (auto [stage, end] : llvm::zip_equal(stages, ends)) {
    if (double own = secondsOf(stage.second); own > 0)
      end = free_s = std::max(free_s, end) + own;
    if (secondsOf(stage.first) + secondsOf(stage.second) > 0)
      stage.times->end_s = std::max(stage.times->end_s, end);
  }
  // New parameters: those that are needed first come first.
  llvm::sort(stages, [](const NodeTraffic &a, const NodeTraffic &b) {
    return a.needed_s < b.needed_s;
  });
  double through_s = 0;
  for (const NodeTraffic &stage : stages) {
    double own = secondsOf(stage.first) + secondsOf(stage.second);
    through_s += own;
    if (own == 0 || through_s <= stage.times->back_s)
      continue;
    stage.times->back_s = through_s;
    stage.times->own_back_s = own;
    stage.times->message = stage.message;
  }
}

} // namespace

std::vector<std::vector<CardTimes>>
timeCards(const ResolvedPlan &plan, const PlanEvaluation &result,
          llvm::ArrayRef<Traffic> traffic, llvm::ArrayRef<unsigned> kinds,
          StepBorder &border, const Cluster &cluster) {
  std::vector<std::vector<CardTimes>> times;
  for (const ResolvedReplica &replica : plan.replicas)
    times.emplace_back(replica.stages.size());
  std::map<unsigned, std::map<Holder, NodeTraffic>> ofNode;
  for (auto [entry, kind] : llvm::zip_equal(result.devices, kinds)) {
    const Traffic &own = traffic[kind];
    unsigned node = cluster.devices()[entry.device].node;
    if (cluster.nodes[node].nic_bytes_per_s == 0)
      continue;
    NodeTraffic &stage = ofNode[node][{entry.replica, entry.stage}];
    stage.first += own.first_card;
    stage.second += own.second_card;
    const PipelineTimeline &timeline = result.timelineOf(entry.replica);
    PipelineCommand last = timeline.last(entry.stage);
    stage.message = border.firstMessage(entry);
    stage.ready_s = last.start_s;
    stage.done_s = last.end_s;
    stage.needed_s = timeline.first(entry.stage).start_s;
    stage.times = &times[entry.replica][entry.stage];
  }
  for (const auto &[node, byHolder] : ofNode) {
    std::vector<NodeTraffic> stages;
    for (const auto &[holder, stage] : byHolder)
      stages.push_back(stage);
    for (double CardBytes::*way : {&CardBytes::out, &CardBytes::in})
      queueOneWay(stages, way, cluster.nodes[node].nic_bytes_per_s);
  }
  return times;
}

} // namespace autohet
