//===- JointSearch.cpp - from the relaxation to whole plans ---------------===//

#include "JointSearch.h"
#include "DeviceClasses.h"
#include "Finalists.h"
#include "GroupingSearch.h"
#include "PriceProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// Up to so many devices, groupings of named ones are looked at too: a few
// tenths of a second. With twelve it would be many, for under one percent.
static constexpr size_t maxNamedDevices = 8;
// Up to so many devices, a close bound takes little time.
static constexpr size_t maxFineDevices = 12;
// How near bound and relaxation come.
static constexpr double fineTolerance = 5e-4, coarseTolerance = 3e-3;
static constexpr double quickTolerance = 0.25;
// Estimates leave out how gradients overlap; plans this much slower than the
// best are not judged in full.
static constexpr double estimateSlack = 1.2;
// Equal replicas of devices with no more parts than this; with more only where
// those give no plan.
static constexpr size_t fewParts = 2000, manyParts = 40000;
// Of a deadline, for some bound of all parts, and for all bounds.
static constexpr double quickBoundsPart = 0.4, allBoundsPart = 0.65;
// And of what is left then, for templates to mix, and for groupings, before
// they are judged.
static constexpr double collectPart = 0.2, groupingsPart = 0.5;
// So many parts' templates are mixed.
static constexpr unsigned maxMixedParts = 1;
// Numbers of replicas of one part differ by this factor at first. Parts of
// nearly equal numbers of replicas are not split.
static constexpr int64_t fewReplicas = 8;
static constexpr double leastSplit = 1.3;
static constexpr unsigned maxSplits = 6;
// Of looking for the prices at which fewest replicas have room.
static constexpr unsigned roomRounds = 10;
// A neighbour's templates that take no more than that are tried.
static constexpr double usefulRatio = 1.1;
// Plans nearer to the bound than this are as good as their neighbours; of many
// devices there are so many that they take longer than all else.
static constexpr size_t fewNeighbours = 32; // devices
static constexpr double worthImproving = 0.012, worthImprovingMany = 0.04;
// What is nearly worth having may be what whole numbers need.
static constexpr double nearBest = 1.03, nearRatio = 1.03;

std::vector<int64_t> microbatchSizes(const PlannerOptions &options) {
  if (options.microbatch_size)
    return {*options.microbatch_size};
  std::vector<int64_t> sizes;
  for (int64_t size = 1;
       size <= std::min(options.global_batch, options.max_microbatch_size);
       ++size)
    if (options.global_batch % size == 0 || (size & (size - 1)) == 0)
      sizes.push_back(size);
  for (int64_t size : options.more_microbatch_sizes)
    if (!llvm::is_contained(sizes, size))
      sizes.push_back(size);
  llvm::sort(sizes);
  return sizes;
}

JointSearch::JointSearch(Judge &judge)
    : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
      available(costs.classes().counts()),
      mixes(judge, microbatchSizes(options)), improvement(mixes, judge) {}

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
  problem.tolerance =
      devices <= maxFineDevices ? fineTolerance : coarseTolerance;
  problem.deadline = boundEnd;
  return problem;
}

//===-- The bound ---------------------------------------------------------===//

// Numbers of replicas count: more of them share the optimizer's state and
// exchange more. So the space is split by that number, coarsely at first. The
// lowest bound of all parts is one of the whole: no part needs a better one
// than the lowest so far.
void JointSearch::run() {
  begin();
  // Plans of equal replicas come first: there is soon something to show.
  for (auto [least, most] : {std::pair<size_t, size_t>(0, fewParts),
                             std::pair<size_t, size_t>(fewParts, manyParts)}) {
    for (Part &part : parts)
      mixes.addEqualReplicas(*part.search, least, most);
    mixes.judgeEqual();
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
        part->root->relaxed_s < judge.bestSeconds()) {
      collect(*part);
      mixes.run(judge.best ? judge.best->resolved.replicas.size() : part->high);
      --left;
    }
  // With a deadline, what is left of it makes the bound a little better.
  for (unsigned split = 0;
       judge.deadline().isSet() && split < maxSplits && !isContent(); ++split)
    if (!splitLowest())
      break;
  for (Part &part : parts)
    priced += part.search->pricedIntervals();
  if (!isContent() && costs.machines().devices().size() <= maxNamedDevices &&
      costs.mayNameDevices())
    enumerateGroupings();
  if (!judge.best)
    return;
  // Copies: the judge's own change meanwhile.
  std::vector<ResolvedPlan> starts = {judge.best->resolved};
  for (const PlannedStep &step : judge.alternativesSoFar())
    starts.push_back(step.resolved);
  for (const ResolvedPlan &start : starts)
    improve(start);
}

void JointSearch::improve(const ResolvedPlan &start) {
  double gap_s = judge.bestSeconds() - bound_s;
  bool areMany = costs.machines().devices().size() > fewNeighbours;
  double worth = areMany ? worthImprovingMany : worthImproving;
  if (!isContent() && gap_s > worth * bound_s)
    improvement.run(start);
}

void JointSearch::boundOnly() {
  begin();
  solveAll();
}

void JointSearch::runOnePipeline() {
  mixes.addEqualReplicas(*addPart(1, 1).search, 0, manyParts);
  mixes.judgeEqual();
}

// Whatever the deadline, some bound: of all parts together, without stages. It
// takes milliseconds.
void JointSearch::boundAtOnce() {
  StepBoundProblem problem = boundProblem();
  problem.max_rounds = 1;
  problem.deadline = Deadline::over();
  TemplateSearch search(mixes.spaceFor(parts.front().low, parts.back().high),
                        options.global_batch);
  double bound = boundStep(search, problem).bound_s;
  for (Part &part : parts)
    part.bound_s = bound;
  bound_s = bound;
}

