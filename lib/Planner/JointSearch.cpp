//===- JointSearch.cpp - from the relaxation to whole plans ---------------===//

#include "JointSearch.h"
#include "DeviceClasses.h"
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
// A relaxation of what is left need not be exact.
static constexpr double fineTolerance = 5e-4, coarseTolerance = 1e-2,
                        largeTolerance = 2.5e-2, quickTolerance = 0.4;
// More devices than this make a cluster a large one.
static constexpr size_t manyDevices = 256;
static constexpr double classTolerance = 0.02;
static constexpr double restTolerance = 0.05;
static constexpr unsigned restRounds = 8;
// Prices of classes that a template uses too much of grow by this factor.
static constexpr double dearer = 1.6;
static constexpr unsigned fitRounds = 8;
// Estimates leave out how gradients overlap; plans this much slower than the
// best are not judged in full.
static constexpr double estimateSlack = 1.2;
// Prices of equal replicas: how far they move first, how often, and how exactly
// templates are found at them; and how many numbers of replicas of a part.
static constexpr double equalFactor = 1.5, equalTolerance = 0.05;
static constexpr unsigned equalRounds = 8;
static constexpr int64_t equalTries = 4;
// Rounds of taking replicas apart, and numbers of replicas that are tried.
static constexpr unsigned rebuildRounds = 3, maxPartRounds = 12;
// Parts of nearly equal numbers of replicas are not split.
static constexpr double leastSplit = 1.3;

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

bool fitsInto(const Template &made, const ClassCounts &available) {
  for (auto [used, there] : llvm::zip_equal(made.devices, available))
    if (used > there)
      return false;
  return true;
}

double secondsOfMix(const TemplateMix &mix, int64_t globalBatch) {
  if (mix.empty())
    return never;
  double low = 0, high = 0;
  for (const CountedTemplate &entry : mix)
    high = std::max(high, entry.made.seconds(1));
  auto samplesWithin = [&](double limit) {
    double samples = 0;
    for (const CountedTemplate &entry : mix)
      samples += static_cast<double>(entry.replicas) *
                 static_cast<double>(entry.made.microbatch_size) *
                 static_cast<double>(entry.made.microbatchesWithin(limit));
    return samples;
  };
  double wanted = static_cast<double>(globalBatch);
  if (samplesWithin(high) >= wanted)
    return high;
  low = high;
  high = std::max(high, 1e-9);
  while (samplesWithin(high) < wanted)
    high *= 2;
  for (int round = 0; round < 50; ++round) {
    double middle = (low + high) / 2;
    (samplesWithin(middle) < wanted ? low : high) = middle;
  }
  return high;
}

JointSearch::JointSearch(Judge &judge)
    : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
      sizes(microbatchSizes(options)), available(costs.classes().counts()) {}

static void addTo(TemplateMix &mix, const Template &made, int64_t count,
                  ClassCounts &remaining) {
  for (size_t index = 0; index < remaining.size(); ++index)
    remaining[index] -= count * made.devices[index];
  for (CountedTemplate &entry : mix)
    if (entry.made.isSame(made)) {
      entry.replicas += count;
      return;
    }
  mix.push_back({made, count});
}

static int64_t copiesWithin(const Template &made,
                            const ClassCounts &remaining) {
  int64_t copies = std::numeric_limits<int64_t>::max();
  for (auto [used, there] : llvm::zip_equal(made.devices, remaining))
    if (used)
      copies = std::min<int64_t>(copies, there / used);
  return copies;
}

TemplateSpace JointSearch::spaceFor(int64_t minReplicas,
                                    int64_t maxReplicas) const {
  TemplateSpace space = {costs, sizes, options.allow_recompute, minReplicas,
                         maxReplicas};
  space.is_state_spread = options.state_owner == "spread";
  return space;
}

bool JointSearch::isContent() const {
  return judge.isLate() ||
         judge.bestSeconds() <= bound_s * (1 + options.target_gap);
}

