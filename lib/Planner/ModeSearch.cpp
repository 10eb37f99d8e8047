//===- ModeSearch.cpp - what restricted planners reach --------------------===//

#include "ModeSearch.h"
#include "JointSearch.h"
#include "StateByRoom.h"

namespace autohet {

// Of more devices there are too many subsets and arrangements to name.
static constexpr size_t maxNamedGridDevices = 16;
// Rows of devices in any numbers of replicas: time grows with the square.
static constexpr size_t maxRowDevices = 2048;

std::string searchMode(PlannerMode mode, Judge &judge) {
  const PlanCosts &costs = judge.planCosts();
  bool arrangesRows =
      mode == PlannerMode::Whale || mode == PlannerMode::AutoHet;
  if (arrangesRows && costs.machines().devices().size() > maxRowDevices)
    return plannerModeName(mode).str() + " plans are searched for up to " +
           std::to_string(maxRowDevices) + " devices";
  switch (mode) {
  case PlannerMode::Joint:
    searchStateParts(judge, [&] { JointSearch(judge).run(); });
    break;
  case PlannerMode::Symmetric:
    if (costs.mayNameDevices() &&
        costs.machines().devices().size() <= maxNamedGridDevices)
      searchNamedGrids(*costs.costModel(), judge);
    else
      searchCountedGrids(judge);
    break;
  case PlannerMode::Whale:
    searchGrids(judge, GridRules());
    break;
  case PlannerMode::HeteroAuto:
    searchHeteroAuto(judge);
    break;
  case PlannerMode::Cephalo:
    searchCephalo(judge);
    break;
  case PlannerMode::AutoHet:
    searchAutoHet(judge);
    break;
  }
  if (judge.best)
    return "";
  if (judge.isLate())
    return "no " + plannerModeName(mode).str() + " plan was found in time";
  if (mode == PlannerMode::Cephalo)
    return "no device holds the model alone, as every one does in a cephalo "
           "plan here: sharded parameters are not executed";
  return "no " + plannerModeName(mode).str() + " plan fits";
}

} // namespace autohet
