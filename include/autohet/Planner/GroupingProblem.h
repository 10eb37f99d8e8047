//===- GroupingProblem.h - which devices make a replica ---------*- C++ -*-===//
//
// AutoHet's first stage. Devices (or tensor-parallel rows of them) are put into
// groups, one stage a device. A group of P devices that runs K microbatches has
// the effective computing power
//
//   E = (sum of its devices' power) · K / (K + P - 1),
//
// what 1F1B's bubble leaves of it. Where all groups take equally many
// microbatches the slowest one counts: D · min E. Where counts are free it is
// the sum of all E. Devices of one kind are interchangeable, so a group is a
// count of each kind.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_GROUPINGPROBLEM_H
#define AUTOHET_PLANNER_GROUPINGPROBLEM_H

#include "autohet/Planner/MachineClasses.h"
#include "autohet/Support/Deadline.h"

namespace autohet {

/// Counts of each kind, group by group.
using Grouping = std::vector<ClassCounts>;

struct GroupingProblem {
  struct Kind {
    unsigned count = 0;
    double power = 0;  ///< any unit: FLOP/s, layers/s
    double memory = 0; ///< bytes of each device
  };
  enum class Objective { SlowestGroup, SumOfGroups };

  std::vector<Kind> kinds;
  /// Of the whole batch, to be shared by `groups`: they must divide it where
  /// the slowest group counts.
  int64_t microbatches = 1;
  unsigned groups = 1;
  /// Each group needs together.
  double least_memory = 0;
  /// Devices of a group: a model of L layers has no more stages.
  unsigned max_depth = std::numeric_limits<unsigned>::max();
  Objective objective = Objective::SlowestGroup;
  /// When to stop: an exact solver has nothing then, the other one its best.
  Deadline deadline;

  std::string check() const;
  /// Every device in at most one group, all groups large enough.
  std::string verify(const Grouping &grouping) const;
  double powerOf(llvm::ArrayRef<unsigned> group) const;
  double memoryOf(llvm::ArrayRef<unsigned> group) const;
  bool mayBeGroup(llvm::ArrayRef<unsigned> group) const;
  /// E.
  double effectivePower(llvm::ArrayRef<unsigned> group) const;
  double value(const Grouping &grouping) const;
  /// No grouping's value is higher.
  double bound() const;
  /// Different counts that a group may be made of, none included.
  size_t stateCount() const;
};

/// Exact. Nothing where there are no such groups.
std::optional<Grouping> solveGrouping(const GroupingProblem &problem);
/// For many devices: each to the group that it helps most, then moves and
/// exchanges while these help.
std::optional<Grouping> improveGrouping(const GroupingProblem &problem);
std::optional<Grouping>
solveGroupingByBruteForce(const GroupingProblem &problem);

/// Exact where that is quick, else improveGrouping().
std::optional<Grouping> findGrouping(const GroupingProblem &problem);

} // namespace autohet

#endif
