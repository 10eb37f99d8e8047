//===- StateByRoom.cpp - whose memory the optimizer's state is in ---------===//

#include "StateByRoom.h"
#include "GradientTraffic.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace autohet {

// With more devices each owns little: equal parts seldom matter, and the bound
// is closer for them.
static constexpr size_t fewDevices = 16;
// An equal part, in shares: what others have is a whole number of these.
static constexpr int64_t wholeShare = 1000;
// Parts are sought anew until all fit, at most so often.
static constexpr unsigned maxRounds = 40;
// Of the room that is left, what whole slices need.
static constexpr double usedRoom = 0.97;

bool mayShareState(const PlanCosts &costs, const PlannerOptions &options) {
  if (options.state_owner != "spread" || !costs.costModel() ||
      !costs.hasBackward() || stateBytesPerByte(costs.optimizerKind()) == 0 ||
      costs.machines().devices().size() < 2)
    return false;
  if (options.state_parts)
    return *options.state_parts == StateParts::Uneven;
  if (costs.machines().devices().size() > fewDevices)
    return false;
  // A stage of all units holds most, and as many microbatches as any pipeline.
  unsigned units = costs.units().units.size();
  int64_t depth = costs.machines().devices().size();
  int64_t largest = options.microbatch_size.value_or(
      std::min(options.max_microbatch_size, options.global_batch));
  for (unsigned shape = 0; shape < costs.shapes().size(); ++shape)
    if (costs.shapes()[shape].deviceCount() == 1 &&
        costs.mostInFlight({0, units, shape, largest}, /*owned=*/1) < depth)
      return true;
  return false;
}

void searchStateParts(Judge &judge, llvm::function_ref<void()> search) {
  PlannerOptions options = judge.plannerOptions();
  bool mayMatter = mayShareState(judge.planCosts(), options);
  judge.shares_state = false;
  search();
  if (!options.state_parts)
    options.state_parts = StateParts::Uneven;
  bool needsIt = !judge.best || withEvenState(judge.best->resolved);
  judge.shares_state =
      mayMatter || (needsIt && mayShareState(judge.planCosts(), options));
  if (judge.shares_state)
    search();
}

std::optional<ResolvedPlan> withEvenState(const ResolvedPlan &plan) {
  auto isEven = [](const ResolvedReplica &replica) {
    return llvm::all_of(replica.stages, [](const ResolvedStage &stage) {
      return stage.state_share == 1;
    });
  };
  if (llvm::all_of(plan.replicas, isEven))
    return std::nullopt;
  ResolvedPlan even = plan;
  for (ResolvedReplica &replica : even.replicas)
    for (ResolvedStage &stage : replica.stages)
      stage.state_share = 1;
  return even;
}

namespace {

/// A stage with state, and the part of what it holds that it has room to own.
struct StageRoom {
  Holder holder;
  double most = 1;
};

} // namespace

/// None where a device has no room even without state.
static std::optional<std::vector<StageRoom>>
findRooms(const PlanEvaluation &evaluation, const PlanCosts &costs) {
  double factor = stateBytesPerByte(costs.optimizerKind());
  std::vector<StageRoom> rooms;
  for (const DeviceEvaluation &entry : evaluation.devices) {
    Holder holder = {entry.replica, entry.stage};
    if (rooms.empty() || !(rooms.back().holder == holder))
      rooms.push_back({holder});
    // Who owns more also gets more of the others' gradients.
    double owning = entry.memory.state_bytes + entry.memory.exchange_bytes;
    double room =
        costs.memoryRoom(entry.device) - (entry.memory.total() - owning);
    double all = factor * entry.memory.gradient_bytes;
    if (entry.memory.state_bytes > 0)
      all *= owning / entry.memory.state_bytes;
    if (room < 0)
      return std::nullopt;
    if (all > 0)
      rooms.back().most = std::min(rooms.back().most, usedRoom * room / all);
  }
  return rooms;
}

// Whoever has too much gives some of it to the others, in proportion to theirs,
// until nobody has: shares only fall, so what fits once is not seen again.
std::optional<ResolvedPlan> shareStateByRoom(const ResolvedPlan &plan,
                                             const PlanEvaluation &evaluation,
                                             const PlanCosts &costs) {
  std::optional<std::vector<StageRoom>> rooms = findRooms(evaluation, costs);
  if (!rooms)
    return std::nullopt;
  ResolvedPlan shared = plan;
  for (ResolvedReplica &replica : shared.replicas)
    for (ResolvedStage &stage : replica.stages)
      stage.state_share = wholeShare;
  for (unsigned round = 0; round < maxRounds; ++round) {
    Ownership owners(shared, "spread", *costs.costModel());
    if (!owners.areAllOwned())
      return std::nullopt; // nobody has room for some parameter's
    std::vector<int64_t> shares;
    bool areAllIn = true;
    for (const StageRoom &room : *rooms) {
      int64_t share = owners.stageOf(room.holder).state_share;
      double owned = owners.stageShare(room.holder);
      if (owned > room.most) {
        areAllIn = false;
        share = std::floor(static_cast<double>(share) * room.most / owned);
      }
      shares.push_back(share);
    }
    if (areAllIn) {
      int64_t divisor = 0;
      for (int64_t share : shares)
        divisor = std::gcd(divisor, share);
      for (ResolvedReplica &replica : shared.replicas)
        for (ResolvedStage &stage : replica.stages)
          stage.state_share /= divisor;
      return shared;
    }
    for (auto [room, share] : llvm::zip_equal(*rooms, shares))
      shared.replicas[room.holder.replica]
          .stages[room.holder.stage]
          .state_share = share;
  }
  return std::nullopt;
}

} // namespace autohet
