//===- TemplateSearch.cpp - the cheapest template at given prices ---------===//

#include "autohet/Planner/TemplateSearch.h"
#include "EqualReplicas.h"
#include "IntervalProgram.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <queue>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// The first intervals' ends differ by this factor, the last ones' by the
// tolerance, but at least by that.
static constexpr double widestRatio = 1.5, leastTolerance = 1e-4;
// Stages are counted in intervals up to this ratio: wider ones are split first,
// which is cheaper and may do without.
static constexpr double countedRatio = 1.1;
// What whole microbatches and later stages' exchanges add is asked for in
// intervals up to this ratio.
static constexpr double closerRatio = 1.05;
// Templates are told apart one by one in intervals up to this ratio.
static constexpr double exactRatio = 1.01;
// An interval is split into so many.
static constexpr unsigned splitInto = 5;
// When time is up, bounds without stages are asked for in intervals up to this
// ratio, as many as take some milliseconds.
static constexpr double fluidRatio = 1.02;
static constexpr unsigned maxFluidSplits = 400;

bool isLargerThanPart(double size, size_t index) {
  return size > (1 + 1e-9) / static_cast<double>(index + 2);
}

double DevicePrices::of(const ClassCounts &devices) const {
  double sum = of_replica + ofSize(sizeOf(devices));
  for (auto [count, price] : llvm::zip_equal(devices, of_class))
    sum += count * price;
  return sum;
}

double DevicePrices::sizeOf(const ClassCounts &devices) const {
  double sum = 0;
  for (auto [count, part] : llvm::zip(devices, part_of_class))
    sum += count * part;
  return sum;
}

double DevicePrices::ofSize(double size) const {
  double sum = 0;
  for (auto [index, price] : llvm::enumerate(of_large))
    if (isLargerThanPart(size, index))
      sum += price;
  return sum;
}

// Sums differ in their last bits: a little above a whole number is that.
double wholeMicrobatches(double microbatches) {
  return std::max(1.0, std::ceil(microbatches * (1 - 1e-12) - 1e-9));
}

double chargedSeconds(const Template &made, const DevicePrices &prices,
                      int64_t globalBatch) {
  double microbatches = wholeMicrobatches(
      prices.of(made.devices) * static_cast<double>(globalBatch) /
      static_cast<double>(made.microbatch_size));
  return made.way_s - made.slack_s + made.rest_s +
         (microbatches - 1) * made.period_s;
}

TemplateSearch::TemplateSearch(const TemplateSpace &space, int64_t globalBatch)
    : space(space), globalBatch(globalBatch),
      tables(space.microbatch_sizes.size()) {}

TemplateSearch::~TemplateSearch() = default;

StageTables &TemplateSearch::tablesOf(int64_t microbatchSize) {
  size_t index = llvm::find(space.microbatch_sizes, microbatchSize) -
                 space.microbatch_sizes.begin();
  if (!tables[index])
    tables[index] = std::make_unique<StageTables>(space, microbatchSize);
  return *tables[index];
}

//===-- All intervals -----------------------------------------------------===//

namespace {

struct QueuedInterval {
  double bound_s = 0;
  bool is_priced = false;
  TemplateSearch::Interval interval;
  size_t number = 0; ///< makes the order one of all runs

  bool operator<(const QueuedInterval &other) const {
    return std::tie(other.bound_s, other.number) < std::tie(bound_s, number);
  }
};

} // namespace

std::vector<TemplateSearch::Interval> TemplateSearch::allIntervals() {
  std::vector<Interval> intervals;
  for (int64_t size : space.microbatch_sizes) {
    if (size > globalBatch)
      continue;
    const StageTables &stageTables = tablesOf(size);
    // Sums differ in their last bits.
    if (!stageTables.variants().empty())
      intervals.push_back({size, stageTables.shortestPeriod() * (1 - 1e-9),
                           stageTables.longestPeriod() * (1 + 1e-9)});
  }
  return intervals;
}

static std::vector<TemplateSearch::Interval>
divide(const TemplateSearch::Interval &interval, unsigned parts) {
  std::vector<TemplateSearch::Interval> pieces;
  double ratio = std::pow(interval.high_s / interval.low_s, 1.0 / parts);
  double low = interval.low_s;
  for (unsigned part = 0; part < parts; ++part) {
    double high = part + 1 == parts ? interval.high_s : low * ratio;
    pieces.push_back({interval.microbatch_size, low, high});
    low = high;
  }
  return pieces;
}

