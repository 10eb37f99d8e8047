//===- StageTables.h - times and limits of all stages -----------*- C++ -*-===//
//
// For one microbatch size: the time of any run of units on any shape as the
// difference of two sums, and how far a stage may reach within its memory,
// asked once.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_STAGETABLES_H
#define AUTOHET_LIB_PLANNER_STAGETABLES_H

#include "autohet/Planner/Template.h"

namespace autohet {

class StageTables {
public:
  /// A shape, with what it keeps.
  struct Variant {
    unsigned shape = 0;
    Keeping keeping = Keeping::All;
    unsigned group = 0; ///< of the links: see transfer()
    /// Seconds of units [0, unit).
    std::vector<double> forward_s, total_s;
    /// Of one unit, but for the first one.
    double shortestUnit_s = 0;
    /// No run of units has a larger part of its time in forward, and none more
    /// than the whole model's part and that excess.
    double largestPart = 0, part = 0, excess_s = 0;
  };

  /// Of stages, in seconds.
  struct ExtremeTimes {
    double times_s[4] = {};
    unsigned shortCount = 0, longCount = 0;

    llvm::ArrayRef<double> all() const {
      return llvm::ArrayRef(times_s, shortCount + longCount);
    }
    llvm::ArrayRef<double> longOnes() const {
      return all().drop_front(shortCount);
    }
  };

  StageTables(const TemplateSpace &space, int64_t microbatchSize);

  llvm::ArrayRef<Variant> variants() const { return allVariants; }
  unsigned unitCount() const { return count; }
  unsigned groupCount() const { return groups; }

  /// Units of one kind take equal times on all variants.
  unsigned kindCount() const { return kindSizes.size(); }
  unsigned kindOf(unsigned unit) const { return kinds[unit]; }
  unsigned unitsOfKind(unsigned kind) const { return kindSizes[kind]; }
  /// One unit on each variant.
  llvm::ArrayRef<double> kindSeconds(unsigned kind) const {
    return llvm::ArrayRef(unit_s).slice(kind * allVariants.size(),
                                        allVariants.size());
  }

  /// Passing on at `cut` between stages of two groups, at best.
  const PassSeconds &transfer(unsigned cut, unsigned from, unsigned to) const {
    return transfers[(cut * groups + from) * groups + to];
  }
  /// As PlanCosts::transferPeriod(), at best.
  double transferPeriod(unsigned cut, unsigned from, unsigned to) const {
    return periods[(cut * groups + from) * groups + to];
  }
  /// The same over the slowest links.
  const PassSeconds &slowestTransfer(unsigned cut) const {
    return slowest[cut];
  }
  /// As PlanCosts::exchangeWays(), for the fewest replicas.
  double firstMessage(unsigned variant, unsigned begin, unsigned end) const {
    return space.costs.firstMessage(
        {begin, end, allVariants[variant].shape, microbatchSize});
  }
  ExchangeWays exchangeWays(unsigned variant, unsigned begin,
                            unsigned end) const;
  /// For each first unit, the last `end` of a stage that can have so many
  /// microbatches in flight; the unit itself where there is none. More units
  /// behind never need less memory.
  llvm::ArrayRef<uint16_t> furthestEnds(unsigned variant, int64_t inFlight);
  /// Whether a stage can have so many microbatches in flight.
  bool canHold(unsigned variant, unsigned begin, unsigned end,
               int64_t inFlight) {
    return std::min<int64_t>(inFlight, mostKnown) <=
           mostInFlight(variant, begin, end);
  }
  /// For each end, the first unit that furthestEnds() lets a stage up to there
  /// begin at: the end itself where there is none.
  llvm::ArrayRef<uint16_t> earliestBegins(unsigned variant, int64_t inFlight);
  /// For each end, the first unit from which on all stages up to there can: the
  /// end itself where there is none.
  llvm::ArrayRef<uint16_t> nearestBegins(unsigned variant, int64_t inFlight);
  /// What a step takes beside the pipeline if units [0, end) are the first
  /// stage, at least.
  double restSeconds(unsigned variant, unsigned end);
  /// Of a variant's stages of less than `low_s` the shortest and the longest
  /// one, and of those from there up to `high_s`, where there are such.
  ExtremeTimes extremeTimes(unsigned variant, double low_s, double high_s);
  /// As transferPeriod(), at any cut.
  double longestTransferPeriod() const { return longestTransferPeriod_s; }
  /// No stage of up to so many seconds has a longer forward.
  double longestForward(double stage_s) const;
  /// The shortest and the longest period that make sense.
  double shortestPeriod() const { return shortest_s; }
  double longestPeriod() const { return longest_s; }

private:
  void findKinds();
  void findForwardPart(Variant &variant) const;
  uint16_t mostInFlight(unsigned variant, unsigned begin, unsigned end);
  double askRest(unsigned variant, unsigned end) const;

  const TemplateSpace &space;
  int64_t microbatchSize;
  unsigned count, groups = 1;
  double shortest_s = 0, longest_s = 0, longestTransferPeriod_s = 0;
  std::vector<Variant> allVariants;
  std::vector<unsigned> kinds;     ///< of each unit
  std::vector<unsigned> kindSizes; ///< of each kind
  std::vector<double> unit_s;      ///< of each kind, on each variant
  std::vector<PassSeconds> transfers;
  std::vector<double> periods;      ///< of transfers
  std::vector<PassSeconds> slowest; ///< of each cut
  static constexpr uint16_t notAsked = ~0, mostKnown = notAsked - 1;
  /// Of each variant: of units [begin, end), at most `mostKnown`. Empty: none
  /// was asked yet.
  std::vector<std::vector<uint16_t>> inFlights;
  /// A unit for each unit, by microbatches in flight.
  class Answers {
  public:
    /// Empty: not asked yet.
    std::vector<uint16_t> &of(int64_t inFlight) {
      if (known.size() <= static_cast<size_t>(inFlight))
        known.resize(inFlight + 1);
      return known[inFlight];
    }

  private:
    std::vector<std::vector<uint16_t>> known;
  };
  std::vector<Answers> furthest, nearest, earliest; ///< of each variant
  std::vector<double> rest_s;                       ///< below 0: not asked yet
  /// Of each variant: of all stages, by rising time; empty: not asked yet.
  std::vector<std::vector<double>> times_s;
};

} // namespace autohet

#endif
