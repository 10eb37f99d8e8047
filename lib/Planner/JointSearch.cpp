//===- JointSearch.cpp - from the relaxation to whole plans ---------------===//

#include "JointSearch.h"
#include "DeviceClasses.h"
#include "EqualReplicas.h"
#include "Finalists.h"
#include "GroupingSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// Up to so many devices, groupings of named ones are looked at too.
static constexpr size_t maxNamedDevices = 12;
// More devices than this make a cluster a large one.
static constexpr size_t manyDevices = 256;
// How near bound and relaxation come.
static constexpr double fineTolerance = 5e-4, middleTolerance = 5e-3,
                        coarseTolerance = 1e-2;
static constexpr double quickTolerance = 0.25;
// Estimates leave out how gradients overlap; plans this much slower than the
// best are not judged in full.
static constexpr double estimateSlack = 1.2;
// Equal replicas of devices with no more parts than this; with more only where
// those give no plan.
static constexpr size_t fewParts = 2000, manyParts = 40000;
// Of a deadline, for the first part's bound, some bound of all, and all bounds.
static constexpr double firstBoundPart = 0.25, quickBoundsPart = 0.25,
                        allBoundsPart = 0.65;
// So many of them are judged, and so many parts' templates are mixed.
static constexpr size_t maxEqualMixes = 4;
static constexpr unsigned maxMixedParts = 1;
// Numbers of replicas of one part differ by this factor at first. Parts of
// nearly equal numbers of replicas are not split.
static constexpr int64_t fewReplicas = 8;
static constexpr double leastSplit = 1.3;
static constexpr unsigned maxSplits = 6;
// What is nearly worth having may be what whole numbers need.
static constexpr double nearBest = 1.03, nearRatio = 1.03;
// Mixes of other numbers of replicas than was assumed.
static constexpr unsigned mixRounds = 3;
// States of the knapsack, for small and large clusters.
static constexpr size_t fewStates = 20000, manyStates = 200000;

std::vector<int64_t> microbatchSizes(const PlannerOptions &options) {
  if (options.microbatch_size)
    return {*options.microbatch_size};
  std::vector<int64_t> sizes;
  for (int64_t size = 1;
       size <= std::min(options.global_batch, options.max_microbatch_size);
       ++size)
    if (options.global_batch % size == 0 || (size & (size - 1)) == 0)
      sizes.push_back(size);
  return sizes;
}

JointSearch::JointSearch(Judge &judge)
    : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
      sizes(microbatchSizes(options)), available(costs.classes().counts()) {}

TemplateSpace JointSearch::spaceFor(int64_t minReplicas,
                                    int64_t maxReplicas) const {
  TemplateSpace space = {costs, sizes, options.allow_recompute, minReplicas,
                         maxReplicas};
  space.is_state_spread = options.state_owner == "spread";
  return space;
}

bool JointSearch::isContent() const {
  if (!judge.best)
    return judge.isLate();
  // Any plan is within an infinite gap, of no bound too.
  double least = std::max(bound_s, std::numeric_limits<double>::min());
  return judge.isLate() ||
         judge.bestSeconds() - bound_s <= options.target_gap * least;
}

StepBoundProblem JointSearch::boundProblem() const {
  StepBoundProblem problem;
  problem.global_batch = options.global_batch;
  problem.available = available;
  problem.max_devices = options.max_devices;
  size_t devices = costs.machines().devices().size();
  problem.tolerance = devices <= maxNamedDevices ? fineTolerance
                      : devices <= manyDevices   ? middleTolerance
                                                 : coarseTolerance;
  problem.is_late = [this] { return isBoundLate(); };
  return problem;
}

//===-- The bound ---------------------------------------------------------===//

