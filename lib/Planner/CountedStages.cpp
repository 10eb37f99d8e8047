//===- CountedStages.cpp - the second program of an interval --------------===//
//
// From the last unit to the first, with the number of stages behind, which
// decides how many microbatches a stage has in flight.
//
//===----------------------------------------------------------------------===//

#include "IntervalProgram.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// The first program looks at a stage of each variant and end for as long as the
// second one at so many.
static constexpr size_t looksPerStage = 20;

double IntervalProgram::countStages(StageTables &tables,
                                    std::vector<TemplateStage> &stages) {
  bestDepth = 0;
  tried = 0;
  const size_t lookedAt = looksPerStage * units * useful.size();
  layers.assign(1, {});
  leastAt_s.assign((units + 1) * groups * 2, never);
  for (unsigned depth = 1; depth <= units; ++depth) {
    // Deeper, memory for more microbatches is needed: look again, for no longer
    // than stages have taken since.
    if (tried > lookedAt) {
      boundPrefixes(tables, inFlightAt(depth));
      tried = 0;
    }
    furthest.resize(variants);
    earliest.resize(variants);
    for (unsigned variant : useful) {
      furthest[variant] = tables.furthestEnds(variant, inFlightAt(depth));
      earliest[variant] = tables.earliestBegins(variant, inFlightAt(depth));
    }
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
        double part = has || !drainsEarly ? wayPart : bothEnds + oneEnd;
        double passing = has && !had ? costOfLongest(transfer, longest)
                                     : transfer.total() * part;
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
  for (unsigned index : useful) {
    const StageTables::Variant &variant = tables.variants()[index];
    const Rest &rest = rests[variant.group];
    const unsigned first = earliest[index][end];
    for (bool had : {false, true}) {
      // With the longest stage behind, the rest has none, and the other way.
      if (rest.cost_s[had] + beforeBy(end, index, !had) >= best_s)
        continue;
      const double rest_s = rest.cost_s[had], best = best_s;
      const double transfer_s = rest.transfer_s[had];
      const double *total_s = variant.total_s.data(), end_s = total_s[end];
      const uint16_t *ends = furthest[index].data();
      auto extendTo = [&](unsigned begin, bool has, double cost) {
        if (cost + before(begin, !has) < best)
          isAny |=
              reach(tables, depth, begin, index, had, has, cost, rest, end);
      };
      unsigned begin = end;
      for (; begin > first; --begin) {
        double time = end_s - total_s[begin - 1];
        if (time > high_s - transfer_s)
          break;
        if (ends[begin - 1] < end)
          continue;
        if (had) {
          extendTo(begin - 1, true, rest_s + costBefore(index, time));
          continue;
        }
        if (time + transfer_s >= low_s)
          extendTo(begin - 1, true, rest_s + costs[index].longest.at(time));
        extendTo(begin - 1, false, rest_s + costBehind(index, time));
      }
      tried += end - begin;
    }
  }
  return isAny;
}

bool IntervalProgram::reach(StageTables &tables, unsigned depth, unsigned begin,
                            unsigned variant, bool had, bool has, double cost,
                            const Rest &rest, unsigned end) {
  if (begin > 0) {
    unsigned group = tables.variants()[variant].group;
    // With fewer stages behind, no stage in front needs more memory.
    double &least = leastAt_s[(begin * groups + group) * 2 + has];
    if (cost >= least)
      return false;
    least = cost;
    stateAt(depth, begin, group, has) = {
        cost, static_cast<uint16_t>(end), static_cast<uint16_t>(variant),
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
    stages.push_back({begin, state.end, variant.shape, variant.keeping});
    begin = state.end;
    if (depth > 1)
      state = stateAt(depth - 1, begin, state.next_group, state.had_longest);
  }
}

} // namespace autohet
