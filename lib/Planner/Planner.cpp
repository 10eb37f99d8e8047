//===- Planner.cpp - the best plan for a cluster --------------------------===//

#include "autohet/Planner/Planner.h"
#include "Explain.h"
#include "JointSearch.h"
#include "ModeSearch.h"
#include "StateByRoom.h"
#include "autohet/Planner/UnitTableCosts.h"
#include "autohet/Support/Parallel.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include <cmath>
#include <limits>
#include <set>

namespace autohet {

bool hasPrograms(const Plan &plan) {
  return llvm::all_of(plan.replicas, [](const Replica &replica) {
    return llvm::all_of(replica.stages, [](const Stage &stage) {
      return stage.keeping == Keeping::All;
    });
  });
}

// Of a deadline, where other modes are to be shown too.
static constexpr double ownPart = 0.7;
// Of that, for the plans of a mode other than the joint search, which says what
// the bound is; and for plans with equal parts of state where others follow.
static constexpr double modePart = 0.6;
static constexpr double evenPart = 0.5;

namespace {

llvm::Error checkInput(const UnitTable &table, const Cluster &cluster,
                       const PlannerOptions &options) {
  if (table.units.empty())
    return llvm::createStringError("the model has no units to plan");
  if (cluster.devices().empty())
    return llvm::createStringError("the cluster has no devices");
  if (options.global_batch < 1)
    return llvm::createStringError("the global batch must be at least 1");
  if (options.objective == PlanObjective::Throughput && !table.is_forward_only)
    return llvm::createStringError(
        "steps of training do not overlap: their objective is latency");
  if (options.max_devices && *options.max_devices < 1)
    return llvm::createStringError("a plan needs at least one device");
  if (options.microbatch_size &&
      (*options.microbatch_size < 1 ||
       options.global_batch % *options.microbatch_size)) {
    int64_t size = *options.microbatch_size;
    int64_t below = size < 1 ? 0 : options.global_batch / size * size;
    std::string nearest = below ? "the nearest are " + std::to_string(below) +
                                      " and " + std::to_string(below + size)
                                : "the smallest is " + std::to_string(size);
    return llvm::createStringError("a global batch of " +
                                   llvm::Twine(options.global_batch) +
                                   " cannot be made of microbatches of " +
                                   llvm::Twine(size) + "; " + nearest);
  }
  if (options.state_owner != "spread" && options.state_owner != "first" &&
      !cluster.findDevice(options.state_owner))
    return llvm::createStringError(
        "no device '" + options.state_owner +
        "' owns the optimizer's state: wanted spread, first, or one of " +
        cluster.devices().front().name + " to " +
        cluster.devices().back().name);
  return llvm::Error::success();
}

/// What one mode reaches.
ModeResult runMode(PlannerMode mode, const PlanCosts &costs,
                   const PlannerOptions &options, Deadline deadline) {
  ModeResult result;
  result.mode = mode;
  Judge judge(costs, options, std::move(deadline));
  result.why_not = searchMode(mode, judge);
  result.step = judge.takeBest();
  result.seconds = judge.secondsSinceStart();
  return result;
}

llvm::Error noPlanInTime(double bound_s) {
  std::string text = "no plan was found before the deadline, nor that there is "
                     "none: give the search more time";
  if (bound_s > 0 && std::isfinite(bound_s))
    text += "; any plan takes at least " +
            formatQuantity(bound_s, Dimension::Seconds);
  return llvm::createStringError(text);
}

bool hasOneExtent(const ResolvedPlan &plan) {
  size_t extent = plan.replicas.front().stages.front().devices.size();
  return llvm::all_of(plan.replicas, [&](const ResolvedReplica &replica) {
    return llvm::all_of(replica.stages, [&](const ResolvedStage &stage) {
      return stage.devices.size() == extent;
    });
  });
}

/// The best plans of parts of the space, which share the time, and the least of
/// their bounds.
void searchSpaces(llvm::ArrayRef<std::unique_ptr<PlanCosts>> spaces,
                  Judge &judge, PlannerResult &result) {
  for (auto [index, space] : llvm::enumerate(spaces)) {
    Judge inner(
        *space, judge.plannerOptions(),
        judge.deadline().part(1 / static_cast<double>(spaces.size() - index)));
    inner.shares_state = judge.shares_state;
    JointSearch joint(inner);
    joint.run();
    result.lower_bound_s = std::min(result.lower_bound_s, joint.boundSeconds());
    result.effort.priced_templates += joint.pricedTemplates();
    result.effort.evaluated_plans += inner.evaluated_plans;
    std::vector<PlannedStep> found = inner.takeAlternatives();
    if (std::optional<PlannedStep> best = inner.takeBest())
      found.push_back(std::move(*best));
    for (const PlannedStep &step : found)
      judge.consider(step.resolved);
  }
}

/// Sizes of the plan's microbatches that `options` do not have.
std::vector<int64_t> otherSizes(const ResolvedPlan &plan,
                                const PlannerOptions &options) {
  std::vector<int64_t> known = microbatchSizes(options);
  std::set<int64_t> others;
  for (const ResolvedReplica &replica : plan.replicas)
    if (!llvm::is_contained(known, replica.microbatch_size))
      others.insert(replica.microbatch_size);
  return {others.begin(), others.end()};
}

/// More than the devices have together: the model once, with all of its state.
bool isLargerThanCluster(const PlanCosts &costs,
                         const PlannerOptions &options) {
  bool isTrained = options.optimizer != OptimizerKind::None;
  double state = stateBytesPerByte(options.optimizer), needed = 0, room = 0;
  for (const UnitParameter &parameter : costs.units().parameters)
    needed +=
        parameter.bytes * (parameter.trained && isTrained ? 2 + state : 1);
  for (unsigned device = 0; device < costs.machines().devices().size();
       ++device)
    room += costs.memoryRoom(device);
  return needed > room;
}

/// The one that a closer look likes best is the plan, and the others are
/// alternatives to it.
void chooseFinalist(PlannerResult &result, const PlannerOptions &options) {
  std::vector<PlannedStep> finalists = std::move(result.alternatives);
  finalists.insert(finalists.begin(), std::move(result.best));
  size_t chosen = options.choose_finalist(finalists);
  assert(chosen < finalists.size() && "no such finalist");
  result.best = std::move(finalists[chosen]);
  finalists.erase(finalists.begin() + chosen);
  result.alternatives = std::move(finalists);
}

/// Plans in the mode that was asked for; nothing where none fits, or none was
/// found in time. `lateBound_s` is the bound if time was up.
/// `spaces`, if any, are what the joint search is of instead of `costs`.
std::optional<PlannerResult>
search(const PlanCosts &costs, const PlannerOptions &options,
       std::optional<double> &lateBound_s,
       llvm::ArrayRef<std::unique_ptr<PlanCosts>> spaces = {}) {
  PlannerResult result;
  // Modes to compare with need some of the time.
  PlannerOptions own = options;
  Deadline whole =
      own.compare.empty() ? own.deadline : own.deadline.part(ownPart);
  bool sharesState = mayShareState(costs, options);
  Judge judge(costs, own, whole);
  std::optional<JointSearch> joint;
  result.lower_bound_s = std::numeric_limits<double>::infinity();
  if (options.mode != PlannerMode::Joint) {
    judge.setDeadline(whole.part(modePart));
    searchMode(options.mode, judge);
    result.effort.is_cut_short |= judge.isLate();
  }
  // Without a deadline, nothing that modes find depends on the time: they are
  // searched beside all else.
  std::vector<ModeResult> modes(options.compare.size());
  std::optional<SharedJobs> beside;
  if (options.threads > 1 && !options.deadline.isSet())
    beside.emplace(modes.size(), options.threads - 1, [&](size_t mode) {
      modes[mode] = runMode(options.compare[mode], costs, options, Deadline());
    });
  // The bound is one of the whole space, whatever the mode.
  auto searchJointly = [&] {
    judge.setDeadline(sharesState && !judge.shares_state ? whole.part(evenPart)
                                                         : whole);
    joint.emplace(judge);
    auto note =
        llvm::scope_exit([&] { result.effort.is_cut_short |= judge.isLate(); });
    if (!spaces.empty())
      return searchSpaces(spaces, judge, result);
    if (options.mode == PlannerMode::Joint)
      joint->run();
    else
      joint->boundOnly();
    result.lower_bound_s =
        std::min(result.lower_bound_s, joint->boundSeconds());
    result.effort.priced_templates += joint->pricedTemplates();
  };
  auto addSizes = [&] {
    std::vector<int64_t> sizes;
    if (judge.best)
      sizes = otherSizes(judge.best->resolved, own);
    llvm::append_range(own.more_microbatch_sizes, sizes);
    return !sizes.empty();
  };
  addSizes();
  searchStateParts(judge, searchJointly);
  result.effort.seconds = judge.secondsSinceStart();
  result.effort.evaluated_plans += judge.evaluated_plans;
  if (beside)
    beside->finish();
  for (auto [number, mode] : llvm::enumerate(options.compare)) {
    // The others share what time is left. Each evaluates one plan at least,
    // late or not.
    size_t left = options.compare.size() - number;
    if (!beside)
      modes[number] = runMode(mode, costs, options,
                              options.deadline.before(judge.evaluationSeconds())
                                  .part(1 / static_cast<double>(left)));
    result.modes.push_back(std::move(modes[number]));
    const std::optional<PlannedStep> &step = result.modes.back().step;
    if (mode == PlannerMode::Symmetric)
      result.symmetric = step;
    // A restricted plan is a plan too: never answer with a slower one.
    bool mayHelp = step && (!judge.isLate() ||
                            step->evaluation.step_s < judge.bestSeconds());
    if (mayHelp && options.mode == PlannerMode::Joint &&
        (!options.has_one_extent || hasOneExtent(step->resolved))) {
      judge.consider(step->resolved);
      if (spaces.empty())
        joint->improve(step->resolved);
    }
  }
  // A mode's plan may be the best with sizes of microbatches that were not
  // looked at: then they are, and the bound is one of those, too.
  if (addSizes()) {
    double begun_s = judge.secondsSinceStart();
    whole = options.deadline;
    result.lower_bound_s = std::numeric_limits<double>::infinity();
    searchStateParts(judge, searchJointly);
    result.effort.seconds += judge.secondsSinceStart() - begun_s;
  }
  if (result.effort.is_cut_short)
    lateBound_s = result.lower_bound_s;
  if (!judge.best)
    return std::nullopt;
  std::optional<double> usingAll_s = judge.best_using_all_s;
  result.alternatives = judge.takeAlternatives();
  result.best = *judge.takeBest();
  if (options.choose_finalist)
    chooseFinalist(result, options);
  result.lower_bound_s =
      std::min(result.lower_bound_s, result.best.evaluation.step_s);
  explainResult(result, usingAll_s, costs, options);
  return result;
}

} // namespace

llvm::Expected<PlannerResult> planCluster(const PlanCosts &costs,
                                          const PlannerOptions &options) {
  if (llvm::Error error = checkInput(costs.units(), costs.machines(), options))
    return error;
  std::optional<double> lateBound_s;
  if (std::optional<PlannerResult> result = search(costs, options, lateBound_s))
    return std::move(*result);
  if (lateBound_s)
    return noPlanInTime(*lateBound_s);
  return llvm::createStringError(whyModeHasNoPlan(options.mode));
}

llvm::Expected<PlannerResult> planCluster(const UnitTable &table,
                                          const Cluster &cluster,
                                          const PlannerOptions &options) {
  if (llvm::Error error = checkInput(table, cluster, options))
    return error;
  UnitTableCosts costs(table, cluster, options.optimizer,
                       options.memory_fraction, options.objective);
  std::optional<double> lateBound_s;
  if (isLargerThanCluster(costs, options))
    return explainInfeasible(table, cluster, options);
  std::vector<std::unique_ptr<PlanCosts>> spaces;
  if (options.has_one_extent) {
    std::set<unsigned> extents;
    for (const StageShape &shape : costs.shapes())
      extents.insert(shape.deviceCount());
    for (unsigned extent : extents)
      spaces.push_back(std::make_unique<UnitTableCosts>(
          table, cluster, options.optimizer, options.memory_fraction,
          options.objective, extent));
  }
  if (std::optional<PlannerResult> result =
          search(costs, options, lateBound_s, spaces))
    return std::move(*result);
  if (lateBound_s)
    return noPlanInTime(*lateBound_s);
  if (options.has_one_extent)
    return llvm::createStringError(
        "no plan whose stages all have as many devices makes the global batch "
        "within the devices' memory; one of unlike stages may");
  if (options.mode != PlannerMode::Joint)
    return llvm::createStringError(whyModeHasNoPlan(options.mode));
  return explainInfeasible(table, cluster, options);
}

PlannerResult judgePlan(const Plan &plan, llvm::StringRef origin,
                        const UnitTable &table, const Cluster &cluster,
                        std::optional<int64_t> microbatchSize,
                        PlanObjective objective) {
  PlannerOptions options;
  options.global_batch = plan.global_batch;
  options.optimizer = plan.optimizer;
  options.state_owner = plan.state_owner;
  options.microbatch_size = microbatchSize;
  options.objective = objective;
  UnitTableCosts costs(table, cluster, options.optimizer,
                       options.memory_fraction, options.objective);
  PlannerResult result;
  result.best.plan = plan;
  result.best.resolved = resolvePlan(plan, table, cluster);
  result.best.evaluation =
      evaluatePlan(result.best.resolved, plan.schedule, plan.state_owner,
                   *costs.costModel(), plan.gradient_exchange);
  options.more_microbatch_sizes = otherSizes(result.best.resolved, options);
  // The bound is of a space that the plan is in.
  for (const ResolvedReplica &replica : result.best.resolved.replicas)
    for (const ResolvedStage &stage : replica.stages) {
      options.allow_recompute |= stage.keeping == Keeping::Inputs;
      options.allow_offload |= stage.keeping == Keeping::OnHost;
    }
  bool hasShares = withEvenState(result.best.resolved).has_value();
  options.state_parts = hasShares || mayShareState(costs, options)
                            ? StateParts::Uneven
                            : StateParts::Even;
  Judge judge(costs, options);
  // What is given may use what is not searched, such as larger microbatches.
  result.lower_bound_s = result.best.evaluation.step_s;
  searchStateParts(judge, [&] {
    JointSearch joint(judge);
    joint.boundOnly();
    result.lower_bound_s = std::min(result.lower_bound_s, joint.boundSeconds());
  });
  result.effort.seconds = judge.secondsSinceStart();
  result.origin = origin.str();
  result.reasons.push_back(result.origin);
  return result;
}

} // namespace autohet