// Numbers of replicas count: more of them share the optimizer's state and
// exchange more. So the space is split by that number, coarsely at first. The
// lowest bound of all parts is one of the whole: no part needs a better one
// than the lowest so far.
void JointSearch::run() {
  addParts();
  // Plans of equal replicas come first: there is soon something to show.
  for (auto [least, most] : {std::pair<size_t, size_t>(0, fewParts),
                             std::pair<size_t, size_t>(fewParts, manyParts)}) {
    for (Part &part : parts)
      addEqualReplicas(part, least, most);
    judgeEqual();
    if (judge.best)
      break; // of more devices each, they take long
  }
  if (isContent())
    return;
  solveAll();
  std::vector<Part *> order;
  for (Part &part : parts)
    if (part.root)
      order.push_back(&part);
  llvm::sort(order, [](const Part *a, const Part *b) {
    return std::tie(a->root->relaxed_s, a->low) <
           std::tie(b->root->relaxed_s, b->low);
  });
  unsigned left = maxMixedParts;
  for (Part *part : order)
    if (!isContent() && left > 0 &&
        part->root->relaxed_s + costs.updateSeconds() < judge.bestSeconds()) {
      collect(*part);
      searchMixes(*part);
      --left;
    }
  // With a deadline, what is left of it makes the bound a little better.
  for (unsigned split = 0;
       options.deadline_s && split < maxSplits && !isContent(); ++split)
    if (!splitLowest())
      break;
  for (Part &part : parts)
    priced += part.search->pricedIntervals();
  if (!isContent() && costs.machines().devices().size() <= maxNamedDevices &&
      costs.costModel())
    enumerateGroupings();
}

void JointSearch::boundOnly() {
  addParts();
  solveAll();
}

void JointSearch::addParts() {
  int64_t most = std::min<int64_t>(costs.machines().devices().size(),
                                   options.global_batch);
  for (int64_t low = 1; low <= most; low = parts.back().high + 1)
    addPart(low, std::min(most, low == 1   ? 1
                                : low == 2 ? fewReplicas
                                           : 2 * (low - 1)));
}

JointSearch::Part &JointSearch::addPart(int64_t low, int64_t high) {
  Part &part = parts.emplace_back();
  part.low = low;
  part.high = high;
  part.search = std::make_unique<TemplateSearch>(spaceFor(low, high),
                                                 options.global_batch);
  return part;
}

void JointSearch::solveAll() {
  // From the middle, where plans often are: its neighbours begin with what it
  // found. With a deadline, all have some bound before a second has a good one.
  bool isHurried = options.deadline_s.has_value();
  size_t middle = parts.size() / 2;
  std::vector<size_t> order;
  for (size_t index = middle; index < parts.size(); ++index)
    order.push_back(index);
  for (size_t index = middle; index-- > 0;)
    order.push_back(index);
  for (auto [number, index] : llvm::enumerate(order)) {
    boundsPart = firstBoundPart + quickBoundsPart *
                                      static_cast<double>(number) /
                                      static_cast<double>(order.size());
    solve(parts[index], isHurried && number > 0);
  }
  boundsPart = allBoundsPart;
  while (!lowest().is_solved && !isBoundLate())
    solve(lowest(), /*isQuick=*/false);
  bound_s = lowest().bound_s + costs.updateSeconds();
}

// With a deadline, whole numbers need some of the time too.
bool JointSearch::isBoundLate() const {
  return options.deadline_s &&
         judge.secondsSinceStart() > boundsPart * *options.deadline_s;
}

// What was worth having for other numbers of replicas is a good start, and so
// are equal replicas.
void JointSearch::startNear(const Part &part, StepBoundProblem &problem) const {
  const Part *nearest = nullptr;
  auto distance = [&](const Part &other) {
    return std::abs(std::log(static_cast<double>(other.low + other.high) /
                             static_cast<double>(part.low + part.high)));
  };
  for (const Part &other : parts)
    if (other.root && (!nearest || distance(other) < distance(*nearest)))
      nearest = &other;
  const TemplateSpace &space = part.search->templates();
  for (Template made : nearest ? nearest->root->templates : pool) {
    if (!checkTemplate(made, space, space.ownedAtBest()).empty())
      continue;
    measureTemplate(made, space);
    problem.known.push_back(std::move(made));
  }
  if (nearest)
    problem.start_prices = nearest->root->resource_prices;
}

