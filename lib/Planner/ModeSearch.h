//===- ModeSearch.h - what restricted planners reach ------------*- C++ -*-===//
//
// Each mode is a restriction of the one space, after a system that searches it,
// and brings its plans to the same judge.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_MODESEARCH_H
#define AUTOHET_LIB_PLANNER_MODESEARCH_H

#include "Judge.h"

namespace autohet {

/// Any mode but PlannerMode::Joint. Says why there is no plan, if so.
std::string searchMode(PlannerMode mode, Judge &judge);

/// Grids over few named devices and all their subsets.
void searchNamedGrids(const CostModel &costs, Judge &judge);

/// Groups of consecutive units that grids count: the model's layers, with what
/// is before them in the first and what is behind them in the last stage.
struct ModelLayers {
  std::vector<std::vector<unsigned>> layers;
  std::vector<unsigned> before, after;
};
ModelLayers findLayers(const UnitTable &table);

} // namespace autohet

#endif
