//===- Judge.h - whole plans, the best of them and its neighbours -*- C++ -*-===//
//
// Every search brings its plans here. Each is evaluated under the schedules
// that are allowed; the best that fits into memory is kept, with the best ones
// of other make beside it.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_JUDGE_H
#define AUTOHET_LIB_PLANNER_JUDGE_H

#include "autohet/Planner/Planner.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace autohet {

/// What a replica is expected to take: `way_s` and `rest_s` whatever it does,
/// and `period_s` for each microbatch but the first.
struct ReplicaLine {
  double period_s = 0, way_s = 0, rest_s = 0;
};

/// What replicas took in the fastest of the plans that were judged together.
struct SeenReplicas {
  double step_s = std::numeric_limits<double>::infinity();
  std::vector<ReplicaLine> lines; ///< empty: none could share the batch
  /// Which of them have devices that lack memory, however state is spread.
  std::vector<bool> lack_memory;

  bool fit() const { return !llvm::is_contained(lack_memory, true); }
  bool areBetterThan(const SeenReplicas &other) const {
    if (lines.empty() || other.lines.empty())
      return !lines.empty();
    return fit() != other.fit() ? fit() : step_s < other.step_s;
  }
};

/// A plan under the first schedule, as it was judged: where it lacks memory and
/// may spread its state by room, so.
struct SeenPlan {
  PlanEvaluation evaluation;
  bool lacks_memory = false;
};

class Judge {
public:
  /// With the options' deadline.
  Judge(const PlanCosts &costs, const PlannerOptions &options)
      : Judge(costs, options, options.deadline) {}
  Judge(const PlanCosts &costs, const PlannerOptions &options,
        Deadline deadline);

  /// Whether the plan is the best so far.
  bool consider(const ResolvedPlan &plan, SeenPlan *seen = nullptr);
  /// Chooses the numbers of microbatches first, and again after a look at when
  /// each replica was done.
  SeenReplicas considerCounts(ResolvedPlan plan,
                              llvm::ArrayRef<ReplicaLine> lines);

  /// With the plan's text filled in.
  std::optional<PlannedStep> takeBest();
  std::vector<PlannedStep> takeAlternatives();

  /// The next best of other makes so far, by rising time.
  llvm::ArrayRef<PlannedStep> alternativesSoFar() const { return alternatives; }

  double bestSeconds() const {
    return best ? best->evaluation.step_s
                : std::numeric_limits<double>::infinity();
  }
  /// Whether another evaluation, begun now, ends too late.
  bool isLate() const { return ends.isOver(evaluation_s); }
  /// The same, once there was one: late or not, a mode looks at a plan.
  bool mustEnd() const { return evaluated_plans > 0 && isLate(); }
  /// When to stop looking for plans: what is found then can be evaluated.
  Deadline deadline() const { return ends.before(evaluation_s); }
  void setDeadline(Deadline deadline) { ends = std::move(deadline); }
  double evaluationSeconds() const { return evaluation_s; }
  double secondsSinceStart() const { return ends.now() - started_s; }

  /// Whether state is spread by room where equal parts do not fit.
  bool shares_state = false;
  std::optional<PlannedStep> best;
  /// The best that left no device idle: what idling is worth.
  std::optional<double> best_using_all_s;
  uint64_t evaluated_plans = 0;

  const PlanCosts &planCosts() const { return costs; }
  const PlannerOptions &plannerOptions() const { return options; }

private:
  /// A plan that may come again, and what it was found to be.
  struct LastPlan {
    ResolvedPlan plan;
    PlanEvaluation evaluation;
  };
  PlanEvaluation evaluate(const ResolvedPlan &plan, Schedule schedule);

  bool fits(const PlanEvaluation &evaluation) const;
  void correct(llvm::MutableArrayRef<ReplicaLine> lines,
               const ResolvedPlan &plan, const PlanEvaluation &evaluation);
  void keepAlternative(PlannedStep step);
  void write(PlannedStep &step) const;

  const PlanCosts &costs;
  const PlannerOptions &options;
  Deadline ends;
  double started_s;
  double evaluation_s = 0; ///< what the last one took
  std::map<Schedule, LastPlan> last;
  std::vector<PlannedStep> alternatives;
};

} // namespace autohet

#endif
