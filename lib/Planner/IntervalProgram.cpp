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
// Sums differ in their last bits.
static constexpr double same = 1 + 1e-12;

IntervalProgram::IntervalProgram(const TemplateSpace &space,
                                 int64_t globalBatch,
                                 const DevicePrices &prices)
    : space(space), globalBatch(globalBatch), prices(prices) {
  for (const StageShape &shape : space.costs.shapes()) {
    double &price = shapePrices.emplace_back(0);
    for (const StageShape::Part &part : shape.parts)
      price += part.count * prices.of_class[part.machine_class];
  }
}

void IntervalProgram::start(StageTables &tables,
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
  charges.clear();
  charge_s.clear();
  shortest_s.clear();
  for (const StageTables::Variant &variant : tables.variants()) {
    shortest_s.push_back(variant.shortestUnit_s);
    charges.push_back(microbatches * shapePrices[variant.shape]);
    charge_s.push_back(objective.microbatch_s * charges.back());
    cheapestCharge = std::min(cheapestCharge, charges.back());
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
  extremes.resize(variants);
  for (unsigned index = 0; index < variants; ++index)
    extremes[index] = tables.extremeTimes(index, low_s, high_s);
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
  for (unsigned kind = 0; kind < tables.kindCount(); ++kind) {
    double least = never;
    for (auto [size, time] : llvm::zip_equal(sizes, tables.kindSeconds(kind)))
      least = std::min(least, size * time);
    period += least * tables.unitsOfKind(kind);
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

// The k-th stage from the end begins where k stages reach back to at most: each
// the furthest back that any variant allows within the interval and its memory.
// So a stage that ends before that has more stages behind. False where stages
// do not reach back to the first unit.
bool IntervalProgram::findFewestBehind(StageTables &tables) {
  fewestBehind.assign(units + 1, 0);
  unsigned reached = units;
  for (unsigned depth = 1; reached > 0; ++depth) {
    unsigned next = reached;
    for (unsigned index : useful) {
      const StageTables::Variant &variant = tables.variants()[index];
      llvm::ArrayRef<uint16_t> furthest =
          tables.furthestEnds(index, inFlightAt(depth));
      for (unsigned begin = reached; begin-- > 0;) {
        if (variant.total_s[reached] - variant.total_s[begin] > high_s)
          break;
        if (furthest[begin] >= reached)
          next = std::min(next, begin);
      }
    }
    if (next == reached)
      return false;
    std::fill(fewestBehind.begin() + next, fewestBehind.begin() + reached,
              depth);
    reached = next;
  }
  return true;
}

// For windows that only move on, from the last end to the first.
void IntervalProgram::findEarliestBegins(StageTables &tables,
                                         int64_t inFlight) {
  earliestBegins.resize(variants * (units + 1));
  for (unsigned index : useful) {
    const StageTables::Variant &variant = tables.variants()[index];
    uint16_t *earliest = &earliestBegins[index * (units + 1)];
    const double *total_s = variant.total_s.data();
    llvm::ArrayRef<uint16_t> furthest, begins;
    unsigned first = units, least = units;
    for (unsigned end = units; end > 0; --end) {
      unsigned behind = fewestBehind[end];
      if (furthest.empty() || behind != fewestBehind[end + 1]) {
        int64_t needed = std::max(inFlight, inFlightAt(behind + 1));
        furthest = tables.furthestEnds(index, needed);
        begins = tables.earliestBegins(index, needed);
      }
      while (first > 0 && total_s[end] - total_s[first - 1] <= high_s)
        --first;
      // Before what is known already, later stages may begin.
      unsigned last = std::min(end, least);
      unsigned begin =
          std::min<unsigned>(last, std::max<unsigned>(first, begins[end]));
      while (begin < last && furthest[begin] < end)
        ++begin;
      earliest[end] = least = begin;
    }
  }
}

void IntervalProgram::boundFluid(const StageTables &tables) {
  std::vector<double> factors;
  for (unsigned index = 0; index < variants; ++index) {
    double factor = never;
    // Costs are linear between these times.
    for (double time : extremes[index].all()) {
      double cost = leastCost(index, time);
      if (cost <= 0)
        factor = 0;
      else if (time > 0)
        factor = std::min(factor, cost / time);
    }
    factors.push_back(factor < never ? factor : 0);
  }
  kind_s.clear();
  for (unsigned kind = 0; kind < tables.kindCount(); ++kind)
    kind_s.push_back(leastOnAny(tables, kind, factors));
  fluid_s.resize(units + 1);
  fluid_s[units] = 0;
  for (unsigned unit = units; unit-- > 0;)
    fluid_s[unit] = fluid_s[unit + 1] + kind_s[tables.kindOf(unit)];

  // Units cost so much on any variants, of a second on this one at most.
  dearest.assign(variants, -1);
  for (unsigned kind = 0; kind < tables.kindCount(); ++kind)
    for (auto [most, time] : llvm::zip_equal(dearest, tables.kindSeconds(kind)))
      if (time <= high_s * same)
        most = std::max(most, time > 0 ? kind_s[kind] / time : 0);
  // A transfer may set the pace, or messages be a part of stages.
  leastEnd_s = -longestPart * high_s;
  if (!overlap || tables.longestTransferPeriod() >= low_s)
    return;
  leastEnd_s = never;
  for (unsigned index = 0; index < variants; ++index)
    leastEnd_s = std::min(leastEnd_s, moreThanFluid(index, /*isLongest=*/true));
}

/// What the stages of a variant cost more than their units do on any variants.
double IntervalProgram::moreThanFluid(unsigned variant, bool isLongest) const {
  double least = never;
  if (dearest[variant] >= 0)
    for (double time :
         isLongest ? extremes[variant].longOnes() : extremes[variant].all()) {
      double cost = isLongest ? costs[variant].longest.at(time)
                              : leastCost(variant, time);
      least = std::min(least, cost - dearest[variant] * time);
    }
  return least;
}

// The other stages of a template cost no less than their units, so most
// variants are out of the question. False where all are.
bool IntervalProgram::findUseful() {
  useful.clear();
  double room_s = best_s - fluid_s[0];
  // Sums differ in their last bits.
  room_s += (same - 1) * (std::abs(best_s) + std::abs(fluid_s[0]));
  for (unsigned index = 0; index < variants; ++index)
    if (moreThanFluid(index, false) + leastEnd_s < room_s ||
        (overlap && moreThanFluid(index, true) < room_s))
      useful.push_back(index);
  return !useful.empty();
}

/// Of the seconds of a unit on the variants that may have it, each at a price,
/// the least. Sums of units are compared elsewhere, which differ in their last
/// bits.
double IntervalProgram::leastOnAny(const StageTables &tables, unsigned kind,
                                   llvm::ArrayRef<double> factors) const {
  double least = never;
  for (auto [time, factor] : llvm::zip_equal(tables.kindSeconds(kind), factors))
    if (time <= high_s * same)
      least = std::min(least, time * factor);
  return least;
}

// Every microbatch takes a period, which is no less than any stage: so a
// template takes at least what its stages are charged with at their own times.
// Beside that, the first one's way counts, but the period is counted off once,
// which it is a large part of where there are few microbatches. All but the
// first one take at least that part of all which it is of the fewest that there
// may be.
double IntervalProgram::fluidBound(StageTables &tables,
                                   const TemplateSearch::Interval &interval,
                                   double cutoff_s) {
  if (shortestPeriod(tables) > interval.high_s * (1 + 1e-9))
    return never;
  start(tables, interval, {true, interval.low_s});
  double charged_s = replicaCharge * low_s;
  for (unsigned kind = 0; kind < tables.kindCount(); ++kind)
    charged_s += leastOnAny(tables, kind, charges) * tables.unitsOfKind(kind);
  double bound = std::max(charged_s, low_s);
  if (bound >= cutoff_s)
    return bound;
  boundFluid(tables);
  bound = std::max(bound, fluid_s[0] + fixed_s + leastEnd_s);
  if (!overlap || longestPart == 0)
    return bound;
  double fewest = replicaCharge;
  for (unsigned kind = 0; kind < tables.kindCount(); ++kind)
    fewest += leastOnAny(tables, kind, charge_s) * tables.unitsOfKind(kind) /
              high_s / low_s;
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
  if (!findUseful() || !findFewestBehind(tables))
    return never;
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
  before(0, false) = 0;
  beforeBy_s.assign((units + 1) * variants * 2, never);
  findEarliestBegins(tables, inFlight);
  windows.resize(variants);
  windowRoom.resize(std::max<size_t>(windowRoom.size(), 5 * variants * units));
  SlidingMinimum::Entry *room = windowRoom.data();
  for (unsigned variant : useful) {
    const StageTables::Variant &made = tables.variants()[variant];
    Window &window = windows[variant];
    window.total_s = made.total_s.data();
    window.earliest = &earliestBegins[variant * (units + 1)];
    window.ends = limits.isSet() ? limits.ends(variant).data() : nullptr;
    window.endsOfLong =
        limits.isSet() ? limits.endsOfLong(variant).data() : nullptr;
    window.group = made.group;
    window.first = 0;
    window.firstShort = 1;
    for (SlidingMinimum *minimum :
         {&window.shortOnes, &window.longOnes, &window.longest,
          &window.shortBehind, &window.longBehind}) {
      minimum->reset(room);
      room += units;
    }
  }
  for (unsigned end = 1; end <= units; ++end) {
    bool isAny = false;
    for (unsigned variant : useful)
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
  const double end_s = total_s[end], low = low_s, high = high_s;
  const bool areApart = overlap;
  auto isOut = [&](unsigned begin) {
    double time = end_s - total_s[begin];
    return time > high || begin < window.earliest[end] ||
           (window.ends && (window.ends[begin] < end ||
                            (time >= low && window.endsOfLong[begin] < end)));
  };
  unsigned first = window.first;
  while (first < end && isOut(first))
    ++first;
  window.first = first;
  if (first == end)
    return false;
  // A stage of a line costs that much more than the units before it and the
  // line at its end.
  auto push = [&](SlidingMinimum &minimum, const Line &line, unsigned begin,
                  double before_s) {
    if (before_s < never)
      minimum.push(begin, before_s - line.slope * total_s[begin]);
  };
  // The unit before `end` may begin a stage.
  const Arrival *begins = &arrivals[window.group * 2];
  const size_t next = groups * 2;
  if (unsigned begin = end - 1) {
    const Arrival *arrival = begins + begin * next;
    push(window.shortOnes, cost.shortOne, begin, arrival[false].cost_s);
    push(window.shortBehind, cost.shortOneBehind, begin, arrival[true].cost_s);
  }
  unsigned firstShort = window.firstShort;
  for (; firstShort < end && (end_s - total_s[firstShort] >= low || !areApart);
       ++firstShort) {
    const Arrival *arrival = begins + firstShort * next;
    push(window.longOnes, cost.longOne, firstShort, arrival[false].cost_s);
    push(window.longest, cost.longest, firstShort, arrival[false].cost_s);
    push(window.longBehind, cost.longOneBehind, firstShort,
         arrival[true].cost_s);
  }
  window.firstShort = firstShort;
  // The cheapest stage without and with the longest one up to it.
  struct Cheapest {
    double cost_s = never;
    unsigned begin = 0;
    bool had_longest = false;
  } without, with;
  auto take = [&](Cheapest &least, double cost_s, unsigned begin, bool had) {
    if (cost_s < least.cost_s)
      least = {cost_s, begin, had};
  };
  if (first == 0) {
    double rest_s = hasRest ? tables.restSeconds(variant, end) : 0;
    take(without, costBefore(variant, end_s) + rest_s, 0, false);
    if (end_s >= low || !areApart)
      take(with, cost.longest.at(end_s) + rest_s, 0, false);
  }
  auto takeLeast = [&](Cheapest &least, SlidingMinimum &minimum, unsigned from,
                       const Line &line, bool had) {
    if (const SlidingMinimum::Entry *entry = minimum.least(from))
      take(least, entry->key + line.at(end_s), entry->index, had);
  };
  firstShort = std::max(first, firstShort);
  takeLeast(without, window.shortOnes, firstShort, cost.shortOne, false);
  takeLeast(without, window.longOnes, first, cost.longOne, false);
  takeLeast(with, window.longest, first, cost.longest, false);
  takeLeast(with, window.shortBehind, firstShort, cost.shortOneBehind, true);
  takeLeast(with, window.longBehind, first, cost.longOneBehind, true);
  if (without.cost_s == never && with.cost_s == never)
    return false;
  Prefix *places = &prefixAt(end, window.group, false);
  double *beforeBy_s = &beforeBy(end, variant, false);
  auto keep = [&](bool has, const Cheapest &least) {
    beforeBy_s[has] = least.cost_s;
    if (least.cost_s < places[has].cost_s)
      places[has] = {least.cost_s, static_cast<uint16_t>(least.begin),
                     static_cast<uint16_t>(variant), least.had_longest};
  };
  keep(false, without);
  keep(true, with);
  return true;
}

void IntervalProgram::passPrefixOn(const StageTables &tables, unsigned cut) {
  for (unsigned from = 0; from < groups; ++from)
    for (bool had : {false, true}) {
      double cost = prefixAt(cut, from, had).cost_s;
      if (cost + fluid_s[cut] + (had ? 0 : leastEnd_s) >= best_s)
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
    stages.push_back({made.begin, end, variant.shape, variant.keeping});
    isLegal &= tables.canHold(made.variant, made.begin, end, inFlightAt(depth));
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
