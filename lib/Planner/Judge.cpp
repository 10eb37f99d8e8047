//===- Judge.cpp - whole plans, the best of them and its neighbours -------===//

#include "Judge.h"
#include "StateByRoom.h"
#include "autohet/Planner/BatchProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

// What GPipe must gain over one-forward-one-backward.
static constexpr double gpipeGain = 0.01;
// Rounds of new numbers of microbatches after a look at the last ones' times.
static constexpr unsigned countRounds = 2;
// Plans of more replicas mostly differ, and take long to copy.
static constexpr size_t fewReplicas = 4;

Judge::Judge(const PlanCosts &costs, const PlannerOptions &options,
             Deadline deadline)
    : costs(costs), options(options), ends(std::move(deadline)),
      started_s(ends.now()) {}

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

bool Judge::fits(const PlanEvaluation &evaluation) const {
  return llvm::all_of(evaluation.devices, [&](const DeviceEvaluation &entry) {
    return entry.memory.total() <= costs.memoryRoom(entry.device);
  });
}

/// Whether a device cannot hold what its stage has in flight, even if others
/// own all of the state: much sooner known than a step.
static bool lacksMemory(const ResolvedPlan &plan, Schedule schedule,
                        const PlanCosts &costs) {
  const CostModel *model = costs.costModel();
  if (!model)
    return false;
  for (const ResolvedReplica &replica : plan.replicas)
    for (auto [s, stage] : llvm::enumerate(replica.stages)) {
      int64_t inFlight = microbatchesInFlight(
          schedule, s, replica.stages.size(), replica.microbatches);
      MemoryNeed need =
          model->memory(stage.units, stage.weights, /*position=*/0,
                        replica.microbatch_size, inFlight, {}, stage.keeping);
      if (need.total() > costs.memoryRoom(stage.devices.front()))
        return true;
    }
  return false;
}

static bool areSame(const ResolvedStage &a, const ResolvedStage &b) {
  return a.units == b.units && a.devices == b.devices &&
         a.weights == b.weights && a.state_share == b.state_share &&
         a.keeping == b.keeping;
}

static bool areSame(const ResolvedReplica &a, const ResolvedReplica &b) {
  return a.microbatch_size == b.microbatch_size &&
         a.microbatches == b.microbatches &&
         a.stages.size() == b.stages.size() &&
         std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(),
                    [](const auto &x, const auto &y) { return areSame(x, y); });
}

static bool areSame(const ResolvedPlan &a, const ResolvedPlan &b) {
  return a.replicas.size() == b.replicas.size() &&
         std::equal(a.replicas.begin(), a.replicas.end(), b.replicas.begin(),
                    [](const auto &x, const auto &y) { return areSame(x, y); });
}

// Few large replicas lie alike however they are placed, so that the next plan
// often is the last one again.
PlanEvaluation Judge::evaluate(const ResolvedPlan &plan, Schedule schedule) {
  auto known = last.find(schedule);
  if (known != last.end() && areSame(known->second.plan, plan))
    return known->second.evaluation;
  double begin_s = ends.now();
  PlanEvaluation made = costs.evaluate(plan, schedule, options.state_owner);
  evaluation_s = ends.now() - begin_s;
  if (plan.replicas.size() <= fewReplicas)
    last[schedule] = {plan, made};
  return made;
}

bool Judge::consider(const ResolvedPlan &given, SeenPlan *seen) {
  std::optional<ResolvedPlan> even = withEvenState(given);
  const ResolvedPlan &plan = even ? *even : given;
  bool improved = false, isFirst = true;
  size_t devices = costs.machines().devices().size();
  bool hasPipeline = llvm::any_of(plan.replicas, [](const auto &replica) {
    return replica.stages.size() > 1;
  });
  for (Schedule schedule : {Schedule::OneForwardOneBackward, Schedule::GPipe}) {
    if (options.schedule && schedule != *options.schedule)
      continue;
    // Without stages both are one schedule, and so they are forwards.
    if (!options.schedule && schedule == Schedule::GPipe &&
        !(hasPipeline && costs.hasBackward()))
      continue;
    if (!isFirst && (isLate() || lacksMemory(plan, schedule, costs)))
      break;
    PlanEvaluation evaluation = evaluate(plan, schedule);
    ++evaluated_plans;
    SeenPlan *first = isFirst ? seen : nullptr;
    isFirst = false;
    if (first)
      *first = {evaluation, !fits(evaluation)};
    if (options.max_devices && evaluation.devices.size() > *options.max_devices)
      continue;
    std::optional<ResolvedPlan> shared;
    if (!fits(evaluation)) {
      if (!shares_state)
        continue;
      // What was found with shares before is a plan to show.
      if (!even && !isBetter(evaluation.step_s, schedule, best)) {
        if (first)
          first->lacks_memory = false; // not known
        continue;
      }
      shared = shareStateByRoom(plan, evaluation, costs);
      if (!shared)
        continue;
      evaluation = costs.evaluate(*shared, schedule, options.state_owner);
      if (!fits(evaluation))
        continue;
      if (first)
        *first = {evaluation, false};
    }
    if (evaluation.devices.size() == devices)
      best_using_all_s = std::min(evaluation.step_s,
                                  best_using_all_s.value_or(evaluation.step_s));
    PlannedStep step;
    step.resolved = shared ? std::move(*shared) : plan;
    step.plan.schedule = schedule;
    step.plan.gradient_exchange = evaluation.gradient_exchange;
    step.evaluation = std::move(evaluation);
    if (!isBetter(step.evaluation.step_s, schedule, best)) {
      keepAlternative(std::move(step));
      continue;
    }
    if (best)
      keepAlternative(std::move(*best));
    best = std::move(step);
    improved = true;
  }
  return improved;
}

