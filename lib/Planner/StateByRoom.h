//===- StateByRoom.h - whose memory the optimizer's state is in -*- C++ -*-===//
//
// Holders of a parameter own equal parts of its optimizer's state, unless one
// of them has no room for that: then it owns what it has room for, and the
// others the rest. After Cephalo (arXiv 2411.01075), which splits computing and
// state by themselves.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_STATEBYROOM_H
#define AUTOHET_LIB_PLANNER_STATEBYROOM_H

#include "Judge.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace autohet {

/// Whether unlike parts of state are to be looked at, and could matter: not
/// where every device has room for the whole model with all of its state.
bool mayShareState(const PlanCosts &costs, const PlannerOptions &options);

/// Searches with equal parts of state, and where others may matter, or nothing
/// was found that fits and they are not ruled out, once more with any.
void searchStateParts(Judge &judge, llvm::function_ref<void()> search);

/// The plan with equal parts; none if it has those.
std::optional<ResolvedPlan> withEvenState(const ResolvedPlan &plan);

/// The plan with parts for which there is room; none if there is not enough.
/// `evaluation` is of the plan, with equal parts.
std::optional<ResolvedPlan> shareStateByRoom(const ResolvedPlan &plan,
                                             const PlanEvaluation &evaluation,
                                             const PlanCosts &costs);

} // namespace autohet

#endif
