//===- MixImprovement.h - small changes to a whole plan ---------*- C++ -*-===//
//
// Whichever search a plan is from, its neighbours may be better: a unit across
// a cut, another shape of a stage, another microbatch size, a device that goes
// from one replica to another, replicas merged or split. All are changes of a
// mix of templates, so that equal replicas change together or one at a time,
// and what a change is worth is estimated before it is placed and judged.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_MIXIMPROVEMENT_H
#define AUTOHET_LIB_PLANNER_MIXIMPROVEMENT_H

#include "MixSearch.h"

namespace autohet {

/// Goes from a plan to better neighbours until none is better; all go to the
/// judge. What was looked at from one plan is not looked at again from another,
/// and all have one budget of plans to judge: few in large clusters, where
/// judging takes long.
class MixImprovement {
public:
  MixImprovement(MixSearch &mixes, Judge &judge);

  /// Plans with stages that `PlanCosts` has no shape for are left as they are.
  void run(const ResolvedPlan &start);

private:
  bool improveOnce(TemplateMix &mix, double &seconds);
  double judged(const TemplateMix &mix);
  bool measure(TemplateMix &mix) const;
  bool isOver() const { return budget == 0 || judge.isLate(); }

  MixSearch &mixes;
  Judge &judge;
  const PlannerOptions &options;
  ClassCounts available;
  size_t budget; ///< mixes that may still be judged
  std::set<std::vector<int64_t>> tried;
};

} // namespace autohet

#endif
