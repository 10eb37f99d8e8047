//===- IntervalProgram.cpp - the cheapest template of one interval --------===//

#include "IntervalProgram.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();

void IntervalProgram::start(const StageTables &tables,
                            const TemplateSearch::Interval &interval) {
  low_s = interval.low_s;
  high_s = interval.high_s;
  overlap = space.costs.transfersOverlap() && !space.are_transfers_exposed;
  drainsEarly = overlap && space.costs.hasBackward();
  bool areBatchesFollowed =
      space.costs.planObjective() == PlanObjective::Throughput;
  wayPart = areBatchesFollowed ? 0 : 1;
  units = tables.unitCount();
  groups = tables.groupCount();
  variants = tables.variants().size();
  double microbatches = static_cast<double>(globalBatch) /
                        static_cast<double>(interval.microbatch_size);
  replicaCharge = microbatches * prices.of_replica;
  fixed_s = low_s * (replicaCharge - wayPart);
  cheapestCharge = never;
  charge_s.clear();
  for (const StageTables::Variant &variant : tables.variants()) {
    double price = 0, seconds = 0;
    for (const StageShape::Part &part :
         space.costs.shapes()[variant.shape].parts) {
      price += part.count * prices.of_class[part.machine_class];
      if (!prices.seconds_of_class.empty())
        seconds += part.count * prices.seconds_of_class[part.machine_class];
    }
    charge_s.push_back(low_s * microbatches * price + seconds);
    cheapestCharge = std::min(cheapestCharge, microbatches * price);
  }
  // Behind the longest stage, only what a stage's time exceeds what that one
  // does meanwhile counts; at least nothing in sum, so any part of it is a
  // bound too. This part keeps stages of little time from lowering the bound.
  behind = std::min(1.0, cheapestCharge * low_s / high_s);
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
  for (double charge : charge_s) {
    double factor = wayPart + charge / high_s;
    if (drainsEarly)
      factor = std::min(factor, behind + charge / high_s);
    factors.push_back(factor);
  }
  fluid_s.assign(units + 1, 0);
  for (unsigned unit = units; unit-- > 0;) {
    llvm::ArrayRef<double> times = tables.unitSeconds(unit);
    double least = never;
    for (unsigned variant = 0; variant < variants; ++variant)
      least = std::min(least, times[variant] * factors[variant]);
    fluid_s[unit] = fluid_s[unit + 1] + least;
  }
}

double IntervalProgram::fluidBound(const StageTables &tables,
                                   const TemplateSearch::Interval &interval) {
  start(tables, interval);
  boundFluid(tables);
  return fluid_s[0] + fixed_s;
}

double IntervalProgram::run(StageTables &tables,
                            const TemplateSearch::Interval &interval,
                            double cutoff_s, bool mayCount,
                            std::vector<TemplateStage> &stages) {
  start(tables, interval);
  boundFluid(tables);
  best_s = cutoff_s - fixed_s;
  boundPrefixes(tables, inFlightAt(1));
  double bound = before(units, true) + fixed_s;
  if (before(units, true) >= best_s)
    return never;
  if (readPrefix(tables, stages))
    return bound;
  stages.clear();
  return mayCount ? countStages(tables, stages) + fixed_s : bound;
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
    window.group = made.group;
    window.charge_s = charge_s[variant];
    window.first = 0;
    window.longest = 1;
    for (SlidingMinimum *minimum :
         {&window.plain, &window.longestOnly, &window.behindLongest})
      minimum->reset(units);
  }
  for (unsigned end = 1; end <= units; ++end) {
    for (unsigned variant = 0; variant < variants; ++variant)
      extendPrefix(tables, end, variant);
    if (end < units)
      passPrefixOn(tables, end);
  }
}

// Stages of one variant that end at `end`. Where memory allows a first unit but
// not a later one, the later one is not left out: a bound all the same.
void IntervalProgram::extendPrefix(StageTables &tables, unsigned end,
                                   unsigned variant) {
  Window &window = windows[variant];
  const double *total_s = window.total_s;
  const double end_s = total_s[end];
  // The unit before `end` may begin a stage.
  if (unsigned begin = end - 1) {
    double plain = arrivalAt(begin, window.group, false).cost_s;
    if (plain < never)
      window.plain.push(begin, plain - wayPart * total_s[begin]);
    double behindLongest = arrivalAt(begin, window.group, true).cost_s;
    if (behindLongest < never)
      window.behindLongest.push(begin, behindLongest - costBehind(0) +
                                           costBehind(-total_s[begin]));
  }
  if (window.first > 0 && window.plain.empty() && window.behindLongest.empty())
    return;
  while (window.first < end && (end_s - total_s[window.first] > high_s ||
                                window.furthest[window.first] < end))
    ++window.first;
  // Stages that may be the longest: their first units are a part of the window.
  for (; window.longest < end &&
         (end_s - total_s[window.longest] >= low_s || !overlap);
       ++window.longest) {
    double plain = arrivalAt(window.longest, window.group, false).cost_s;
    if (plain < never)
      window.longestOnly.push(window.longest,
                              plain - wayPart * total_s[window.longest]);
  }
  window.plain.dropBefore(window.first);
  window.longestOnly.dropBefore(window.first);
  window.behindLongest.dropBefore(window.first);

  auto take = [&](bool has, double cost, unsigned begin, bool had) {
    beforeBy(end, variant, has) = std::min(beforeBy(end, variant, has), cost);
    before(end, has) = std::min(before(end, has), cost);
    Prefix &place = prefixAt(end, window.group, has);
    if (cost < place.cost_s)
      place = {cost, static_cast<uint16_t>(begin),
               static_cast<uint16_t>(variant), had};
  };
  double stage_s = wayPart * end_s + window.charge_s;
  if (window.first == 0) {
    double cost = stage_s + tables.restSeconds(variant, end);
    take(false, cost, 0, false);
    if (end_s >= low_s || !overlap)
      take(true, cost, 0, false);
  }
  if (!window.plain.empty())
    take(false, window.plain.key() + stage_s, window.plain.index(), false);
  if (!window.longestOnly.empty())
    take(true, window.longestOnly.key() + stage_s, window.longestOnly.index(),
         false);
  if (!window.behindLongest.empty())
    take(true, window.behindLongest.key() + costBehind(end_s) + window.charge_s,
         window.behindLongest.index(), true);
}