JointSearch::Part &JointSearch::lowest() {
  return *std::min_element(
      parts.begin(), parts.end(),
      [](const Part &a, const Part &b) { return a.bound_s < b.bound_s; });
}

void JointSearch::solve(Part &part, bool isQuick) {
  StepBoundProblem problem = boundProblem();
  if (isQuick) {
    problem.max_rounds = 1;
    problem.first_tolerance = quickTolerance;
  }
  for (const Part &other : parts)
    if (other.is_solved)
      problem.enough_s = std::min(problem.enough_s, other.bound_s);
  startNear(part, problem);
  part.root = boundStep(*part.search, problem);
  part.bound_s = std::max(part.bound_s, part.root->bound_s);
  part.is_solved = !isQuick;
}

// The part with the lowest bound, as two: false where that is no use.
bool JointSearch::splitLowest() {
  Part &part = lowest();
  if (part.high < leastSplit * part.low)
    return false;
  int64_t low = part.low, high = part.high;
  int64_t middle = std::sqrt(static_cast<double>(low * high));
  double bound = part.bound_s;
  // The part stays where it is: neighbours begin with its templates.
  part.bound_s = never;
  for (auto [first, last] :
       {std::pair(low, middle), std::pair(middle + 1, high)}) {
    Part &half = addPart(first, last);
    half.bound_s = bound;
  }
  for (size_t index = parts.size() - 2; index < parts.size(); ++index)
    solve(parts[index], /*isQuick=*/false);
  bound_s = lowest().bound_s + costs.updateSeconds();
  return true;
}

//===-- Whole numbers -----------------------------------------------------===//

// Templates of a part that are worth having, or nearly: whole numbers may need
// those.
void JointSearch::collect(Part &part) {
  for (const Template &made : part.root->templates)
    addToPool(made);
  for (Template &made : part.search->allWithin(
           part.root->prices, nearBest * part.root->relaxed_s, nearRatio))
    addToPool(std::move(made));
}

void JointSearch::addToPool(Template made) {
  if (llvm::none_of(pool,
                    [&](const Template &other) { return made.isSame(other); }))
    pool.push_back(std::move(made));
}

// What replicas exchange and how much state each holds depends on how many
// there are: solve again until that is what was assumed.
void JointSearch::searchMixes(const Part &part) {
  int64_t replicas =
      judge.best ? judge.best->resolved.replicas.size() : part.high;
  for (unsigned round = 0; round < mixRounds && !judge.isLate(); ++round) {
    if (!mixed.insert(replicas).second)
      return;
    TemplateSpace space = spaceFor(replicas, replicas);
    space.are_stages_apart = true;
    MixProblem problem;
    problem.global_batch = options.global_batch;
    problem.available = available;
    problem.max_devices = options.max_devices;
    problem.max_states = costs.machines().devices().size() <= manyDevices
                             ? fewStates
                             : manyStates;
    problem.limit_s = judge.bestSeconds();
    problem.is_late = [this] { return judge.isLate(); };
    for (const Template &made : pool) {
      if (!checkTemplate(made, space, space.ownedAtBest()).empty())
        continue;
      problem.templates.push_back(made);
      measureTemplate(problem.templates.back(), space);
      auto known =
          llvm::find_if(part.root->templates, [&](const Template &other) {
            return other.isSame(made);
          });
      problem.relaxed.push_back(
          known == part.root->templates.end()
              ? 0
              : part.root->replicas[known - part.root->templates.begin()]);
    }
    TemplateMix mix = solveMix(problem);
    // The recurrence is a little short of what schedules reach: run what was
    // chosen, and choose again.
    std::vector<bool> isRun(problem.templates.size());
    for (unsigned run = 0; run < mixRounds && runChosen(mix, problem, isRun);
         ++run)
      mix = solveMix(problem);
    if (mix.empty())
      return;
    judgeMix(mix);
    replicas = replicaCount(mix);
  }
}

