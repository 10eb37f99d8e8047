//===- IntervalProgram.cpp - the cheapest template of one interval --------===//

#include "IntervalProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// So much of its charge a short stage behind the longest one may make up for;
// what is left keeps bounds without stages from being too low.
static constexpr double usedCharge = 0.75, mostUsedCharge = 0.98;

void IntervalProgram::start(const StageTables &tables,
                            const TemplateSearch::Interval &interval,
                            const Objective &objective) {
  low_s = interval.low_s;
  high_s = interval.high_s;
  overlap = space.costs.transfersOverlap() && !space.are_transfers_exposed;
  drainsEarly = overlap && space.costs.hasBackward();
  hasTimes = objective.has_times;
  hasRest = hasTimes && objective.has_rest;
  wayPart = longestPart = hasTimes ? stepPart() : 0;
  units = tables.unitCount();
  groups = tables.groupCount();
  variants = tables.variants().size();
  double microbatches = static_cast<double>(globalBatch) /
                        static_cast<double>(interval.microbatch_size);
  replicaCharge =
      microbatches *
      (prices.of_replica + prices.ofSize(shortestPeriod(tables) / high_s));
  fixed_s = objective.microbatch_s * replicaCharge;
  cheapestCharge = never;
  charge_s.clear();
  std::vector<double> charges;
  for (const StageTables::Variant &variant : tables.variants()) {
    double price = 0;
    for (const StageShape::Part &part :
         space.costs.shapes()[variant.shape].parts)
      price += part.count * prices.of_class[part.machine_class];
    charges.push_back(microbatches * price);
    charge_s.push_back(objective.microbatch_s * charges.back());
    cheapestCharge = std::min(cheapestCharge, microbatches * price);
  }
  bothEnds = oneEnd = 0;
  if (hasTimes && drainsEarly)
    chooseEnds(tables, objective.is_close ? mostUsedCharge : usedCharge);
  // Where messages are a part of stages, the longest one's time is not known.
  bool isAdaptive = hasTimes && overlap;
  replicaSlope = isAdaptive ? replicaCharge : 0;
  costs.clear();
  for (double charge : charges)
    costs.push_back(
        costsOf(objective.microbatch_s * charge, isAdaptive ? charge : 0));
}

// `charge_s` is a stage's at the least period, which grows by `chargeSlope`
// with longer ones: no period is shorter than the stage.
IntervalProgram::StageCosts IntervalProgram::costsOf(double charge_s,
                                                     double chargeSlope) const {
  StageCosts made;
  double more_s = charge_s - chargeSlope * low_s;
  made.shortOne = {wayPart, charge_s};
  made.longOne = {wayPart + chargeSlope, more_s};
  // It is the period.
  made.longest = overlap
                     ? Line{wayPart + chargeSlope + replicaSlope - longestPart,
                            more_s - replicaSlope * low_s}
                     : Line{wayPart, charge_s - longestPart * low_s};
  if (!drainsEarly) {
    made.shortOneBehind = made.shortOne;
    made.longOneBehind = made.longOne;
    return made;
  }
  // The charge grows with the period, what counts of the time shrinks.
  double time = 2 * bothEnds + oneEnd, forwards_s = oneEnd * forward_s;
  double period = chargeSlope - bothEnds;
  if (period < 0) {
    made.shortOneBehind = {time, more_s + period * high_s - forwards_s};
    made.longOneBehind = made.shortOneBehind;
  } else {
    made.shortOneBehind = {time, more_s + period * low_s - forwards_s};
    made.longOneBehind = {time + period, more_s - forwards_s};
  }
  return made;
}

// Behind the longest stage, only that counts which their times exceed what the
// longest stage does meanwhile: at the beginning its forwards, or at both ends
// forwards and backwards, or nothing. So any mixture of the three is a bound.
// The one that is best for long stages is taken, of those that let no stage
// lower the bound by being short.
void IntervalProgram::chooseEnds(const StageTables &tables, double usedCharge) {
  forward_s = tables.longestForward(high_s);
  constexpr int steps = 16;
  double best = -1;
  for (int step = 0; step <= steps; ++step) {
    double both = static_cast<double>(step) / steps, one = 1 - both;
    for (auto [index, variant] : llvm::enumerate(tables.variants())) {
      double left = usedCharge * charge_s[index] -
                    both * (high_s - 2 * variant.shortestUnit_s);
      double room = forward_s - variant.shortestUnit_s;
      if (left < 0)
        one = -1;
      else if (room > 0)
        one = std::min(one, left / room);
    }
    double worth = both * high_s + one * (high_s - forward_s);
    if (one < 0 || worth <= best)
      continue;
    best = worth;
    bothEnds = both;
    oneEnd = one;
  }
}

