//===- NodeCards.h - network cards that devices share -----------*- C++ -*-===//
//
// All that a node's devices send to other nodes passes its one network card,
// and so does all that they receive, the other way. Where several exchange
// gradients at once, the card may have to do for longer than any of their
// links.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_NODECARDS_H
#define AUTOHET_LIB_PLANNER_NODECARDS_H

#include "StepBorder.h"

namespace autohet {

/// What cards make of one stage's exchange.
struct CardTimes {
  double end_s = 0;      ///< when its gradients are through
  double back_s = 0;     ///< seconds that its new parameters take to be through
  double own_back_s = 0; ///< of these its own
  double message = 0;    ///< the part of these that its first message takes
};

/// Of each replica and stage: each of `result.devices` has the traffic of its
/// kind. All is 0 where no card is given.
std::vector<std::vector<CardTimes>>
timeCards(const ResolvedPlan &plan, const PlanEvaluation &result,
          llvm::ArrayRef<Traffic> traffic, llvm::ArrayRef<unsigned> kinds,
          StepBorder &border, const Cluster &cluster);

} // namespace autohet

#endif
