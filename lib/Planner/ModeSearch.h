//===- ModeSearch.h - what restricted planners reach ------------*- C++ -*-===//
//
// Each mode is a restriction of the one space, after a system that searches it,
// and brings its plans to the same judge. One file a mode.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_MODESEARCH_H
#define AUTOHET_LIB_PLANNER_MODESEARCH_H

#include "Judge.h"

namespace autohet {

/// Says why there is no plan, if so.
std::string searchMode(PlannerMode mode, Judge &judge);

/// Grids over few named devices and all their subsets.
void searchNamedGrids(const CostModel &costs, Judge &judge);

/// Data × pipeline × tensor parallelism of rows of equal extent.
struct GridRules {
  /// Layers by the stages' speed, one cut for all replicas; else as equal in
  /// number as can be.
  bool balances_layers = true;
  /// Microbatches by the replicas' speed; else equally many.
  bool balances_batch = true;
  /// Whole kinds of devices may be left out.
  bool may_idle = true;
};
void searchGrids(Judge &judge, const GridRules &rules);

/// What AutoHet decides; each may be switched off to see what it is worth.
struct AutoHetRules {
  bool groups = true;   ///< by effective power; else equal parts in file order
  bool maps = true;     ///< slow devices early; else in file order
  bool balances = true; ///< layers by speed and memory; else equally many
  /// Microbatches by speed, and groups by the sum of powers, as well.
  bool frees_counts = true;
};
void searchAutoHet(Judge &judge, const AutoHetRules &rules = {});

/// One kind of device a stage.
void searchHeteroAuto(Judge &judge);

/// Every device a replica by itself, with its own share of the batch.
void searchCephalo(Judge &judge);

/// Grids over any number of devices, and over subsets of their classes.
void searchCountedGrids(Judge &judge);

/// Groups of consecutive units that grids count: the model's layers, with what
/// is before them in the first and what is behind them in the last stage.
struct ModelLayers {
  std::vector<std::vector<unsigned>> layers;
  std::vector<unsigned> before, after;
};
ModelLayers findLayers(const UnitTable &table);

} // namespace autohet

#endif
