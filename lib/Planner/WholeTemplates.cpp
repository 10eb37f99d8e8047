//===- WholeTemplates.cpp - the third program of an interval --------------===//
//
// A template takes as many whole microbatches as are no fewer than its charge.
// Prices of a microbatch (WholeMicrobatches.cpp) see that only as far as
// mixtures of templates do not hide it: few microbatches of one and a short way
// of another. Here both are kept apart: for each unit, all ways to run the
// units behind it of which no other has both a smaller charge and less time.
// What the first program says of the units in front leaves few of them.
//
//===----------------------------------------------------------------------===//

#include "IntervalProgram.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// Ways to run units, of all units together: more take too long.
static constexpr size_t mostLabels = 20000;
// Sums differ in their last bits.
static constexpr double same = 1e-12;

double IntervalProgram::exactBound(StageTables &tables,
                                   const TemplateSearch::Interval &interval,
                                   double cutoff_s,
                                   std::vector<TemplateStage> &stages) {
  stages.clear();
  start(tables, interval, {true, interval.low_s, true, true});
  if (!overlap || longestPart == 0)
    return 0;
  boundFluid(tables);
  best_s = cutoff_s - fixed_s;
  if (!findUseful() || !findFewestBehind(tables))
    return never;
  boundPrefixes(tables, inFlightAt(1));
  if (before(units, true) >= best_s)
    return never;
  labels.clear();
  labelsAt.assign((units + 1) * groups * 2, {});
  leastWhole_s = cutoff_s;
  firstLabel = noLabel;
  Label none;
  for (unsigned end = units; end > 0; --end)
    for (unsigned group = 0; group < groups; ++group) {
      if (end == units) {
        if (!addStages(tables, end, group, none, noLabel))
          return 0;
        continue;
      }
      for (unsigned next = 0; next < groups; ++next)
        for (bool had : {false, true})
          // Copies: labels of units in front are added meanwhile.
          for (const KeptLabel &kept : std::vector(labelsOf(end, next, had)))
            if (!passOn(tables, end, group, next, kept.index))
              return 0;
    }
  for (unsigned index = firstLabel; index != noLabel;) {
    const Label &label = labels[index];
    const StageTables::Variant &variant = tables.variants()[label.variant];
    unsigned end = label.behind == noLabel ? units : labels[label.behind].begin;
    stages.push_back({label.begin, end, variant.shape, variant.keeping});
    index = label.behind;
  }
  return firstLabel == noLabel ? never : leastWhole_s;
}

// As in restOf(): a transfer may be what sets the pace.
bool IntervalProgram::passOn(StageTables &tables, unsigned cut, unsigned from,
                             unsigned to, unsigned index) {
  const PassSeconds &transfer = tables.transfer(cut, from, to);
  double longest = tables.transferPeriod(cut, from, to);
  if (longest > high_s)
    return true;
  Label rest = labels[index];
  bool had = rest.has_longest;
  rest.behind_s += transfer.total();
  rest.cost_s = had ? rest.cost_s + transfer.total() : costOfBehind(rest);
  if (!addStages(tables, cut, from, rest, index))
    return false;
  if (had || longest < low_s)
    return true;
  rest = labels[index];
  rest.cost_s =
      low_s * rest.charge + rest.behind_s + costOfLongest(transfer, longest);
  rest.has_longest = true;
  return addStages(tables, cut, from, rest, index);
}

