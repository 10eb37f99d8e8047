//===- UnitRanges.h - what runs of consecutive units need -------*- C++ -*-===//
//
// Solvers ask for the memory of units [begin, end) thousands of times; tied
// parameters make it no sum of its parts. Tables answer at once.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_UNITRANGES_H
#define AUTOHET_LIB_PLANNER_UNITRANGES_H

#include "autohet/Planner/CostModel.h"

namespace autohet {

class UnitRanges {
public:
  explicit UnitRanges(const CostModel &costs);

  unsigned unitCount() const { return count; }
  /// As CostModel::memory() of these units, at best: whoever holds `owned` of
  /// the state gets contributions for it.
  double memory(unsigned begin, unsigned end, double share,
                int64_t microbatchSize, int64_t inFlight, double owned,
                Keeping keeping = Keeping::All) const;
  /// Of parameters that have a gradient, on a rank of this share.
  double trainedBytes(unsigned begin, unsigned end, double share) const {
    return hasGradients ? at(begin, end).trained.of(share) : 0;
  }
  /// Of those of one unit.
  double largestParameter(unsigned unit) const { return largest[unit]; }
  /// Bytes of a sample that cross from units before `cut` to later ones.
  double crossingBytes(unsigned cut) const { return crossing[cut]; }
  double allParameterBytes() const;

private:
  struct Range {
    DividedBytes parameters, trained, activations, workspace,
        gradient_workspace;
    double received = 0, sent = 0;
  };

  const Range &at(unsigned begin, unsigned end) const {
    return ranges[begin * (count + 1) + end];
  }

  unsigned count;
  double stateFactor;
  bool hasGradients, hasBackward;
  std::vector<Range> ranges;
  std::vector<double> crossing, largest;
};

} // namespace autohet

#endif
