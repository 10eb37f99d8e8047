//===- StageTables.h - times and limits of all stages -----------*- C++ -*-===//
//
// For one microbatch size: the time of any run of units on any shape as the
// difference of two sums, and how many microbatches it can hold, asked once.
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
  };

  StageTables(const TemplateSpace &space, int64_t microbatchSize);

  llvm::ArrayRef<Variant> variants() const { return allVariants; }
  unsigned unitCount() const { return count; }
  unsigned groupCount() const { return groups; }

  /// Passing on at `cut` between stages of two groups, at best.
  const PassSeconds &transfer(unsigned cut, unsigned from, unsigned to) const {
    return transfers[(cut * groups + from) * groups + to];
  }
  /// Of all of a cut's transfers, one way.
  double longestTransfer(unsigned cut) const { return longestAt_s[cut]; }
  /// Microbatches that units [begin, end) may have in flight.
  int64_t mostInFlight(unsigned variant, unsigned begin, unsigned end) const {
    int16_t &known =
        inFlight[(variant * (count + 1) + end) * (count + 1) + begin];
    if (known < 0)
      known = askInFlight(variant, begin, end);
    return known;
  }
  /// What a step takes beside the pipeline if units [0, end) are the first
  /// stage.
  double restSeconds(unsigned variant, unsigned end) const;
  /// The shortest and the longest period that make sense.
  double shortestPeriod() const { return shortest_s; }
  double longestPeriod() const { return longest_s; }

private:
  int16_t askInFlight(unsigned variant, unsigned begin, unsigned end) const;

  const TemplateSpace &space;
  int64_t microbatchSize;
  unsigned count, groups = 1;
  double shortest_s = 0, longest_s = 0;
  std::vector<Variant> allVariants;
  std::vector<PassSeconds> transfers;
  std::vector<double> longestAt_s;       ///< of each cut
  mutable std::vector<int16_t> inFlight; ///< -1: not asked yet
};

} // namespace autohet

#endif
