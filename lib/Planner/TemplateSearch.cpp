//===- TemplateSearch.cpp - the cheapest template at given prices ---------===//

#include "autohet/Planner/TemplateSearch.h"
#include "StageTables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <queue>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// The first intervals' ends differ by this factor, the last ones' by the
// tolerance, but at least by that.
static constexpr double widestRatio = 1.2, leastTolerance = 1e-4;
// An interval is split into so many.
static constexpr unsigned splitInto = 3;

double DevicePrices::of(const ClassCounts &devices) const {
  double sum = of_replica;
  for (auto [count, price] : llvm::zip_equal(devices, of_class))
    sum += count * price;
  return sum;
}

double chargedSeconds(const Template &made, const DevicePrices &prices,
                      int64_t globalBatch) {
  double microbatches = prices.of(made.devices) *
                        static_cast<double>(globalBatch) /
                        static_cast<double>(made.microbatch_size);
  double seconds = made.way_s - made.slack_s + made.rest_s +
                   std::max(0.0, microbatches - 1) * made.period_s;
  for (auto [count, each] : llvm::zip(made.devices, prices.seconds_of_class))
    seconds += count * each;
  return seconds;
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

//===-- One interval ------------------------------------------------------===//

namespace {

/// The cheapest way to run units [unit, …) found so far, by the class of its
/// first stage and by whether the longest stage is among its stages.
struct State {
  double cost_s = never;
  uint16_t end = 0, variant = 0; ///< of the first stage
  uint8_t next_group = 0;
  bool had_longest = false; ///< of the rest: where it goes on
};

/// The dynamic program of one interval.
///
/// A stage costs its charge and, up to the longest stage, its time; behind that
/// one only what costBehind() says. What units before a state will cost at
/// least is known from a simpler program, without links and with a fixed number
/// of microbatches in flight: states that cannot become best are dropped.
class IntervalProgram {
public:
  IntervalProgram(const StageTables &tables, const PlanCosts &costs,
                  const TemplateSearch::Interval &interval,
                  const DevicePrices &prices, int64_t globalBatch,
                  bool areTransfersExposed)
      : tables(tables), low_s(interval.low_s), high_s(interval.high_s),
        overlap(costs.transfersOverlap() && !areTransfersExposed),
        units(tables.unitCount()), groups(tables.groupCount()),
        variants(tables.variants().size()) {
    double microbatches = static_cast<double>(globalBatch) /
                          static_cast<double>(interval.microbatch_size);
    fixed_s = low_s * (microbatches * prices.of_replica - 1);
    cheapestCharge = never;
    for (const StageTables::Variant &variant : tables.variants()) {
      double price = 0, seconds = 0;
      for (const StageShape::Part &part : costs.shapes()[variant.shape].parts) {
        price += part.count * prices.of_class[part.machine_class];
        if (!prices.seconds_of_class.empty())
          seconds += part.count * prices.seconds_of_class[part.machine_class];
      }
      charge_s.push_back(low_s * microbatches * price + seconds);
      cheapestCharge = std::min(cheapestCharge, microbatches * price);
    }
    behind = std::min(1.0, cheapestCharge * low_s / high_s);
    replicaCharge = microbatches * prices.of_replica;
  }

  /// A bound without stages: the best mixture of rates.
  double fluidBound() const {
    double sum = fixed_s;
    for (unsigned unit = 0; unit < units; ++unit) {
      double least = never;
      for (auto [variant, charge] :
           llvm::zip_equal(tables.variants(), charge_s)) {
        double time = variant.total_s[unit + 1] - variant.total_s[unit];
        double factor = 1 + charge / high_s;
        if (overlap)
          factor = std::min(factor, 2 * behind + charge / high_s - behind);
        least = std::min(least, time * factor);
      }
      sum += least;
    }
    return sum;
  }

  /// The least cost below `cutoff_s`; fills in the stages.
  double run(double cutoff_s, std::vector<TemplateStage> &stages) {
    best_s = cutoff_s - fixed_s;
    boundPrefixes(1);
    if (before(units, true) >= best_s)
      return never;
    layers.assign(1, {});
    for (unsigned depth = 1; depth <= units; ++depth) {
      // Deeper, memory for more microbatches is needed: look again.
      if (llvm::isPowerOf2_32(depth) && depth > 1)
        boundPrefixes(depth);
      layers.emplace_back((units + 1) * groups * 2);
      bool isAny = false;
      for (unsigned end = 1; end <= units; ++end)
        if (depth == 1 ? end == units : isReached(depth - 1, end))
          isAny |= extend(depth, end);
      if (!isAny)
        break;
    }
    if (!bestDepth)
      return never;
    readStages(stages);
    return best_s + fixed_s;
  }

private:
  // Behind the longest stage, only what a stage's time exceeds what that one
  // does meanwhile; at least nothing in sum, so any part of it is a bound too.
  // That part keeps stages of little time from lowering the bound.
  double costBehind(double time) const {
    return overlap ? behind * (2 * time - high_s) : time;
  }

  /// What units [0, unit) cost at least; with the longest stage among them
  /// where `hasLongest`.
  double &before(unsigned unit, bool hasLongest) {
    return prefix_s[unit * 2 + hasLongest];
  }
  /// The same if a stage of a variant ends there.
  double &beforeBy(unsigned unit, unsigned variant, bool hasLongest) {
    return prefixBy_s[(unit * variants + variant) * 2 + hasLongest];
  }

  void boundPrefixes(unsigned depth) {
    prefix_s.assign((units + 1) * 2, never);
    prefixBy_s.assign((units + 1) * variants * 2, never);
    before(0, false) = 0;
    int64_t needed = inFlightAt(depth);
    for (unsigned end = 1; end <= units; ++end) {
      for (unsigned index = 0; index < variants; ++index) {
        const std::vector<double> &total_s = tables.variants()[index].total_s;
        double plain = never, withLongest = never;
        for (unsigned begin = end; begin-- > 0;) {
          double time = total_s[end] - total_s[begin];
          if (time > high_s || tables.mostInFlight(index, begin, end) < needed)
            break;
          double first = before(begin, false) + time;
          plain = std::min(plain, first);
          withLongest =
              std::min(withLongest, before(begin, true) + costBehind(time));
          if (time >= low_s || !overlap)
            withLongest = std::min(withLongest, first);
        }
        beforeBy(end, index, false) = plain + charge_s[index];
        beforeBy(end, index, true) = withLongest + charge_s[index];
        before(end, false) =
            std::min(before(end, false), beforeBy(end, index, false));
        before(end, true) =
            std::min(before(end, true), beforeBy(end, index, true));
      }
      // A transfer may be what sets the pace.
      if (tables.longestTransfer(end) >= low_s)
        before(end, true) = std::min(before(end, true), before(end, false));
    }
  }

  State &at(unsigned depth, unsigned unit, unsigned group, bool hadLongest) {
    return layers[depth][(unit * groups + group) * 2 + hadLongest];
  }
  bool isReached(unsigned depth, unsigned unit) {
    for (unsigned group = 0; group < groups; ++group)
      if (at(depth, unit, group, false).cost_s < never ||
          at(depth, unit, group, true).cost_s < never)
        return true;
    return false;
  }

  // Microbatches in flight `depth` stages from the end: as many as that,
  // unless a replica may have fewer microbatches than stages. It has at least
  // what its devices are charged for.
  int64_t inFlightAt(unsigned depth) const {
    if (cheapestCharge >= 1)
      return depth;
    return std::clamp<int64_t>(
        std::ceil(depth * cheapestCharge + replicaCharge - 1e-9), 1, depth);
  }

  /// What follows a stage: its least cost, and which it is.
  struct Rest {
    double cost_s[2] = {never, never}; ///< by whether it has the longest stage
    uint8_t group[2] = {0, 0};
    bool had_longest[2] = {false, true};
    double transfer_s[2] = {0, 0};
  };

  Rest restOf(unsigned depth, unsigned end, unsigned group) {
    Rest rest;
    if (depth == 1) {
      rest.cost_s[false] = 0;
      return rest;
    }
    for (unsigned next = 0; next < groups; ++next) {
      const PassSeconds &transfer = tables.transfer(end, group, next);
      double longest = std::max(transfer.forward_s, transfer.backward_s);
      if (overlap && longest > high_s)
        continue;
      for (bool had : {false, true}) {
        double passing = transfer.total() * (had || !overlap ? 1 : behind);
        double cost = at(depth - 1, end, next, had).cost_s + passing;
        for (bool has : {had, had || (overlap && longest >= low_s)})
          if (cost < rest.cost_s[has]) {
            rest.cost_s[has] = cost;
            rest.group[has] = next;
            rest.had_longest[has] = had;
            rest.transfer_s[has] = overlap ? 0 : transfer.total();
          }
      }
    }
    return rest;
  }

  bool extend(unsigned depth, unsigned end) {
    bool isAny = false;
    rests.clear();
    for (unsigned group = 0; group < groups; ++group)
      rests.push_back(restOf(depth, end, group));
    int64_t needed = inFlightAt(depth);
    for (auto [index, variant] : llvm::enumerate(tables.variants())) {
      const Rest &rest = rests[variant.group];
      for (bool had : {false, true}) {
        // With the longest stage behind, the rest has none, and the other way.
        if (rest.cost_s[had] + beforeBy(end, index, !had) >= best_s)
          continue;
        double cost = rest.cost_s[had] + charge_s[index];
        double room = high_s - rest.transfer_s[had];
        for (unsigned begin = end; begin-- > 0;) {
          double time = variant.total_s[end] - variant.total_s[begin];
          if (time > room || tables.mostInFlight(index, begin, end) < needed)
            break;
          if (had || time + rest.transfer_s[had] >= low_s)
            isAny |=
                reach(depth, begin, index, had, true, cost + time, rest, end);
          if (!had)
            isAny |= reach(depth, begin, index, had, false,
                           cost + costBehind(time), rest, end);
        }
      }
    }
    return isAny;
  }

  bool reach(unsigned depth, unsigned begin, unsigned variant, bool had,
             bool has, double cost, const Rest &rest, unsigned end) {
    if (begin > 0) {
      if (cost + before(begin, !has) >= best_s)
        return false;
      State &place = at(depth, begin, tables.variants()[variant].group, has);
      if (cost < place.cost_s)
        place = {cost, static_cast<uint16_t>(end),
                 static_cast<uint16_t>(variant), rest.group[had],
                 rest.had_longest[had]};
      return true;
    }
    if (!has || cost >= best_s)
      return false;
    cost += tables.restSeconds(variant, end);
    if (cost >= best_s)
      return false;
    best_s = cost;
    bestDepth = depth;
    first = {cost, static_cast<uint16_t>(end), static_cast<uint16_t>(variant),
             rest.group[had], rest.had_longest[had]};
    return false;
  }

  void readStages(std::vector<TemplateStage> &stages) {
    State state = first;
    unsigned begin = 0;
    for (unsigned depth = bestDepth; depth > 0; --depth) {
      const StageTables::Variant &variant = tables.variants()[state.variant];
      stages.push_back({begin, state.end, variant.shape, variant.recompute});
      begin = state.end;
      if (depth > 1)
        state = at(depth - 1, begin, state.next_group, state.had_longest);
    }
  }

  const StageTables &tables;
  double low_s, high_s, fixed_s = 0;
  bool overlap;
  unsigned units, groups, variants;
  double cheapestCharge = 0;    ///< microbatches of the cheapest shape
  double replicaCharge = 0;     ///< microbatches of any replica
  double behind = 1;            ///< see costBehind()
  std::vector<double> charge_s; ///< of each variant
  std::vector<double> prefix_s, prefixBy_s;
  std::vector<Rest> rests;                ///< of one end
  std::vector<std::vector<State>> layers; ///< by the number of stages
  double best_s = never;
  unsigned bestDepth = 0;
  State first;
};

} // namespace

std::optional<TemplateSearch::Priced>
TemplateSearch::price(const Interval &interval, const DevicePrices &prices,
                      double cutoff_s) {
  const StageTables &stageTables = tablesOf(interval.microbatch_size);
  IntervalProgram program(stageTables, space.costs, interval, prices,
                          globalBatch, space.are_transfers_exposed);
  ++count;
  Priced priced;
  priced.bound_s = program.run(cutoff_s, priced.made.stages);
  if (priced.bound_s == never)
    return std::nullopt;
  priced.made.microbatch_size = interval.microbatch_size;
  measureTemplate(priced.made, space);
  return priced;
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

TemplateSearch::Cheapest TemplateSearch::cheapest(const DevicePrices &prices,
                                                  double known_s,
                                                  double tolerance) {
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
  return cheapest(intervals, prices, known_s, tolerance);
}

TemplateSearch::Cheapest
TemplateSearch::cheapest(llvm::ArrayRef<Interval> intervals,
                         const DevicePrices &prices, double known_s,
                         double tolerance) {
  Cheapest result;
  double best_s = known_s;
  std::priority_queue<QueuedInterval> queue;
  size_t number = 0;
  auto split = [&](const Interval &interval, unsigned parts, double bound) {
    double ratio = std::pow(interval.high_s / interval.low_s, 1.0 / parts);
    double low = interval.low_s;
    for (unsigned part = 0; part < parts; ++part) {
      double high = part + 1 == parts ? interval.high_s : low * ratio;
      Interval piece = {interval.microbatch_size, low, high};
      IntervalProgram program(tablesOf(piece.microbatch_size), space.costs,
                              piece, prices, globalBatch,
                              space.are_transfers_exposed);
      double fluid = std::max(bound, program.fluidBound());
      if (fluid < best_s)
        queue.push({fluid, false, piece, number++});
      low = high;
    }
  };
  for (Interval all : intervals) {
    // A period is a part of the step.
    all.high_s = std::min(all.high_s, known_s);
    if (all.low_s > all.high_s)
      continue;
    unsigned parts = std::max(1.0, std::ceil(std::log(all.high_s / all.low_s) /
                                             std::log(widestRatio)));
    split(all, parts, 0);
  }

  std::vector<std::pair<double, Template>> found;
  while (!queue.empty()) {
    QueuedInterval next = queue.top();
    queue.pop();
    if (next.bound_s >= best_s * (1 - tolerance) || is_late()) {
      result.bound_s = std::min(next.bound_s, best_s);
      break;
    }
    double ratio = next.interval.high_s / next.interval.low_s;
    if (next.is_priced) {
      if (ratio <= 1 + std::max(tolerance, leastTolerance)) {
        result.bound_s = next.bound_s;
        break;
      }
      split(next.interval, splitInto, next.bound_s);
      continue;
    }
    std::optional<Priced> priced = price(next.interval, prices, best_s);
    if (!priced)
      continue;
    double seconds = chargedSeconds(priced->made, prices, globalBatch);
    found.push_back({seconds, std::move(priced->made)});
    best_s = std::min(best_s, seconds);
    next.bound_s = std::max(next.bound_s, priced->bound_s);
    next.is_priced = true;
    queue.push(next);
  }
  if (queue.empty() && result.bound_s == 0)
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
