//===- ModeSearch.cpp - what restricted planners reach --------------------===//

#include "ModeSearch.h"

namespace autohet {

// Grids name devices: of more of them there are too many arrangements.
static constexpr size_t maxGridDevices = 64;

std::string searchMode(PlannerMode mode, Judge &judge) {
  assert(mode == PlannerMode::Symmetric && "the other mode is JointSearch");
  const PlanCosts &costs = judge.planCosts();
  if (!costs.costModel())
    return "symmetric grids are not searched with measured profiles";
  if (costs.machines().devices().size() > maxGridDevices)
    return "symmetric grids are searched for up to " +
           std::to_string(maxGridDevices) + " devices";
  searchNamedGrids(*costs.costModel(), judge);
  return judge.best ? "" : "no symmetric plan fits";
}

} // namespace autohet
