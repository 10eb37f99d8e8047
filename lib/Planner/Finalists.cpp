//===- Finalists.cpp - from groupings to the one plan ---------------------===//

#include "Finalists.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

// Rounds of improvement: each tries every small change once.
static constexpr unsigned maxRounds = 20;
// Exact counts for the grouping's best shapes, and with them the shapes.
std::optional<ResolvedPlan>
Finalists::build(const Grouping &grouping,
                 llvm::ArrayRef<int64_t> microbatchSizes) {
  BatchProblem problem;
  problem.global_batch = judge.plannerOptions().global_batch;
  std::vector<const ReplicaFront *> fronts;
  std::vector<std::vector<unsigned>> devices = classes.assign(grouping.groups);
  for (auto [group, size] : llvm::zip_equal(devices, microbatchSizes)) {
    const ReplicaFront &front =
        replicas.solve(group, size, devices.size(), /*thorough=*/true);
    if (front.empty())
      return std::nullopt;
    fronts.push_back(&front);
    BatchProblem::ReplicaCost &cost = problem.replicas.emplace_back();
    cost.microbatch_size = size;
    for (const ReplicaShape &shape : front)
      cost.lines.push_back({shape.period_s, shape.way_s});
  }
  std::optional<BatchCounts> counts = solveBatch(problem);
  if (!counts)
    return std::nullopt;
  ResolvedPlan plan;
  for (auto [front, count, size] :
       llvm::zip_equal(fronts, *counts, microbatchSizes)) {
    const ReplicaShape *shape = &front->front();
    for (const ReplicaShape &other : *front)
      if (other.seconds(count) < shape->seconds(count))
        shape = &other;
    plan.replicas.push_back({size, count, shape->stages});
  }
  return plan;
}

void Finalists::consider(const Grouping &grouping) {
  std::vector<int64_t> equal(grouping.groups.size(), grouping.microbatch_size);
  std::optional<ResolvedPlan> plan = build(grouping, equal);
  if (!plan || !judge.consider(*plan))
    return;
  bestGrouping = grouping;
  bestSizes = std::move(equal);
}

void Finalists::improve() {
  if (!judge.best)
    return;
  for (unsigned round = 0; round < maxRounds && !judge.isLate(); ++round) {
    bool improved = bestGrouping && changeSizes();
    improved |= moveCuts();
    improved |= moveMicrobatches();
    if (!improved)
      return;
  }
}

bool Finalists::changeSizes() {
  bool improved = false;
  for (size_t r = 0; r < bestSizes.size(); ++r)
    for (int64_t size : sizes) {
      if (judge.isLate())
        return improved;
      std::vector<int64_t> changed = bestSizes;
      if (changed[r] == size)
        continue;
      changed[r] = size;
      std::optional<ResolvedPlan> plan = build(*bestGrouping, changed);
      if (!plan || !judge.consider(*plan))
        continue;
      bestSizes = std::move(changed);
      improved = true;
    }
  return improved;
}

// One unit across one cut. Stages of a chain are runs of units.
bool Finalists::moveCuts() {
  bool improved = false;
  for (size_t r = 0; r < judge.best->resolved.replicas.size(); ++r)
    for (size_t s = 0; s + 1 < judge.best->resolved.replicas[r].stages.size();
         ++s)
      for (bool isForward : {true, false}) {
        if (judge.isLate())
          return improved;
        ResolvedPlan plan = judge.best->resolved;
        std::vector<unsigned> &early = plan.replicas[r].stages[s].units;
        std::vector<unsigned> &late = plan.replicas[r].stages[s + 1].units;
        if ((isForward ? early : late).size() < 2)
          continue;
        if (isForward) {
          late.insert(late.begin(), early.back());
          early.pop_back();
        } else {
          early.push_back(late.front());
          late.erase(late.begin());
        }
        improved |= judge.consider(plan);
      }
  return improved;
}

// One microbatch from one replica to another of the same size.
bool Finalists::moveMicrobatches() {
  bool improved = false;
  size_t count = judge.best->resolved.replicas.size();
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to) {
      if (judge.isLate())
        return improved;
      ResolvedPlan plan = judge.best->resolved;
      ResolvedReplica &giver = plan.replicas[from];
      ResolvedReplica &taker = plan.replicas[to];
      if (from == to || giver.microbatches < 2 ||
          giver.microbatch_size != taker.microbatch_size)
        continue;
      --giver.microbatches;
      ++taker.microbatches;
      improved |= judge.consider(plan);
    }
  return improved;
}

} // namespace autohet