// No template is faster than its part of the cluster allows: the period times
// the size of a stage is no less than the sum over its units of size times
// time, and all sizes together are at most 1.
double IntervalProgram::shortestPeriod(const StageTables &tables) {
  if (prices.part_of_class.empty())
    return 0;
  for (const auto &[known, period] : shortestPeriods)
    if (known == &tables)
      return period;
  std::vector<double> sizes;
  for (const StageTables::Variant &variant : tables.variants()) {
    double size = 0;
    for (const StageShape::Part &part :
         space.costs.shapes()[variant.shape].parts)
      size += part.count * prices.part_of_class[part.machine_class];
    sizes.push_back(size);
  }
  double period = 0;
  for (unsigned unit = 0; unit < tables.unitCount(); ++unit) {
    double least = never;
    for (auto [size, time] : llvm::zip_equal(sizes, tables.unitSeconds(unit)))
      least = std::min(least, size * time);
    period += least;
  }
  shortestPeriods.push_back({&tables, period});
  return period;
}

// Microbatches in flight `depth` stages from the end: as many as that, unless a
// replica may have fewer microbatches than stages. It has at least what its
// devices are charged for.
int64_t IntervalProgram::inFlightAt(unsigned depth) const {
  if (cheapestCharge >= 1)
    return depth;
  return std::clamp<int64_t>(
      std::ceil(depth * cheapestCharge + replicaCharge - 1e-9), 1, depth);
}

void IntervalProgram::boundFluid(const StageTables &tables) {
  std::vector<double> factors;
  for (auto [index, variant] : llvm::enumerate(tables.variants())) {
    double factor = never;
    // Costs are linear between these times.
    for (double time : {std::min(variant.shortestUnit_s, high_s),
                        std::min(low_s, high_s), high_s}) {
      double cost = std::min(costBefore(index, time), costBehind(index, time));
      if (cost <= 0)
        factor = 0;
      else if (time > 0)
        factor = std::min(factor, cost / time);
    }
    factors.push_back(factor < never ? factor : 0);
  }
  fluid_s.assign(units + 1, 0);
  for (unsigned unit = units; unit-- > 0;) {
    llvm::ArrayRef<double> times = tables.unitSeconds(unit);
    double least = never;
    for (unsigned variant = 0; variant < variants; ++variant)
      if (times[variant] <= high_s)
        least = std::min(least, times[variant] * factors[variant]);
    fluid_s[unit] = fluid_s[unit + 1] + least;
  }
}

// The period is counted off once, which it is a large part of where there are
// few microbatches. All but the first one take at least that part of all which
// it is of the fewest that there may be.
double IntervalProgram::fluidBound(const StageTables &tables,
                                   const TemplateSearch::Interval &interval) {
  if (shortestPeriod(tables) > interval.high_s * (1 + 1e-9))
    return never;
  start(tables, interval, {true, interval.low_s});
  boundFluid(tables);
  // Every microbatch takes a period, and there is one.
  double bound = std::max(fluid_s[0] + fixed_s - longestPart * high_s, low_s);
  if (!overlap || longestPart == 0)
    return bound;
  double fewest = replicaCharge;
  for (unsigned unit = 0; unit < units; ++unit) {
    llvm::ArrayRef<double> times = tables.unitSeconds(unit);
    double least = never;
    for (unsigned variant = 0; variant < variants; ++variant)
      if (times[variant] <= high_s)
        least = std::min(least, times[variant] / high_s * charge_s[variant]);
    fewest += least / low_s;
  }
  if (fewest <= 1)
    return bound;
  double part = 1 - 1 / fewest;
  for (unsigned variant = 0; variant < variants; ++variant) {
    charge_s[variant] *= part;
    costs[variant] = costsOf(charge_s[variant], charge_s[variant] / low_s);
  }
  boundFluid(tables);
  return std::max(bound, fluid_s[0] + part * fixed_s);
}