StepBoundProblem JointSearch::boundProblem() const {
  StepBoundProblem problem;
  problem.global_batch = options.global_batch;
  problem.available = available;
  problem.max_devices = options.max_devices;
  size_t devices = costs.machines().devices().size();
  problem.tolerance = devices <= maxNamedDevices ? fineTolerance
                      : devices <= manyDevices   ? coarseTolerance
                                                 : largeTolerance;
  problem.is_late = [this] { return judge.isLate(); };
  return problem;
}

// Numbers of replicas count: more of them share the optimizer's state and
// exchange more. So the space is split by that number, coarsely at first; the
// part with the lowest bound is looked into, and split where that is not
// enough. The lowest bound of all parts is one of the whole.
void JointSearch::run() {
  addAllParts();
  for (unsigned round = 0; round < maxPartRounds; ++round) {
    Part &part = lowest();
    bound_s = part.bound_s + costs.updateSeconds();
    if (isContent() || bound_s == never)
      break;
    if (!part.root)
      lookInto(part);
    else if (!split(part))
      break;
  }
  bound_s = lowest().bound_s + costs.updateSeconds();
  if (!isContent())
    searchEqualReplicas();
  if (!isContent() && bestPart)
    judgeMix(rebuild(*bestPart->search, *bestPart->root, bestMix));
  for (Part &part : parts)
    priced += part.search->pricedIntervals();
  if (!isContent() && costs.machines().devices().size() <= maxNamedDevices &&
      costs.costModel())
    enumerateGroupings();
}

void JointSearch::boundOnly() {
  addAllParts();
  for (unsigned round = 0; round < maxPartRounds && !lowest().root; ++round) {
    Part &part = lowest();
    StepBoundProblem problem = boundProblem();
    problem.known = knownFor(part);
    part.root = boundStep(*part.search, problem);
    part.bound_s = std::max(part.bound_s, part.root->bound_s);
  }
  bound_s = lowest().bound_s + costs.updateSeconds();
}

void JointSearch::addAllParts() {
  int64_t most = std::min<int64_t>(costs.machines().devices().size(),
                                   options.global_batch);
  for (int64_t low = 1; low <= most; low = parts.back().high + 1)
    addPart(low, std::min(most, low <= 2 ? low : 2 * (low - 1)));
}

void JointSearch::addPart(int64_t low, int64_t high) {
  Part &part = parts.emplace_back();
  part.low = low;
  part.high = high;
  part.search = std::make_unique<TemplateSearch>(spaceFor(low, high),
                                                 options.global_batch);
  StepBoundProblem quick = boundProblem();
  quick.max_rounds = 1;
  quick.first_tolerance = quickTolerance;
  part.bound_s = boundStep(*part.search, quick).bound_s;
}

// What was worth having for other numbers of replicas is a good start.
std::vector<Template> JointSearch::knownFor(const Part &part) const {
  std::vector<Template> known;
  const Part *nearest = nullptr;
  auto distance = [&](const Part &other) {
    return std::abs(std::log(static_cast<double>(other.low + other.high) /
                             static_cast<double>(part.low + part.high)));
  };
  for (const Part &other : parts)
    if (other.root && &other != &part &&
        (!nearest || distance(other) < distance(*nearest)))
      nearest = &other;
  if (!nearest)
    return known;
  const TemplateSpace &space = part.search->templates();
  for (Template made : nearest->root->templates) {
    if (!checkTemplate(made, space, space.ownedAtBest()).empty())
      continue;
    measureTemplate(made, space);
    known.push_back(std::move(made));
  }
  return known;
}

JointSearch::Part &JointSearch::lowest() {
  return *std::min_element(
      parts.begin(), parts.end(),
      [](const Part &a, const Part &b) { return a.bound_s < b.bound_s; });
}