bool JointSearch::runChosen(const TemplateMix &mix, MixProblem &problem,
                            std::vector<bool> &isRun) const {
  double seconds = secondsOfMix(mix, options.global_batch);
  bool isAny = false;
  for (auto [index, made] : llvm::enumerate(problem.templates)) {
    if (isRun[index] ||
        llvm::none_of(mix, [&made = made](const CountedTemplate &entry) {
          return entry.made.isSame(made);
        }))
      continue;
    runTemplate(made, costs, made.microbatchesWithin(seconds));
    isRun[index] = isAny = true;
  }
  return isAny;
}

// All replicas alike: whole mixtures of one template are hard to find by
// rounding.
void JointSearch::addEqualReplicas(Part &part, size_t least, size_t most) {
  for (int64_t replicas = part.low; replicas <= part.high; ++replicas) {
    ClassCounts each = available, next = available;
    for (unsigned &count : each)
      count /= replicas;
    for (unsigned &count : next)
      count /= replicas + 1;
    // One replica more of the same is better.
    bool isMost = each != next || replicas == options.global_batch;
    size_t count = partsOfDevices(each, most);
    if (!isMost || count <= least || count > most)
      continue;
    for (int64_t size : sizes) {
      int64_t microbatches = options.global_batch / (size * replicas);
      if (microbatches < 1 || judge.isLate())
        break;
      std::optional<Template> made = part.search->withDevices(each, size);
      if (!made)
        break; // larger ones need more memory
      addToPool(*made);
      runTemplate(*made, costs, microbatches);
      equalMixes.push_back({std::move(*made), replicas});
    }
  }
}

void JointSearch::judgeEqual() {
  auto seconds = [&](const CountedTemplate &entry) {
    return secondsOfMix({entry}, options.global_batch);
  };
  llvm::sort(equalMixes,
             [&](const CountedTemplate &a, const CountedTemplate &b) {
               return std::make_pair(seconds(a), a.replicas) <
                      std::make_pair(seconds(b), b.replicas);
             });
  for (const CountedTemplate &entry :
       llvm::ArrayRef(equalMixes).take_front(maxEqualMixes))
    if (!isContent())
      judgeMix({entry});
}

//===-- Plans -------------------------------------------------------------===//

bool JointSearch::judgeMix(const TemplateMix &mix) {
  if (mix.empty())
    return false;
  // Replicas too slow to do even one microbatch in time only hold others up.
  double seconds = secondsOfMix(mix, options.global_batch);
  TemplateMix used;
  for (const CountedTemplate &entry : mix)
    if (entry.made.microbatchesWithin(seconds * (1 + 1e-9)) > 0)
      used.push_back(entry);
  std::vector<ReplicaLine> lines;
  for (const CountedTemplate &entry : used)
    for (int64_t i = 0; i < entry.replicas; ++i)
      lines.push_back({entry.made.pace_s, entry.made.way_s, entry.made.rest_s});
  bool improved = false, isPlaced = false;
  for (PlacementOrder order :
       {PlacementOrder::ByReplica, PlacementOrder::ByStage,
        PlacementOrder::BySize}) {
    if (order == PlacementOrder::BySize && isPlaced)
      continue;
    std::optional<ResolvedPlan> plan = placeTemplates(used, costs, order);
    if (!plan)
      continue;
    isPlaced = true;
    improved |= judge.considerCounts(std::move(*plan), lines);
  }
  return improved;
}

void JointSearch::enumerateGroupings() {
  const CostModel &model = *costs.costModel();
  ReplicaSearch replicas(model, options.memory_fraction);
  GroupingSearch groupings(model, options, replicas);
  Finalists finalists(judge, replicas, groupings.deviceClasses(),
                      groupings.microbatchSizes());
  // By rising estimate: far behind the best plan none is worth a closer look.
  for (const Grouping &grouping : groupings.run()) {
    if (isContent() ||
        grouping.estimate_s > estimateSlack * judge.bestSeconds())
      break;
    finalists.consider(grouping);
  }
  if (!isContent())
    finalists.improve();
}

} // namespace autohet