double IntervalProgram::leastOf(StageTables &tables,
                                const TemplateSearch::Interval &interval,
                                const Objective &objective, double cutoff,
                                std::vector<TemplateStage> &stages) {
  start(tables, interval, objective);
  boundFluid(tables);
  best_s = cutoff - fixed_s;
  boundPrefixes(tables, inFlightAt(1));
  if (before(units, true) >= best_s)
    return never;
  isLegal = readPrefix(tables, stages);
  return before(units, true) + fixed_s;
}

double IntervalProgram::run(StageTables &tables,
                            const TemplateSearch::Interval &interval,
                            double cutoff_s, bool mayCount,
                            std::vector<TemplateStage> &stages) {
  double bound =
      leastOf(tables, interval, {true, interval.low_s}, cutoff_s, stages);
  if (bound == never || !isLegal) {
    stages.clear();
    if (bound < never && mayCount)
      bound = countStages(tables, stages) + fixed_s;
  }
  return bound;
}

//===-- Without the number of stages --------------------------------------===//

void IntervalProgram::boundPrefixes(StageTables &tables, int64_t inFlight) {
  prefixes.assign((units + 1) * groups * 2, {never, 0, 0, false});
  arrivals.assign((units + 1) * groups * 2, {never, 0, false});
  before_s.assign((units + 1) * 2, never);
  beforeBy_s.assign((units + 1) * variants * 2, never);
  windows.resize(variants);
  for (auto [variant, made] : llvm::enumerate(tables.variants())) {
    Window &window = windows[variant];
    window.total_s = made.total_s.data();
    window.furthest = tables.furthestEnds(variant, inFlight).data();
    window.ends = limits.isSet() ? limits.ends(variant).data() : nullptr;
    window.endsOfLong =
        limits.isSet() ? limits.endsOfLong(variant).data() : nullptr;
    window.group = made.group;
    window.first = 0;
    window.firstShort = 1;
    for (SlidingMinimum *minimum :
         {&window.shortOnes, &window.longOnes, &window.longest,
          &window.shortBehind, &window.longBehind})
      minimum->reset(units);
  }
  for (unsigned end = 1; end <= units; ++end) {
    bool isAny = false;
    for (unsigned variant = 0; variant < variants; ++variant)
      isAny |= extendPrefix(tables, end, variant);
    // A stage that ends later would begin in one of the windows.
    if (!isAny)
      return;
    for (unsigned group = 0; group < groups; ++group)
      for (bool has : {false, true})
        before(end, has) =
            std::min(before(end, has), prefixAt(end, group, has).cost_s);
    if (end < units)
      passPrefixOn(tables, end);
  }
}

// Stages of one variant that end at `end`; whether there are such. Where memory
// allows a first unit but not a later one, the later one is not left out: a
// bound all the same.
bool IntervalProgram::extendPrefix(StageTables &tables, unsigned end,
                                   unsigned variant) {
  Window &window = windows[variant];
  const StageCosts &cost = costs[variant];
  const double *total_s = window.total_s;
  const double end_s = total_s[end];
  auto isOut = [&](unsigned begin) {
    double time = end_s - total_s[begin];
    return time > high_s || window.furthest[begin] < end ||
           (window.ends && (window.ends[begin] < end ||
                            (time >= low_s && window.endsOfLong[begin] < end)));
  };
  while (window.first < end && isOut(window.first))
    ++window.first;
  if (window.first == end)
    return false;
  // A stage of a line costs that much more than the units before it and the
  // line at its end.
  auto push = [&](SlidingMinimum &minimum, const Line &line, unsigned begin,
                  bool had) {
    double before_s = arrivalAt(begin, window.group, had).cost_s;
    if (before_s < never)
      minimum.push(begin, before_s - line.slope * total_s[begin]);
  };
  // The unit before `end` may begin a stage.
  if (unsigned begin = end - 1) {
    push(window.shortOnes, cost.shortOne, begin, false);
    push(window.shortBehind, cost.shortOneBehind, begin, true);
  }
  for (; window.firstShort < end &&
         (end_s - total_s[window.firstShort] >= low_s || !overlap);
       ++window.firstShort) {
    push(window.longOnes, cost.longOne, window.firstShort, false);
    push(window.longest, cost.longest, window.firstShort, false);
    push(window.longBehind, cost.longOneBehind, window.firstShort, true);
  }
  // The cheapest stage without and with the longest one up to it.
  Prefix least[2] = {{never, 0, 0, false}, {never, 0, 0, false}};
  auto take = [&](bool has, double cost, unsigned begin, bool had) {
    if (cost < least[has].cost_s)
      least[has] = {cost, static_cast<uint16_t>(begin),
                    static_cast<uint16_t>(variant), had};
  };
  auto takeLeast = [&](SlidingMinimum &minimum, unsigned from, const Line &line,
                       bool has, bool had) {
    minimum.dropBefore(from);
    if (!minimum.empty())
      take(has, minimum.key() + line.at(end_s), minimum.index(), had);
  };
  if (window.first == 0) {
    double rest_s = hasRest ? tables.restSeconds(variant, end) : 0;
    take(false, costBefore(variant, end_s) + rest_s, 0, false);
    if (end_s >= low_s || !overlap)
      take(true, cost.longest.at(end_s) + rest_s, 0, false);
  }
  unsigned firstShort = std::max(window.first, window.firstShort);
  takeLeast(window.shortOnes, firstShort, cost.shortOne, false, false);
  takeLeast(window.longOnes, window.first, cost.longOne, false, false);
  takeLeast(window.longest, window.first, cost.longest, true, false);
  takeLeast(window.shortBehind, firstShort, cost.shortOneBehind, true, true);
  takeLeast(window.longBehind, window.first, cost.longOneBehind, true, true);
  if (least[false].cost_s == never && least[true].cost_s == never)
    return false;
  for (bool has : {false, true}) {
    beforeBy(end, variant, has) = least[has].cost_s;
    Prefix &place = prefixAt(end, window.group, has);
    if (least[has].cost_s < place.cost_s)
      place = least[has];
  }
  return true;
}