void JointSearch::lookInto(Part &part) {
  StepBoundProblem problem = boundProblem();
  problem.enough_s = judge.bestSeconds();
  problem.known = knownFor(part);
  part.root = boundStep(*part.search, problem);
  part.bound_s = std::max(part.bound_s, part.root->bound_s);
  if (part.root->templates.empty() || part.bound_s >= judge.bestSeconds())
    return;
  judgeDive(part, {}, available);
  if (!isContent())
    searchByClass(part);
}

void JointSearch::searchByClass(Part &part) {
  TemplateMix mix;
  ClassCounts remaining = available;
  for (unsigned index = 0; index < available.size() && !judge.isLate();
       ++index) {
    TemplateSpace space = part.search->templates();
    space.are_transfers_exposed = true;
    space.allowed_shapes.clear();
    for (const StageShape &shape : costs.shapes())
      space.allowed_shapes.push_back(shape.parts.size() == 1 &&
                                     shape.parts[0].machine_class == index);
    // Its devices' part of the batch, at the relaxation's prices.
    double share =
        std::max(part.root->prices.of_class[index], 1e-9) * available[index];
    TemplateSearch alone(
        space,
        std::max<int64_t>(1, std::llround(share * static_cast<double>(
                                                      options.global_batch))));
    DevicePrices prices;
    prices.of_class.assign(available.size(), 0);
    prices.of_class[index] = 1.0 / available[index];
    TemplateSearch::Cheapest cheapest =
        alone.cheapest(prices, never, classTolerance);
    priced += alone.pricedIntervals();
    int64_t left = part.high - replicaCount(mix);
    for (const Template &made : cheapest.found) {
      int64_t copies = std::min(left, copiesWithin(made, remaining));
      if (copies < 1 || made.seconds(1) > estimateSlack * part.root->relaxed_s)
        continue;
      addTo(mix, made, copies, remaining);
      break;
    }
  }
  if (!mix.empty())
    judgeDive(part, std::move(mix), std::move(remaining));
}

void JointSearch::judgeDive(Part &part, TemplateMix mix,
                            ClassCounts remaining) {
  mix = dive(*part.search, *part.root, std::move(remaining), std::move(mix),
             part.root->relaxed_s);
  if (judgeMix(mix)) {
    bestPart = &part;
    bestMix = std::move(mix);
  }
}

//===-- Equal replicas ----------------------------------------------------===//

void JointSearch::searchEqualReplicas() {
  // Whole mixtures of few templates are hard to find by rounding; equal
  // replicas of all classes are a mixture of one.
  for (Part &part : parts) {
    if (!part.root || part.root->templates.empty())
      continue;
    TemplateSpace space = part.search->templates();
    space.are_transfers_exposed = true;
    TemplateSearch exposed(space, options.global_batch);
    int64_t step = std::max<int64_t>(1, (part.high - part.low) / equalTries);
    for (int64_t replicas = part.low; replicas <= part.high && !isContent();
         replicas += step) {
      std::optional<Template> made = fitEqual(exposed, *part.root, replicas);
      if (!made || made->seconds(1) > estimateSlack * judge.bestSeconds())
        continue;
      ClassCounts remaining = available;
      TemplateMix mix;
      addTo(mix, *made, replicas, remaining);
      judgeDive(part, std::move(mix), std::move(remaining));
    }
    priced += exposed.pricedIntervals();
  }
}

