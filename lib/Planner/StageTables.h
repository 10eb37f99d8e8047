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
  /// A shape, with or without recomputation.
  struct Variant {
    unsigned shape = 0;
    bool recompute = false;
    unsigned group = 0; ///< of the links: see transfer()
    /// Seconds of units [0, unit).
    std::vector<double> forward_s, total_s;
    /// Of one unit, but for the first one.
    double shortestUnit_s = 0;
    /// No run of units has a larger part of its time in forward, and none more
    /// than the whole model's part and that excess.
    double largestPart = 0, part = 0, excess_s = 0;
  };

  StageTables(const TemplateSpace &space, int64_t microbatchSize);

  llvm::ArrayRef<Variant> variants() const { return allVariants; }
  unsigned unitCount() const { return count; }
  unsigned groupCount() const { return groups; }

  /// One unit on each variant.
  llvm::ArrayRef<double> unitSeconds(unsigned unit) const {
    return llvm::ArrayRef(unit_s).slice(unit * allVariants.size(),
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
  ExchangeWays exchangeWays(unsigned variant, unsigned begin,
                            unsigned end) const;
  /// For each first unit, the last `end` of a stage that can have so many
  /// microbatches in flight; the unit itself where there is none. More units
  /// behind never need less memory.
  llvm::ArrayRef<uint16_t> furthestEnds(unsigned variant, int64_t inFlight);
  /// What a step takes beside the pipeline if units [0, end) are the first
  /// stage, at least.
  double restSeconds(unsigned variant, unsigned end);
  /// No stage of up to so many seconds has a longer forward.
  double longestForward(double stage_s) const;
  /// The shortest and the longest period that make sense.
  double shortestPeriod() const { return shortest_s; }
  double longestPeriod() const { return longest_s; }

private:
  void findForwardPart(Variant &variant) const;
  int64_t mostInFlight(unsigned variant, unsigned begin, unsigned end) const;
  double askRest(unsigned variant, unsigned end) const;

  const TemplateSpace &space;
  int64_t microbatchSize;
  unsigned count, groups = 1;
  double shortest_s = 0, longest_s = 0;
  std::vector<Variant> allVariants;
  std::vector<double> unit_s;
  std::vector<PassSeconds> transfers;
  std::vector<double> periods;      ///< of transfers
  std::vector<PassSeconds> slowest; ///< of each cut
  /// Of each variant, by microbatches in flight; empty: not asked yet.
  std::vector<std::vector<std::vector<uint16_t>>> furthest;
  std::vector<double> rest_s; ///< below 0: not asked yet
};

} // namespace autohet

#endif