void IntervalProgram::passPrefixOn(const StageTables &tables, unsigned cut) {
  for (unsigned from = 0; from < groups; ++from)
    for (bool had : {false, true}) {
      double cost = prefixAt(cut, from, had).cost_s;
      if (cost + fluid_s[cut] >= best_s)
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
        double part = had && drainsEarly ? behind : wayPart;
        take(had, cost + transfer.total() * part);
        // A transfer may be what sets the pace.
        if (had || !overlap || longest < low_s)
          continue;
        take(true, cost + wayPart * transfer.total());
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

//===-- With it -----------------------------------------------------------===//

double IntervalProgram::countStages(StageTables &tables,
                                    std::vector<TemplateStage> &stages) {
  bestDepth = 0;
  layers.assign(1, {});
  for (unsigned depth = 1; depth <= units; ++depth) {
    // Deeper, memory for more microbatches is needed: look again.
    if (llvm::isPowerOf2_32(depth) && depth > 1)
      boundPrefixes(tables, inFlightAt(depth));
    furthest.clear();
    for (unsigned variant = 0; variant < variants; ++variant)
      furthest.push_back(tables.furthestEnds(variant, inFlightAt(depth)));
    layers.emplace_back((units + 1) * groups * 2, State{never, 0, 0, 0, false});
    bool isAny = false;
    for (unsigned end = 1; end <= units; ++end)
      if (depth == 1 ? end == units : isReached(depth - 1, end))
        isAny |= extend(tables, depth, end);
    if (!isAny)
      break;
  }
  if (!bestDepth)
    return never;
  readStages(tables, stages);
  return best_s;
}

bool IntervalProgram::isReached(unsigned depth, unsigned unit) {
  for (unsigned group = 0; group < groups; ++group)
    if (stateAt(depth, unit, group, false).cost_s < never ||
        stateAt(depth, unit, group, true).cost_s < never)
      return true;
  return false;
}

IntervalProgram::Rest IntervalProgram::restOf(const StageTables &tables,
                                              unsigned depth, unsigned end,
                                              unsigned group) {
  Rest rest = {{never, never}, {0, 0}, {false, true}, {0, 0}};
  if (depth == 1) {
    rest.cost_s[false] = 0;
    return rest;
  }
  for (unsigned next = 0; next < groups; ++next) {
    const PassSeconds &transfer = tables.transfer(end, group, next);
    double longest = tables.transferPeriod(end, group, next);
    if (overlap && longest > high_s)
      continue;
    for (bool had : {false, true})
      for (bool has : {had, had || (overlap && longest >= low_s)}) {
        // Up to the longest stage or transfer, passing on counts in full.
        double part = has || !drainsEarly ? wayPart : behind;
        double passing = transfer.total() * part;
        double cost = stateAt(depth - 1, end, next, had).cost_s + passing;
        if (cost >= rest.cost_s[has])
          continue;
        rest.cost_s[has] = cost;
        rest.group[has] = next;
        rest.had_longest[has] = had;
        rest.transfer_s[has] = overlap ? 0 : transfer.total();
      }
  }
  return rest;
}

bool IntervalProgram::extend(StageTables &tables, unsigned depth,
                             unsigned end) {
  bool isAny = false;
  rests.clear();
  for (unsigned group = 0; group < groups; ++group)
    rests.push_back(restOf(tables, depth, end, group));
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
        if (time > room)
          break;
        if (furthest[index][begin] < end)
          continue;
        if (had || time + rest.transfer_s[had] >= low_s)
          isAny |= reach(tables, depth, begin, index, had, true,
                         cost + wayPart * time, rest, end);
        if (!had)
          isAny |= reach(tables, depth, begin, index, had, false,
                         cost + costBehind(time), rest, end);
      }
    }
  }
  return isAny;
}

bool IntervalProgram::reach(StageTables &tables, unsigned depth, unsigned begin,
                            unsigned variant, bool had, bool has, double cost,
                            const Rest &rest, unsigned end) {
  if (begin > 0) {
    if (cost + before(begin, !has) >= best_s)
      return false;
    State &place = stateAt(depth, begin, tables.variants()[variant].group, has);
    if (cost < place.cost_s)
      place = {cost, static_cast<uint16_t>(end), static_cast<uint16_t>(variant),
               rest.group[had], rest.had_longest[had]};
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

void IntervalProgram::readStages(const StageTables &tables,
                                 std::vector<TemplateStage> &stages) {
  stages.clear();
  State state = first;
  unsigned begin = 0;
  for (unsigned depth = bestDepth; depth > 0; --depth) {
    const StageTables::Variant &variant = tables.variants()[state.variant];
    stages.push_back({begin, state.end, variant.shape, variant.recompute});
    begin = state.end;
    if (depth > 1)
      state = stateAt(depth - 1, begin, state.next_group, state.had_longest);
  }
}

} // namespace autohet