void JointSearch::begin() {
  quickBoundsEnd = judge.deadline().part(quickBoundsPart);
  boundEnd = allBoundsEnd = judge.deadline().part(allBoundsPart);
  int64_t most = std::min<int64_t>(costs.machines().devices().size(),
                                   options.global_batch);
  int64_t high = 0;
  for (int64_t low = 1; low <= most; low = high + 1) {
    high = std::min(most, low == 1   ? 1
                          : low == 2 ? fewReplicas
                                     : 2 * (low - 1));
    addFitting(low, high);
  }
  if (judge.deadline().isSet())
    boundAtOnce();
}

JointSearch::Part &JointSearch::addPart(int64_t low, int64_t high) {
  Part &part = parts.emplace_back();
  part.low = low;
  part.high = high;
  part.search = std::make_unique<TemplateSearch>(mixes.spaceFor(low, high),
                                                 options.global_batch);
  return part;
}

// As far as memory has room for so many replicas. Fewer of them hold more of
// the state each, so that they are counted again.
void JointSearch::addFitting(int64_t low, int64_t high) {
  while (true) {
    int64_t fitting = mostReplicas(*addPart(low, high).search);
    // Where nothing fits at all, one part is left to show that.
    if (fitting >= high || (fitting < low && parts.size() == 1))
      return;
    parts.pop_back();
    if (fitting < low)
      return;
    high = fitting;
  }
}

// Whatever devices are worth, there are no more replicas than the cheapest one
// that holds the model goes into what all are worth. Best are prices at which
// what such replicas are short of is dear.
int64_t JointSearch::mostReplicas(TemplateSearch &search) const {
  double most = search.templates().max_replicas;
  std::vector<double> all; // devices of each class
  for (unsigned count : available)
    all.push_back(std::max(1u, count));
  // Of all devices of a class; they sum to 1.
  std::vector<double> prices;
  for (double count : all)
    prices.push_back(count / std::accumulate(all.begin(), all.end(), 0.0));
  PriceProblem problem;
  problem.resource_count = all.size();
  for (unsigned round = 0; round < roomRounds; ++round) {
    std::vector<double> each;
    for (auto [price, count] : llvm::zip_equal(prices, all))
      each.push_back(price / count);
    std::optional<ClassCounts> cheapest = search.leastDevices(each);
    if (!cheapest)
      return 0;
    PriceProblem::Plane &plane = problem.planes.emplace_back();
    for (auto [used, count] : llvm::zip_equal(*cheapest, all))
      plane.slopes.push_back(used / count);
    most = std::min(most, 1 / plane.at(prices));
    PriceSolution solution = solvePrices(problem);
    // Fractions of these replicas have room: no prices say less.
    if (std::floor(most) * solution.objective <= 1)
      break;
    prices = std::move(solution.prices);
  }
  return std::floor(most * (1 + 1e-9));
}

void JointSearch::solveAll() {
  // From where the lowest bound seems to be: no other part needs a better one,
  // and its neighbours begin with what it found. With a deadline, all have some
  // bound before any has a good one.
  bool isHurried = judge.deadline().isSet();
  size_t first = parts.size() / 2;
  if (!isHurried)
    mixes.addSmallReplicas(*parts[first].search);
  double least_s = never;
  for (auto [index, part] : llvm::enumerate(parts)) {
    StepBoundProblem problem = boundProblem();
    problem.may_generate = false;
    startNear(part, problem);
    if (problem.known.empty())
      continue;
    double relaxed_s = boundStep(*part.search, problem).relaxed_s;
    if (relaxed_s < least_s) {
      least_s = relaxed_s;
      first = index;
    }
  }
  std::vector<size_t> order;
  for (size_t index = first; index < parts.size(); ++index)
    order.push_back(index);
  for (size_t index = first; index-- > 0;)
    order.push_back(index);
  for (auto [number, index] : llvm::enumerate(order)) {
    boundEnd =
        quickBoundsEnd.part(1 / static_cast<double>(order.size() - number));
    solve(parts[index], /*isQuick=*/isHurried);
  }
  // With a deadline, whole numbers need some of the time too.
  boundEnd = allBoundsEnd;
  while (!lowest().is_solved && !boundEnd.isOver())
    solve(lowest(), /*isQuick=*/false);
  bound_s = lowest().bound_s;
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
  for (Template made :
       nearest ? llvm::ArrayRef(nearest->root->templates) : mixes.templates()) {
    // What is dear at the neighbour's prices is so here.
    if (nearest &&
        chargedSeconds(made, nearest->root->prices, options.global_batch) >
            usefulRatio * nearest->root->relaxed_s)
      continue;
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
  // Beside a part that is as low, each would wait for the other.
  for (const Part &other : parts)
    if (other.is_solved && other.bound_s > part.bound_s)
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
  bound_s = lowest().bound_s;
  return true;
}

//===-- Plans -------------------------------------------------------------===//

// Templates of a part that are worth having, or nearly: whole numbers may need
// those.
void JointSearch::collect(Part &part) {
  for (const Template &made : part.root->templates)
    mixes.add(made);
  part.search->deadline = judge.deadline().part(collectPart);
  for (Template &made : part.search->allWithin(
           part.root->prices, nearBest * part.root->relaxed_s, nearRatio))
    mixes.add(std::move(made));
  if (judge.deadline().isSet())
    mixes.addSmallReplicas(*part.search);
}

void JointSearch::enumerateGroupings() {
  const CostModel &model = *costs.costModel();
  ReplicaSearch replicas(model, options.memory_fraction, judge.shares_state);
  GroupingSearch groupings(model, options, replicas,
                           judge.deadline().part(groupingsPart));
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
