//===- StageTables.cpp - times and limits of all stages -------------------===//

#include "StageTables.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <map>

namespace autohet {

// Beyond this many classes, links are taken as the best of all: tables of all
// pairs would cost more than they tell.
static constexpr size_t maxLinkGroups = 12;

StageTables::StageTables(const TemplateSpace &space, int64_t microbatchSize)
    : space(space), microbatchSize(microbatchSize),
      count(space.costs.units().units.size()) {
  const PlanCosts &costs = space.costs;
  size_t classes = costs.classes().size();
  bool isPerClass = classes <= maxLinkGroups;
  groups = isPerClass ? classes : 1;
  std::vector<double> fastest(count, std::numeric_limits<double>::infinity());
  for (unsigned shape = 0; shape < costs.shapes().size(); ++shape) {
    if (!space.allows(shape))
      continue;
    for (Keeping keeping : {Keeping::All, Keeping::Inputs, Keeping::OnHost}) {
      if (!space.allows(keeping, shape))
        continue;
      Variant &variant = allVariants.emplace_back();
      variant.shape = shape;
      variant.keeping = keeping;
      variant.group = isPerClass ? costs.shapes()[shape].mainClass() : 0;
      variant.forward_s.push_back(0);
      variant.total_s.push_back(0);
      for (unsigned unit = 0; unit < count; ++unit) {
        PassSeconds seconds =
            costs.secondsKeeping(keeping, shape, unit, microbatchSize);
        double total = seconds.total();
        fastest[unit] = std::min(fastest[unit], total);
        variant.forward_s.push_back(variant.forward_s.back() +
                                    seconds.forward_s);
        variant.total_s.push_back(variant.total_s.back() + total);
      }
      longest_s = std::max(longest_s, variant.total_s.back());
      findForwardPart(variant);
    }
  }
  for (double seconds : fastest)
    shortest_s = std::max(shortest_s, seconds);

  findKinds();
  for (unsigned cut = 0; cut <= count; ++cut)
    for (unsigned from = 0; from < groups; ++from)
      for (unsigned to = 0; to < groups; ++to) {
        PassSeconds &best = transfers.emplace_back();
        double &period = periods.emplace_back();
        if (cut == 0 || cut == count)
          continue;
        if (isPerClass) {
          best = costs.transferSeconds(from, to, cut, microbatchSize);
          period = costs.transferPeriod(from, to, cut, microbatchSize);
          continue;
        }
        best.forward_s = best.backward_s = period =
            std::numeric_limits<double>::infinity();
        for (unsigned a = 0; a < classes; ++a)
          for (unsigned b = 0; b < classes; ++b) {
            PassSeconds one = costs.transferSeconds(a, b, cut, microbatchSize);
            best.forward_s = std::min(best.forward_s, one.forward_s);
            best.backward_s = std::min(best.backward_s, one.backward_s);
            period = std::min(period,
                              costs.transferPeriod(a, b, cut, microbatchSize));
          }
      }
  for (unsigned cut = 0; cut <= count; ++cut) {
    PassSeconds &worst = slowest.emplace_back();
    for (unsigned from = 0; from < classes; ++from)
      for (unsigned to = 0; to < classes; ++to)
        for (bool areApart : {false, true}) {
          if (cut == 0 || cut == count)
            continue;
          PassSeconds one =
              costs.transferSeconds(from, to, cut, microbatchSize, areApart);
          worst.forward_s = std::max(worst.forward_s, one.forward_s);
          worst.backward_s = std::max(worst.backward_s, one.backward_s);
        }
  }
  double longestTransfer_s = 0;
  for (const PassSeconds &transfer : transfers)
    longestTransfer_s = std::max(longestTransfer_s, transfer.total());
  longest_s += longestTransfer_s;
  longestTransferPeriod_s = *llvm::max_element(periods);
  inFlights.resize(allVariants.size());
  furthest.resize(allVariants.size());
  nearest.resize(allVariants.size());
  earliest.resize(allVariants.size());
  times_s.resize(allVariants.size());
  rest_s.assign(allVariants.size() * (count + 1), -1);
}

// Layers repeat. Sums differ in their last bits, so what was added to them is
// compared.
void StageTables::findKinds() {
  std::map<std::vector<double>, unsigned> known;
  for (unsigned unit = 0; unit < count; ++unit) {
    std::vector<double> seconds;
    for (const Variant &variant : allVariants) {
      seconds.push_back(space.costs
                            .secondsKeeping(variant.keeping, variant.shape,
                                            unit, microbatchSize)
                            .total());
    }
    auto [place, isNew] = known.try_emplace(seconds, kindSizes.size());
    if (isNew) {
      kindSizes.push_back(0);
      llvm::append_range(unit_s, seconds);
    }
    kinds.push_back(place->second);
    ++kindSizes[place->second];
  }
}

void StageTables::findForwardPart(Variant &variant) const {
  variant.shortestUnit_s = variant.total_s.back();
  variant.part = variant.total_s.back() > 0
                     ? variant.forward_s.back() / variant.total_s.back()
                     : 0;
  for (unsigned unit = 0; unit < count; ++unit) {
    double forward = variant.forward_s[unit + 1] - variant.forward_s[unit];
    double total = variant.total_s[unit + 1] - variant.total_s[unit];
    if (unit > 0)
      variant.shortestUnit_s = std::min(variant.shortestUnit_s, total);
    if (total > 0)
      variant.largestPart = std::max(variant.largestPart, forward / total);
    variant.excess_s += std::max(0.0, forward - variant.part * total);
  }
}

StageTables::ExtremeTimes
StageTables::extremeTimes(unsigned variant, double low_s, double high_s) {
  // Sums of the same units differ in their last bits.
  constexpr double same = 1 + 1e-12;
  std::vector<double> &known = times_s[variant];
  if (known.empty()) {
    const std::vector<double> &total_s = allVariants[variant].total_s;
    for (unsigned begin = 0; begin < count; ++begin) {
      // Layers repeat: so may the stage that begins with the last such unit.
      unsigned last = begin;
      while (last > 0 && kinds[last - 1] != kinds[begin])
        --last;
      bool isRepeated = last > 0;
      unsigned apart = begin - last + 1;
      for (unsigned end = begin + 1; end <= count; ++end) {
        isRepeated = isRepeated && kinds[end - 1] == kinds[end - 1 - apart];
        if (!isRepeated)
          known.push_back(total_s[end] - total_s[begin]);
      }
    }
    llvm::sort(known);
    known.erase(
        llvm::unique(known, [](double a, double b) { return b <= a * same; }),
        known.end());
  }
  auto behind = llvm::upper_bound(known, high_s * same);
  auto firstLong = std::lower_bound(known.begin(), behind, low_s);
  ExtremeTimes found;
  auto add = [&](unsigned &number, auto first, auto last) {
    if (first == last)
      return;
    double *place = found.times_s + found.shortCount;
    place[0] = *first;
    place[1] = last[-1];
    number = 2;
  };
  add(found.shortCount, known.begin(), firstLong);
  add(found.longCount, firstLong, behind);
  return found;
}

double StageTables::longestForward(double stage_s) const {
  double longest = 0;
  for (const Variant &variant : allVariants)
    longest =
        std::max(longest, std::min(variant.largestPart * stage_s,
                                   variant.part * stage_s + variant.excess_s));
  return longest;
}

uint16_t StageTables::mostInFlight(unsigned variant, unsigned begin,
                                   unsigned end) {
  std::vector<uint16_t> &known = inFlights[variant];
  if (known.empty())
    known.assign(count * count, notAsked);
  uint16_t &most = known[begin * count + end - 1];
  if (most == notAsked)
    most = std::min<int64_t>(
        mostKnown,
        space.costs.mostInFlight({begin, end, allVariants[variant].shape,
                                  microbatchSize, allVariants[variant].keeping},
                                 space.ownedAtBest()));
  return most;
}

llvm::ArrayRef<uint16_t> StageTables::furthestEnds(unsigned variant,
                                                   int64_t inFlight) {
  std::vector<uint16_t> &ends = furthest[variant].of(inFlight);
  if (!ends.empty())
    return ends;
  // Each search starts at the last one's answer: neighbours end near.
  unsigned end = 0;
  for (unsigned begin = 0; begin < count; ++begin) {
    end = std::max(end, begin);
    while (end > begin && !canHold(variant, begin, end, inFlight))
      --end;
    while (end < count && canHold(variant, begin, end + 1, inFlight))
      ++end;
    ends.push_back(end);
  }
  return ends;
}

llvm::ArrayRef<uint16_t> StageTables::earliestBegins(unsigned variant,
                                                     int64_t inFlight) {
  std::vector<uint16_t> &begins = earliest[variant].of(inFlight);
  if (!begins.empty())
    return begins;
  llvm::ArrayRef<uint16_t> ends = furthestEnds(variant, inFlight);
  // Ends up to a unit that no stage before it reaches have none.
  begins.push_back(0);
  for (unsigned begin = 0; begin <= count; ++begin) {
    while (begins.size() <= begin)
      begins.push_back(begins.size());
    while (begin < count && begins.size() <= ends[begin])
      begins.push_back(begin);
  }
  return begins;
}

llvm::ArrayRef<uint16_t> StageTables::nearestBegins(unsigned variant,
                                                    int64_t inFlight) {
  std::vector<uint16_t> &begins = nearest[variant].of(inFlight);
  if (!begins.empty())
    return begins;
  llvm::ArrayRef<uint16_t> ends = furthestEnds(variant, inFlight);
  // A unit whose stages end earlier is behind all stages that end later.
  begins.assign(count + 1, 0);
  for (unsigned begin = 0; begin < count; ++begin)
    if (ends[begin] < count)
      begins[ends[begin] + 1] = begin + 1;
  for (unsigned end = 1; end <= count; ++end)
    begins[end] = std::max(begins[end], begins[end - 1]);
  return begins;
}

double StageTables::restSeconds(unsigned variant, unsigned end) {
  double &known = rest_s[variant * (count + 1) + end];
  if (known < 0)
    known = askRest(variant, end);
  return known;
}

ExchangeWays StageTables::exchangeWays(unsigned variant, unsigned begin,
                                       unsigned end) const {
  return space.costs.exchangeWays({begin, end, allVariants[variant].shape,
                                   microbatchSize,
                                   allVariants[variant].keeping},
                                  space.holders());
}

double StageTables::askRest(unsigned index, unsigned end) const {
  const Variant &variant = allVariants[index];
  ExchangeWays ways = exchangeWays(index, 0, end);
  if (!space.costs.syncOverlaps())
    return exposedSeconds(ways, 1, {}, {}).total();
  double forward = variant.forward_s[end];
  PassSeconds seen = exposedSeconds(ways, firstMessage(index, 0, end), {},
                                    {forward, variant.total_s[end] - forward});
  PassSeconds update = space.costs.updateSeconds(
      {0, end, variant.shape, microbatchSize}, space.ownedAtBest());
  return std::max(seen.forward_s, update.forward_s) +
         std::max(seen.backward_s, update.backward_s);
}

} // namespace autohet
