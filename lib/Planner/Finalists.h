//===- Finalists.h - from groupings to the one plan -------------*- C++ -*-===//
//
// Groupings are estimates. Here they become plans with whole microbatches, are
// judged by the evaluator, and the best is improved in small steps.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_FINALISTS_H
#define AUTOHET_LIB_PLANNER_FINALISTS_H

#include "GroupingSearch.h"

namespace autohet {

/// Judges a plan under each schedule that is allowed; `seen` is told of each
/// that fits into memory, and `best` becomes it where it is better. Whether it
/// was.
bool keepIfBetter(
    const ResolvedPlan &plan, const CostModel &costs,
    const PlannerOptions &options, std::optional<PlannedStep> &best,
    llvm::function_ref<void(const PlanEvaluation &)> seen =
        [](const PlanEvaluation &) {});

/// Fills in `plan` from `resolved`.
void writePlan(PlannedStep &step, const CostModel &costs,
               const PlannerOptions &options);

class Finalists {
public:
  Finalists(const CostModel &costs, const PlannerOptions &options,
            ReplicaSearch &replicas, const DeviceClasses &classes,
            llvm::ArrayRef<int64_t> sizes)
      : costs(costs), options(options), replicas(replicas), classes(classes),
        sizes(sizes) {}

  /// Judges a grouping; keeps the plan if it is the best so far.
  void consider(const Grouping &grouping);
  /// Judges a whole plan.
  bool consider(ResolvedPlan plan);
  /// Other microbatch sizes, cuts and counts of the best plan, one change at a
  /// time, while that helps.
  void improve();

  std::optional<PlannedStep> best;
  /// The best that left no device idle: what idling is worth.
  std::optional<double> best_using_all_s;

private:
  std::optional<ResolvedPlan> build(const Grouping &grouping,
                                    llvm::ArrayRef<int64_t> microbatchSizes);
  bool moveCuts();
  bool moveMicrobatches();
  bool changeSizes();

  const CostModel &costs;
  const PlannerOptions &options;
  ReplicaSearch &replicas;
  const DeviceClasses &classes;
  llvm::ArrayRef<int64_t> sizes;
  std::optional<Grouping> bestGrouping;
  std::vector<int64_t> bestSizes;
};

} // namespace autohet

#endif
