//===- Planning.h - a plan with what it will cost --------------*- C++ -*-===//
//
// Every plan, whether found or given, is judged by the same cost model, so that
// the numbers of a pinned plan and of the planner's can be laid side by side.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_OPTIONS_PLANNING_H
#define AUTOHET_TOOLS_OPTIONS_PLANNING_H

#include "autohet/Planner/Planner.h"

namespace autohet {

/// What `--planner` may look for.
enum class PlannerKind { Asymmetric, Symmetric };

/// The best plan of that kind. The error says why there is none.
llvm::Expected<PlannerResult> findPlan(PlannerKind kind, const UnitTable &table,
                                       const Cluster &cluster,
                                       const PlannerOptions &options);

/// What a plan costs that `reason` says the origin of. It must be legal.
PlannerResult judgePlan(const Plan &plan, llvm::StringRef reason,
                        const UnitTable &table, const Cluster &cluster);

} // namespace autohet

#endif
