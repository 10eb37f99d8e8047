//===- Replan.h - the next plan when machines come or go --------*- C++ -*-===//
//
// A plan that is a little slower but leaves most of the state where it is may
// be worth more than the fastest one. Candidates are the plans that the search
// finds for the machines that there are now, and the old plan's replicas that
// still have all their devices, alone or with new ones on what is left over;
// within each, equal devices take the stages of which they hold most.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_REPLAN_H
#define AUTOHET_PLANNER_REPLAN_H

#include "autohet/Planner/Planner.h"
#include "autohet/Planner/StateMoves.h"

namespace autohet {

struct ReplanOptions {
  PlannerOptions planner;
  /// A candidate's score is this times its step by the fastest one's, and this
  /// times what it moves by all there is; the lowest is taken.
  double speed_weight = 1, move_weight = 0.1;
};

struct ReplanCandidate {
  PlannedStep step;
  StateMoves moves;
  std::string origin; ///< "search", "kept replicas", …
  double score = 0;
};

struct ReplanResult {
  /// The chosen plan as if it had been searched for.
  PlannerResult planned;
  StateMoves moves;
  std::string origin;
  /// All that were looked at, by rising score; the first is the chosen one.
  std::vector<ReplanCandidate> candidates;
  double state_bytes = 0; ///< of the model, once
};

/// `before` is a legal plan for `clusterBefore`.
llvm::Expected<ReplanResult> replan(const UnitTable &table, const Plan &before,
                                    const Cluster &clusterBefore,
                                    const Cluster &clusterAfter,
                                    const ReplanOptions &options);

} // namespace autohet

#endif