static unsigned partsOf(const TemplateSearch::Interval &interval) {
  return std::max(1.0, std::ceil(std::log(interval.high_s / interval.low_s) /
                                 std::log(widestRatio)));
}

TemplateSearch::Cheapest TemplateSearch::cheapest(const DevicePrices &prices,
                                                  double known_s,
                                                  double tolerance) {
  return cheapest(allIntervals(), prices, known_s, tolerance);
}

std::optional<Template> TemplateSearch::withDevices(const ClassCounts &devices,
                                                    int64_t microbatchSize,
                                                    unsigned leastStage) {
  return fitDevices(space, tablesOf(microbatchSize), microbatchSize, devices,
                    leastStage, deadline);
}

// From the last unit to the first, in the smallest microbatches, of which one
// at least is in flight.
std::optional<ClassCounts>
TemplateSearch::leastDevices(llvm::ArrayRef<double> prices) {
  StageTables &stageTables = tablesOf(space.microbatch_sizes.front());
  const unsigned units = stageTables.unitCount();
  std::vector<double> shapePrices; // of each variant
  std::vector<llvm::ArrayRef<uint16_t>> furthest;
  auto partsOf = [&](unsigned variant) -> llvm::ArrayRef<StageShape::Part> {
    unsigned shape = stageTables.variants()[variant].shape;
    return space.costs.shapes()[shape].parts;
  };
  for (unsigned index = 0; index < stageTables.variants().size(); ++index) {
    double &price = shapePrices.emplace_back(0);
    for (const StageShape::Part &part : partsOf(index))
      price += part.count * prices[part.machine_class];
    furthest.push_back(stageTables.furthestEnds(index, /*inFlight=*/1));
  }
  /// How units from one on are run at the lowest price.
  struct Step {
    double price = never;
    unsigned variant = 0, end = 0; ///< of the first stage
  };
  std::vector<Step> steps(units + 1);
  steps[units].price = 0;
  // Where a stage ends best that may end up to a unit. Others need not be
  // cheaper the later they begin: a cut may have to hold more.
  std::vector<unsigned> bestEnds(units + 1);
  for (unsigned begin = units; begin-- > 0;) {
    bestEnds[begin] = begin;
    for (unsigned end = begin + 1; end <= units; ++end) {
      unsigned before = bestEnds[end - 1];
      bestEnds[end] = steps[end].price < steps[before].price ? end : before;
    }
    for (auto [index, price] : llvm::enumerate(shapePrices)) {
      unsigned end = bestEnds[furthest[index][begin]];
      if (price + steps[end].price < steps[begin].price)
        steps[begin] = {price + steps[end].price, static_cast<unsigned>(index),
                        end};
    }
  }
  if (steps[0].price == never)
    return std::nullopt;
  ClassCounts devices(prices.size());
  for (unsigned unit = 0; unit < units; unit = steps[unit].end)
    for (const StageShape::Part &part : partsOf(steps[unit].variant))
      devices[part.machine_class] += part.count;
  return devices;
}

std::vector<Template> TemplateSearch::allWithin(const DevicePrices &prices,
                                                double limit_s, double ratio) {
  std::vector<Template> found;
  IntervalProgram program(space, globalBatch, prices);
  std::vector<Interval> open;
  for (const Interval &all : allIntervals())
    llvm::append_range(open, divide(all, partsOf(all)));
  while (!open.empty() && !deadline.isOver()) {
    Interval interval = open.back();
    open.pop_back();
    StageTables &stageTables = tablesOf(interval.microbatch_size);
    if (program.fluidBound(stageTables, interval, limit_s) >= limit_s)
      continue;
    bool isFine = interval.high_s <= ratio * interval.low_s;
    Template made;
    ++count;
    if (program.run(stageTables, interval, limit_s, isFine, made.stages) ==
        never)
      continue;
    if (!isFine) {
      llvm::append_range(open, divide(interval, splitInto));
      continue;
    }
    made.microbatch_size = interval.microbatch_size;
    measureTemplate(made, space);
    if (llvm::none_of(
            found, [&](const Template &other) { return made.isSame(other); }))
      found.push_back(std::move(made));
  }
  return found;
}