void IntervalProgram::passPrefixOn(const StageTables &tables, unsigned cut) {
  for (unsigned from = 0; from < groups; ++from)
    for (bool had : {false, true}) {
      double cost = prefixAt(cut, from, had).cost_s;
      if (cost + fluid_s[cut] - (had ? 0 : longestPart * high_s) >= best_s)
        continue;
      for (unsigned to = 0; to < groups; ++to) {
        const PassSeconds &transfer = tables.transfer(cut, from, to);
        double longest = tables.transferPeriod(cut, from, to);
        if (overlap && longest > high_s)
          continue;
        auto take = [&](bool has, double seconds) {
          Arrival &place = arrivalAt(cut, to, has);
          if (seconds < place.cost_s)
            place = {seconds, static_cast<uint8_t>(from), had};
        };
        double part = had && drainsEarly ? bothEnds + oneEnd : wayPart;
        take(had, cost + transfer.total() * part);
        // A transfer may be what sets the pace.
        if (had || !overlap || longest < low_s)
          continue;
        take(true, cost + costOfLongest(transfer, longest));
        before(cut, true) = std::min(before(cut, true), cost);
      }
    }
}

/// Whether what was found is a template of the interval.
bool IntervalProgram::readPrefix(StageTables &tables,
                                 std::vector<TemplateStage> &stages) {
  unsigned group = 0;
  for (unsigned other = 1; other < groups; ++other)
    if (prefixAt(units, other, true).cost_s <
        prefixAt(units, group, true).cost_s)
      group = other;
  stages.clear();
  unsigned end = units;
  bool has = true, isLongestMet = overlap, isLegal = true;
  std::optional<unsigned> next;
  for (int64_t depth = 1; end > 0; ++depth) {
    const Prefix &made = prefixAt(end, group, has);
    const StageTables::Variant &variant = tables.variants()[made.variant];
    stages.push_back({made.begin, end, variant.shape, variant.recompute});
    isLegal &=
        tables.furthestEnds(made.variant, inFlightAt(depth))[made.begin] >= end;
    if (!overlap) {
      double time = variant.total_s[end] - variant.total_s[made.begin];
      if (next)
        time += tables.transfer(end, variant.group, *next).total();
      isLegal &= time <= high_s;
      isLongestMet |= time >= low_s;
    }
    next = variant.group;
    end = made.begin;
    if (end > 0) {
      const Arrival &arrival = arrivalAt(end, variant.group, made.had_longest);
      group = arrival.group;
      has = arrival.had_longest;
    }
  }
  std::reverse(stages.begin(), stages.end());
  return isLegal && isLongestMet;
}

} // namespace autohet