// One template within a replica's part of each class, by prices of devices
// that follow what is used too much or too little.
std::optional<Template> JointSearch::fitEqual(TemplateSearch &search,
                                              const StepBound &root,
                                              int64_t replicas) {
  ClassCounts each = available;
  for (unsigned &count : each)
    count /= replicas;
  DevicePrices prices;
  prices.of_class.assign(each.size(), 0);
  prices.of_replica = 1 / static_cast<double>(replicas);
  for (double price : root.prices.of_class)
    prices.seconds_of_class.push_back(price * root.relaxed_s *
                                      static_cast<double>(replicas));
  std::vector<TemplateSearch::Interval> intervals;
  for (int64_t size : sizes) {
    double microbatches = static_cast<double>(options.global_batch) /
                          static_cast<double>(size * replicas);
    if (microbatches >= 1)
      intervals.push_back({size, 0.4 * root.relaxed_s / microbatches,
                           1.3 * root.relaxed_s / microbatches});
  }
  std::optional<Template> best;
  double best_s = never;
  double factor = equalFactor;
  for (unsigned round = 0; round < equalRounds && !judge.isLate(); ++round) {
    TemplateSearch::Cheapest cheapest =
        search.cheapest(intervals, prices, never, equalTolerance);
    if (cheapest.found.empty())
      break;
    for (Template &made : cheapest.found) {
      if (!fitsInto(made, each))
        continue;
      double seconds =
          made.seconds(1) +
          made.pace_s *
              (static_cast<double>(options.global_batch) /
                   static_cast<double>(made.microbatch_size * replicas) -
               1);
      if (seconds < best_s) {
        best_s = seconds;
        best = made;
      }
    }
    const Template &first = cheapest.found.front();
    for (size_t index = 0; index < each.size(); ++index)
      if (first.devices[index] > each[index])
        prices.seconds_of_class[index] *= factor;
      else if (first.devices[index] < each[index])
        prices.seconds_of_class[index] /= factor;
    factor = std::max(1.05, std::sqrt(factor));
  }
  return best;
}

bool JointSearch::split(Part &part) {
  if (part.high < leastSplit * part.low)
    return false;
  int64_t low = part.low, high = part.high, middle = (low + high) / 2;
  double bound = part.bound_s;
  // The part stays where it is: others may point to it.
  part.bound_s = never;
  addPart(low, middle);
  addPart(middle + 1, high);
  for (size_t index = parts.size() - 2; index < parts.size(); ++index)
    parts[index].bound_s = std::max(parts[index].bound_s, bound);
  return true;
}

//===-- Whole numbers -----------------------------------------------------===//

TemplateMix JointSearch::dive(TemplateSearch &search, const StepBound &root,
                              ClassCounts remaining, TemplateMix mix,
                              double target_s) {
  std::vector<Template> pool = root.templates;
  StepBound relaxed = root;
  bool isWhole = mix.empty();
  int64_t most = search.templates().max_replicas;
  while (true) {
    int64_t replicasLeft = most - replicaCount(mix);
    if (options.max_devices) {
      unsigned used = 0;
      for (unsigned count : devicesOf(mix, available.size()))
        used += count;
      unsigned left = *options.max_devices - used;
      for (unsigned &count : remaining)
        count = std::min(count, left);
    }
    if (replicasLeft <= 0 || judge.isLate() ||
        llvm::all_of(remaining, [](unsigned count) { return count == 0; }))
      break;
    std::vector<Template> fitting;
    for (const Template &made : pool)
      if (fitsInto(made, remaining))
        fitting.push_back(made);
    if (!isWhole) {
      if (fitting.empty()) {
        std::optional<Template> one = fitOne(search, root.prices, remaining);
        if (!one || one->microbatchesWithin(target_s * estimateSlack) < 1)
          break;
        pool.push_back(*one);
        fitting.push_back(std::move(*one));
      }
      StepBoundProblem problem;
      problem.available = remaining;
      problem.global_batch = std::max<int64_t>(
          1, std::llround(static_cast<double>(options.global_batch) *
                          root.prices.of(remaining)));
      problem.max_replicas = replicasLeft;
      problem.known = fitting;
      problem.tolerance = restTolerance;
      problem.max_rounds = restRounds;
      problem.is_late = [&] { return judge.isLate(); };
      // Only templates that fit: new ones that do not would have to be cut off.
      problem.may_generate = false;
      relaxed = boundStep(search, problem);
    }
    isWhole = false;

    // What is whole is fixed; if nothing is, the largest part is.
    bool isFixed = false;
    std::vector<size_t> order(relaxed.templates.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](size_t a, size_t b) {
      return relaxed.replicas[a] != relaxed.replicas[b]
                 ? relaxed.replicas[a] > relaxed.replicas[b]
                 : a < b;
    });
    for (size_t index : order) {
      const Template &made = relaxed.templates[index];
      int64_t whole =
          std::min({static_cast<int64_t>(relaxed.replicas[index] + 1e-6),
                    copiesWithin(made, remaining), most - replicaCount(mix)});
      if (whole < 1)
        continue;
      addTo(mix, made, whole, remaining);
      isFixed = true;
    }
    for (size_t index : order) {
      if (isFixed)
        break;
      const Template &made = relaxed.templates[index];
      if (relaxed.replicas[index] <= 0 || !fitsInto(made, remaining))
        continue;
      addTo(mix, made, 1, remaining);
      isFixed = true;
    }
    if (isFixed)
      continue;
    std::optional<Template> one = fitOne(search, root.prices, remaining);
    if (!one || one->microbatchesWithin(target_s * estimateSlack) < 1)
      break;
    addTo(mix, *one, 1, remaining);
    pool.push_back(std::move(*one));
  }
  return mix;
}