SeenReplicas Judge::considerCounts(ResolvedPlan plan,
                                   llvm::ArrayRef<ReplicaLine> expected) {
  std::vector<ReplicaLine> lines = expected.vec();
  SeenReplicas best;
  for (unsigned round = 0; round <= countRounds; ++round) {
    BatchProblem problem;
    problem.global_batch = options.global_batch;
    for (auto [replica, line] : llvm::zip_equal(plan.replicas, lines))
      problem.replicas.push_back({replica.microbatch_size,
                                  {{line.period_s, line.way_s + line.rest_s}}});
    std::optional<BatchCounts> counts = solveBatch(problem);
    if (!counts)
      return best;
    bool isSame = true;
    for (auto [replica, count] : llvm::zip_equal(plan.replicas, *counts)) {
      isSame &= replica.microbatches == count;
      replica.microbatches = count;
    }
    if (round > 0 && isSame)
      return best;
    SeenPlan judged;
    consider(plan, &judged);
    correct(lines, plan, judged.evaluation);
    SeenReplicas seen = {judged.evaluation.step_s, lines,
                         std::vector<bool>(lines.size())};
    for (const DeviceEvaluation &entry : judged.evaluation.devices)
      if (judged.lacks_memory &&
          entry.memory.total() > costs.memoryRoom(entry.device))
        seen.lack_memory[entry.replica] = true;
    if (seen.areBetterThan(best))
      best = std::move(seen);
    if (isLate())
      return best;
  }
  return best;
}

// What each replica took, and what of its exchange nothing hid.
void Judge::correct(llvm::MutableArrayRef<ReplicaLine> lines,
                    const ResolvedPlan &plan,
                    const PlanEvaluation &evaluation) {
  if (evaluation.timelines.empty()) {
    // Only the step is known: all are taken to be as far off as the last one.
    double last_s = 0;
    for (auto [replica, line] : llvm::zip_equal(plan.replicas, lines))
      last_s = std::max(last_s,
                        line.way_s + line.rest_s +
                            line.period_s *
                                static_cast<double>(replica.microbatches - 1));
    if (last_s > 0)
      for (ReplicaLine &line : lines)
        for (double *seconds : {&line.period_s, &line.way_s, &line.rest_s})
          *seconds *= evaluation.step_s / last_s;
    return;
  }
  for (auto [r, replica] : llvm::enumerate(plan.replicas)) {
    ReplicaLine &line = lines[r];
    if (costs.planObjective() == PlanObjective::Throughput) {
      line.period_s = line.way_s =
          evaluation.forward_periods_s[evaluation.make_of_replica[r]];
      continue;
    }
    double end = evaluation.timelineOf(r).end_s;
    if (replica.microbatches > 1 && end > line.way_s)
      line.period_s =
          (end - line.way_s) / static_cast<double>(replica.microbatches - 1);
    line.rest_s = evaluation.exposed_of_replica_s[r];
  }
}

//===-- The best and the next best ----------------------------------------===//

/// What tells plans apart for people: replicas' stages, without names of
/// devices and numbers of microbatches.
static std::vector<std::vector<int64_t>> makeOf(const ResolvedPlan &plan,
                                                const Cluster &cluster) {
  std::vector<std::vector<int64_t>> makes;
  for (const ResolvedReplica &replica : plan.replicas) {
    std::vector<int64_t> &make = makes.emplace_back();
    for (const ResolvedStage &stage : replica.stages) {
      make.push_back(-1);
      for (unsigned device : stage.devices)
        make.push_back(cluster.devices()[device].kind);
    }
  }
  llvm::sort(makes);
  return makes;
}

void Judge::keepAlternative(PlannedStep step) {
  if (options.max_alternatives == 0)
    return;
  // One more than asked for: the best plan may become one, or take one's make.
  size_t kept = options.max_alternatives + 1;
  auto make = makeOf(step.resolved, costs.machines());
  for (PlannedStep &other : alternatives)
    if (makeOf(other.resolved, costs.machines()) == make) {
      if (step.evaluation.step_s < other.evaluation.step_s)
        other = std::move(step);
      return;
    }
  if (alternatives.size() == kept &&
      step.evaluation.step_s >= alternatives.back().evaluation.step_s)
    return;
  auto place = llvm::find_if(alternatives, [&](const PlannedStep &other) {
    return step.evaluation.step_s < other.evaluation.step_s;
  });
  alternatives.insert(place, std::move(step));
  if (alternatives.size() > kept)
    alternatives.pop_back();
}

void Judge::write(PlannedStep &step) const {
  step.plan.structure_hash = costs.units().structure_hash;
  step.plan.global_batch = options.global_batch;
  step.plan.optimizer = costs.optimizerKind();
  step.plan.state_owner = options.state_owner;
  step.plan.replicas =
      nameReplicas(step.resolved, costs.units(), costs.machines());
}

std::optional<PlannedStep> Judge::takeBest() {
  if (best)
    write(*best);
  return std::move(best);
}

std::vector<PlannedStep> Judge::takeAlternatives() {
  std::vector<PlannedStep> result;
  for (PlannedStep &step : alternatives) {
    if (best && makeOf(step.resolved, costs.machines()) ==
                    makeOf(best->resolved, costs.machines()))
      continue;
    if (result.size() == options.max_alternatives)
      break;
    write(step);
    result.push_back(std::move(step));
  }
  llvm::sort(result, [](const PlannedStep &a, const PlannedStep &b) {
    return a.evaluation.step_s < b.evaluation.step_s;
  });
  alternatives.clear();
  return result;
}

} // namespace autohet
