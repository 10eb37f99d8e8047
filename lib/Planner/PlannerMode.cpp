//===- PlannerMode.cpp - names of the planner's modes ---------------------===//

#include "autohet/Planner/Planner.h"

namespace autohet {

static constexpr std::pair<PlannerMode, const char *> modeNames[] = {
    {PlannerMode::Joint, "joint"},     {PlannerMode::Symmetric, "symmetric"},
    {PlannerMode::Whale, "whale"},     {PlannerMode::HeteroAuto, "heteroauto"},
    {PlannerMode::Cephalo, "cephalo"}, {PlannerMode::AutoHet, "autohet"}};

std::vector<PlannerMode> allPlannerModes() {
  std::vector<PlannerMode> modes;
  for (auto [mode, name] : modeNames)
    modes.push_back(mode);
  return modes;
}

llvm::StringRef plannerModeName(PlannerMode mode) {
  for (auto [known, name] : modeNames)
    if (known == mode)
      return name;
  llvm_unreachable("a mode without a name");
}

std::optional<PlannerMode> parsePlannerMode(llvm::StringRef name) {
  for (auto [mode, known] : modeNames)
    if (name == known)
      return mode;
  return std::nullopt;
}

} // namespace autohet