// The prices of what is short go up until the cheapest template fits.
std::optional<Template> JointSearch::fitOne(TemplateSearch &search,
                                            const DevicePrices &prices,
                                            const ClassCounts &remaining) {
  TemplateSpace space = search.templates();
  bool isAny = false;
  space.allowed_shapes.clear();
  for (const StageShape &shape : costs.shapes()) {
    bool fits = llvm::all_of(shape.parts, [&](const StageShape::Part &part) {
      return part.count <= remaining[part.machine_class];
    });
    space.allowed_shapes.push_back(fits);
    isAny |= fits;
  }
  if (!isAny)
    return std::nullopt;
  TemplateSearch narrow(space, options.global_batch);
  DevicePrices raised = prices;
  double least = 0;
  for (double price : raised.of_class)
    least = std::max(least, 0.01 * price);
  for (double &price : raised.of_class)
    price = std::max(price, least);
  for (unsigned round = 0; round < fitRounds && !judge.isLate(); ++round) {
    TemplateSearch::Cheapest cheapest = narrow.cheapest(raised, never, 0.1);
    if (cheapest.found.empty())
      break;
    for (Template &made : cheapest.found)
      if (fitsInto(made, remaining)) {
        priced += narrow.pricedIntervals();
        return std::move(made);
      }
    for (auto [index, used] : llvm::enumerate(cheapest.found.front().devices))
      if (used > remaining[index])
        raised.of_class[index] *= dearer;
  }
  priced += narrow.pricedIntervals();
  return std::nullopt;
}

TemplateMix JointSearch::rebuild(TemplateSearch &search, const StepBound &root,
                                 TemplateMix mix) {
  double best_s = secondsOfMix(mix, options.global_batch);
  bool improved = true;
  for (unsigned round = 0; round < rebuildRounds && improved; ++round) {
    improved = false;
    size_t count = mix.size();
    for (size_t first = 0; first < count && !improved; ++first)
      for (size_t second = 0; second <= first && !improved; ++second) {
        if (judge.isLate() || best_s <= bound_s * (1 + options.target_gap))
          return mix;
        TemplateMix smaller = mix;
        --smaller[first].replicas;
        if (second != first)
          --smaller[second].replicas;
        llvm::erase_if(smaller, [](const CountedTemplate &entry) {
          return entry.replicas == 0;
        });
        ClassCounts remaining = available;
        ClassCounts used = devicesOf(smaller, available.size());
        for (size_t index = 0; index < remaining.size(); ++index)
          remaining[index] -= used[index];
        if (smaller.empty())
          continue;
        TemplateMix other = dive(search, root, remaining, smaller, best_s);
        double seconds = secondsOfMix(other, options.global_batch);
        if (seconds >= best_s * (1 - 1e-4))
          continue;
        best_s = seconds;
        mix = std::move(other);
        improved = true;
      }
  }
  return mix;
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
