//===- Finalists.h - from groupings to the one plan -------------*- C++ -*-===//
//
// Groupings are estimates. Here they become plans with whole microbatches, are
// judged by the evaluator, and the best is improved in small steps.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_FINALISTS_H
#define AUTOHET_LIB_PLANNER_FINALISTS_H

#include "GroupingSearch.h"
#include "Judge.h"

namespace autohet {

class Finalists {
public:
  Finalists(Judge &judge, ReplicaSearch &replicas, const DeviceClasses &classes,
            llvm::ArrayRef<int64_t> sizes)
      : judge(judge), replicas(replicas), classes(classes), sizes(sizes) {}

  /// Judges a grouping; keeps the plan if it is the best so far.
  void consider(const Grouping &grouping);
  /// Other microbatch sizes, cuts and counts of the best plan, one change at a
  /// time, while that helps.
  void improve();

private:
  std::optional<ResolvedPlan> build(const Grouping &grouping,
                                    llvm::ArrayRef<int64_t> microbatchSizes);
  bool moveCuts();
  bool moveMicrobatches();
  bool changeSizes();

  Judge &judge;
  ReplicaSearch &replicas;
  const DeviceClasses &classes;
  llvm::ArrayRef<int64_t> sizes;
  std::optional<Grouping> bestGrouping;
  std::vector<int64_t> bestSizes;
};

} // namespace autohet

#endif
