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
  /// Of some units: all that does not depend on how many microbatches are in
  /// flight, since that is asked for several numbers of them.
  struct Memory {
    Keeping keeping = Keeping::All;
    double samples = 0;                ///< of a microbatch
    double held = 0;                   ///< parameters, gradients and state
    double activations = 0, slots = 0; ///< of a microbatch
    double received = 0;               ///< of a sample
    double contributions = 0;          ///< of others' gradients
    double workspace = 0;

    double bytes(int64_t inFlight) const;
  };
  /// As CostModel::memory() of these units, at best: whoever holds `owned` of
  /// the state gets contributions for it.
  Memory memory(unsigned begin, unsigned end, double share,
                int64_t microbatchSize, double owned,
                Keeping keeping = Keeping::All) const;
  /// Of parameters that have a gradient, on a rank of this share.
  double trainedBytes(unsigned begin, unsigned end, double share) const {
    return hasGradients ? at(begin, end).trained.of(share) : 0;
  }
  /// Those of them that all holders own equal parts of, if they own equal parts
  /// of anything. What every rank of a stage has is one owner's of more.
  double evenBytes(unsigned begin, unsigned end, double share) const {
    if (!hasGradients)
      return 0;
    const DividedBytes &bytes = at(begin, end).owned;
    return bytes.of(share) - bytes.whole;
  }
  /// Those that a rank owns at least which owns this part of what is divided:
  /// what its stage's `ranks` all have, they and all those of other holders may
  /// share.
  double ownedBytes(unsigned begin, unsigned end, double share, double owned,
                    double ranks) const {
    if (!hasGradients || owned == 0)
      return 0;
    double parties = ranks + (1 / owned - 1) * mostRanks;
    return owned * evenBytes(begin, end, share) +
           at(begin, end).owned.whole / parties;
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
    /// Trained ones, whole where some stage's ranks may all have them whole.
    DividedBytes owned;
    double received = 0, sent = 0;
  };

  const Range &at(unsigned begin, unsigned end) const {
    return ranges[begin * (count + 1) + end];
  }

  unsigned count;
  double mostRanks; ///< of a stage
  double stateFactor;
  bool hasGradients, hasBackward;
  std::vector<Range> ranges;
  std::vector<double> crossing, largest;
};

} // namespace autohet

#endif
