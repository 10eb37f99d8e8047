//===- Explain.h - why a plan is as it is -----------------------*- C++ -*-===//

#ifndef AUTOHET_LIB_PLANNER_EXPLAIN_H
#define AUTOHET_LIB_PLANNER_EXPLAIN_H

#include "autohet/Planner/Planner.h"

namespace autohet {

/// Fills in idle devices and reasons.
void explainResult(PlannerResult &result, std::optional<double> usingAll_s,
                   const PlanCosts &costs, const PlannerOptions &options);

std::string whyModeHasNoPlan(PlannerMode mode);

/// Nothing fits: finds the plan that would with the least more memory (in
/// proportion, on all devices), and says what it lacks and what would help.
llvm::Error explainInfeasible(const UnitTable &table, const Cluster &cluster,
                              const PlannerOptions &options);

} // namespace autohet

#endif
