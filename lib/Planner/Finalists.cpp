//===- Finalists.cpp - from groupings to the one plan ---------------------===//

#include "Finalists.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

// Rounds of improvement: each tries every small change once.
static constexpr unsigned maxRounds = 20;
// What GPipe must gain over one-forward-one-backward.
static constexpr double gpipeGain = 0.01;

/// GPipe holds all microbatches' activations: it must be faster to be worth
/// that.
static bool isBetter(double seconds, Schedule schedule,
                     const std::optional<PlannedStep> &best) {
  if (!best)
    return true;
  bool mustGain =
      schedule == Schedule::GPipe && best->plan.schedule != Schedule::GPipe;
  return seconds * (mustGain ? 1 + gpipeGain : 1) < best->evaluation.step_s;
}

bool keepIfBetter(const ResolvedPlan &plan, const CostModel &costs,
                  const PlannerOptions &options,
                  std::optional<PlannedStep> &best,
                  llvm::function_ref<void(const PlanEvaluation &)> seen) {
  bool improved = false;
  for (Schedule schedule : {Schedule::OneForwardOneBackward, Schedule::GPipe}) {
    if (options.schedule && schedule != *options.schedule)
      continue;
    PlanEvaluation evaluation =
        evaluatePlan(plan, schedule, options.state_owner, costs);
    bool fits =
        llvm::all_of(evaluation.devices, [&](const DeviceEvaluation &entry) {
          return entry.memory.total() <=
                 options.memory_fraction *
                     costs.machines().kindOf(entry.device).memory_bytes;
        });
    if (!fits)
      continue;
    seen(evaluation);
    if (!isBetter(evaluation.step_s, schedule, best))
      continue;
    best.emplace();
    best->resolved = plan;
    best->plan.schedule = schedule;
    best->evaluation = std::move(evaluation);
    improved = true;
  }
  return improved;
}

void writePlan(PlannedStep &step, const CostModel &costs,
               const PlannerOptions &options) {
  step.plan.structure_hash = costs.units().structure_hash;
  step.plan.global_batch = options.global_batch;
  step.plan.optimizer = options.optimizer;
  step.plan.state_owner = options.state_owner;
  step.plan.replicas =
      nameReplicas(step.resolved, costs.units(), costs.machines());
}

// Exact counts for the grouping's best shapes, and with them the shapes.
std::optional<ResolvedPlan>
Finalists::build(const Grouping &grouping,
                 llvm::ArrayRef<int64_t> microbatchSizes) {
  BatchProblem problem;
  problem.global_batch = options.global_batch;
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
  if (!plan || !consider(std::move(*plan)))
    return;
  bestGrouping = grouping;
  bestSizes = std::move(equal);
}

bool Finalists::consider(ResolvedPlan plan) {
  size_t all = costs.machines().devices().size();
  return keepIfBetter(
      plan, costs, options, best, [&](const PlanEvaluation &evaluation) {
        if (evaluation.devices.size() == all)
          best_using_all_s = std::min(
              evaluation.step_s, best_using_all_s.value_or(evaluation.step_s));
      });
}

void Finalists::improve() {
  if (!best)
    return;
  for (unsigned round = 0; round < maxRounds; ++round) {
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
      std::vector<int64_t> changed = bestSizes;
      if (changed[r] == size)
        continue;
      changed[r] = size;
      std::optional<ResolvedPlan> plan = build(*bestGrouping, changed);
      if (!plan || !consider(std::move(*plan)))
        continue;
      bestSizes = std::move(changed);
      improved = true;
    }
  return improved;
}

// One unit across one cut. Stages of a chain are runs of units.
bool Finalists::moveCuts() {
  bool improved = false;
  for (size_t r = 0; r < best->resolved.replicas.size(); ++r)
    for (size_t s = 0; s + 1 < best->resolved.replicas[r].stages.size(); ++s)
      for (bool isForward : {true, false}) {
        ResolvedPlan plan = best->resolved;
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
        improved |= consider(std::move(plan));
      }
  return improved;
}

// One microbatch from one replica to another of the same size.
bool Finalists::moveMicrobatches() {
  bool improved = false;
  size_t count = best->resolved.replicas.size();
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to) {
      ResolvedPlan plan = best->resolved;
      ResolvedReplica &giver = plan.replicas[from];
      ResolvedReplica &taker = plan.replicas[to];
      if (from == to || giver.microbatches < 2 ||
          giver.microbatch_size != taker.microbatch_size)
        continue;
      --giver.microbatches;
      ++taker.microbatches;
      improved |= consider(std::move(plan));
    }
  return improved;
}

} // namespace autohet
