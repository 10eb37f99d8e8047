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

#include "GradientTraffic.h"

namespace autohet {

/// What cards make of one stage's exchange.
struct CardTimes {
  double end_s = 0;      ///< when its gradients are through
  double back_s = 0;     ///< seconds that its new parameters take to be through
  double own_back_s = 0; ///< of these its own
};

/// Of each replica and stage: `traffic` is that of `result.devices`. All is 0
/// where no card is given.
std::vector<std::vector<CardTimes>> timeCards(const ResolvedPlan &plan,
                                              const PlanEvaluation &result,
                                              llvm::ArrayRef<Traffic> traffic,
                                              const Cluster &cluster);

} // namespace autohet

#endif