TemplateSearch::Cheapest
TemplateSearch::cheapest(llvm::ArrayRef<Interval> intervals,
                         const DevicePrices &prices, double known_s,
                         double tolerance) {
  Cheapest result;
  double best_s = known_s;
  std::priority_queue<QueuedInterval> queue;
  size_t number = 0;
  IntervalProgram program(space, globalBatch, prices);
  auto split = [&](const Interval &interval, unsigned parts, double bound) {
    for (const Interval &piece : divide(interval, parts)) {
      double fluid =
          std::max(bound, program.fluidBound(tablesOf(piece.microbatch_size),
                                             piece, best_s));
      if (fluid < best_s)
        queue.push({fluid, false, piece, number++});
    }
  };
  for (Interval all : intervals) {
    // A period is a part of the step.
    all.high_s = std::min(all.high_s, known_s);
    if (all.low_s <= all.high_s)
      split(all, partsOf(all), 0);
  }

  std::vector<std::pair<double, Template>> found;
  // Else no interval is left, and none has a template below the best one.
  bool isDone = false;
  unsigned fluidSplits = 0;
  while (!queue.empty()) {
    QueuedInterval next = queue.top();
    queue.pop();
    double ratio = next.interval.high_s / next.interval.low_s;
    bool isEnough = next.bound_s >= best_s * (1 - tolerance);
    bool isLate = deadline.isOver();
    if (!isEnough && isLate && !next.is_priced && ratio > fluidRatio &&
        fluidSplits++ < maxFluidSplits) {
      split(next.interval, splitInto, next.bound_s);
      continue;
    }
    if (isEnough || isLate) {
      result.bound_s = std::min(next.bound_s, best_s);
      isDone = true;
      break;
    }
    if (next.is_priced) {
      if (ratio <= 1 + std::max(tolerance, leastTolerance)) {
        result.bound_s = next.bound_s;
        isDone = true;
        break;
      }
      split(next.interval, splitInto, next.bound_s);
      continue;
    }
    StageTables &stageTables = tablesOf(next.interval.microbatch_size);
    auto keep = [&](const std::vector<TemplateStage> &stages) {
      Template made;
      made.microbatch_size = next.interval.microbatch_size;
      made.stages = stages;
      measureTemplate(made, space);
      double seconds = chargedSeconds(made, prices, globalBatch);
      found.push_back({seconds, std::move(made)});
      best_s = std::min(best_s, seconds);
    };
    std::vector<TemplateStage> stages;
    auto price = [&] {
      ++count;
      double bound = program.run(stageTables, next.interval, best_s,
                                 /*mayCount=*/ratio <= countedRatio, stages);
      if (!stages.empty())
        keep(stages);
      return bound;
    };
    double bound = price();
    double enough_s = best_s * (1 - tolerance);
    if (bound < enough_s && ratio <= closerRatio &&
        program.limitExchange(stageTables, next.interval, best_s)) {
      bound = std::max(bound, price());
      enough_s = best_s * (1 - tolerance);
    }
    // One microbatch more is the most that whole ones can add.
    if (bound < enough_s && ratio <= closerRatio &&
        bound + next.interval.low_s > enough_s)
      bound = std::max(
          bound, program.wholeBound(stageTables, next.interval, best_s, keep));
    // Of what mixtures of templates hide, too.
    if (bound < best_s * (1 - tolerance) && ratio <= exactRatio &&
        !exact.isSkipped()) {
      double closer =
          program.exactBound(stageTables, next.interval, best_s, stages);
      exact.note(/*isTooLong=*/closer == 0);
      bound = std::max(bound, closer);
      if (!stages.empty())
        keep(stages);
    }
    program.allowExchange();
    if (bound == never)
      continue;
    next.bound_s = std::max(next.bound_s, bound);
    next.is_priced = true;
    queue.push(next);
  }
  if (!isDone)
    result.bound_s = best_s;
  llvm::sort(found,
             [](const auto &a, const auto &b) { return a.first < b.first; });
  for (auto &[seconds, made] : found)
    if (llvm::none_of(result.found, [&made = made](const Template &other) {
          return made.isSame(other);
        }))
      result.found.push_back(std::move(made));
  return result;
}

} // namespace autohet