/// All stages of a group in front of what is behind a cut; false where there
/// are too many ways.
bool IntervalProgram::addStages(StageTables &tables, unsigned end,
                                unsigned group, const Label &rest,
                                unsigned behind) {
  Label made = rest;
  made.behind = behind;
  made.depth = rest.depth + 1;
  bool had = rest.has_longest;
  for (unsigned index : useful) {
    const StageTables::Variant &variant = tables.variants()[index];
    if (variant.group != group ||
        rest.cost_s + beforeBy(end, index, !had) >= best_s)
      continue;
    made.variant = index;
    made.charge = rest.charge + charges[index];
    llvm::ArrayRef<uint16_t> furthestEnds =
        tables.furthestEnds(index, inFlightAt(made.depth));
    for (unsigned begin = end; begin-- > 0;) {
      double time = variant.total_s[end] - variant.total_s[begin];
      if (time > high_s)
        break;
      bool isLong = time >= low_s;
      if (furthestEnds[begin] < end || isExcluded(index, begin, end, isLong))
        continue;
      made.begin = begin;
      auto add = [&](bool has, double cost_s) {
        made.has_longest = has;
        made.cost_s = cost_s;
        return addLabel(tables, made, end);
      };
      if (had) {
        if (!add(true, rest.cost_s + costBefore(index, time)))
          return false;
        continue;
      }
      if (isLong && !add(true, costOfEnd(rest, variant, begin, end) +
                                   costs[index].longest.at(time)))
        return false;
      made.behind_s = rest.behind_s + time;
      made.stages_s = rest.stages_s + time;
      if (!add(false, costOfBehind(made)))
        return false;
    }
  }
  return true;
}

// As chooseEnds() mixes the three chains of events, for the first program has
// done so with the units in front. Of what ways are compared by, and nothing
// else: a way that another one beats must not be left where that one is not.
double IntervalProgram::costOfBehind(const Label &rest) const {
  double charge_s = low_s * rest.charge;
  if (!drainsEarly)
    return charge_s + rest.behind_s;
  double depth = rest.depth;
  return charge_s +
         bothEnds * (rest.behind_s + rest.stages_s - depth * high_s) +
         oneEnd * (rest.behind_s - depth * forward_s);
}

// With the longest stage in front, that chain which takes longest.
double IntervalProgram::costOfEnd(const Label &rest,
                                  const StageTables::Variant &longest,
                                  unsigned begin, unsigned end) const {
  double seen_s = rest.behind_s;
  if (drainsEarly) {
    double forward = longest.forward_s[end] - longest.forward_s[begin];
    seen_s -= std::min({rest.depth * high_s - rest.stages_s,
                        rest.depth * forward, rest.behind_s});
  }
  return low_s * rest.charge + seen_s;
}

bool IntervalProgram::addLabel(StageTables &tables, Label made, unsigned end) {
  if (made.begin == 0) {
    if (!made.has_longest)
      return true;
    made.cost_s += tables.restSeconds(made.variant, end);
    double charge = replicaCharge + made.charge;
    double whole_s =
        made.cost_s + fixed_s + low_s * (wholeMicrobatches(charge) - charge);
    if (whole_s >= leastWhole_s)
      return true;
    leastWhole_s = whole_s;
    best_s = whole_s - fixed_s;
    firstLabel = labels.size();
    labels.push_back(made);
    return true;
  }
  if (made.cost_s + before(made.begin, !made.has_longest) >= best_s)
    return true;
  std::vector<KeptLabel> &there = labelsOf(
      made.begin, tables.variants()[made.variant].group, made.has_longest);
  KeptLabel own = {made.charge,   made.cost_s - low_s * made.charge,
                   made.behind_s, made.stages_s,
                   made.depth,    static_cast<unsigned>(labels.size())};
  bool hasLongest = made.has_longest;
  auto isNoBetter = [&](const KeptLabel &one, const KeptLabel &other) {
    if (one.charge < other.charge * (1 - same))
      return false;
    if (hasLongest)
      return one.time_s >= other.time_s - same * low_s &&
             one.depth >= other.depth;
    // More stages drain earlier, and need more memory in front.
    return one.depth == other.depth && one.behind_s >= other.behind_s &&
           one.stages_s >= other.stages_s;
  };
  for (const KeptLabel &kept : there)
    if (isNoBetter(own, kept))
      return true;
  llvm::erase_if(there,
                 [&](const KeptLabel &kept) { return isNoBetter(kept, own); });
  if (labels.size() == mostLabels)
    return false;
  there.push_back(own);
  labels.push_back(made);
  return true;
}

} // namespace autohet
