//===- SymmetricSearch.cpp - the best grid of equal parts -----------------===//
//
// What today's launchers can express: data × pipeline × tensor parallelism, the
// same number of layers (±1) in every stage, the same batch in every replica.
// It is searched honestly, over subsets and arrangements of unlike devices,
// since every speed-up is told against it.
//
//===----------------------------------------------------------------------===//

#include "DeviceClasses.h"
#include "Judge.h"
#include "ModeSearch.h"
#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace autohet {

/// Units "name<number>.…" of one number are a layer.
ModelLayers findLayers(const UnitTable &table) {
  ModelLayers result;
  std::string current;
  for (unsigned unit = 0; unit < table.units.size(); ++unit) {
    llvm::StringRef name =
        llvm::StringRef(table.units[unit].id).split('.').first;
    if (name.empty() || !llvm::isDigit(name.back())) {
      (result.layers.empty() ? result.before : result.after).push_back(unit);
      continue;
    }
    // Units between layers belong to the layer before.
    if (!result.layers.empty()) {
      llvm::append_range(result.layers.back(), result.after);
      result.after.clear();
    }
    if (name != current)
      result.layers.emplace_back();
    current = name.str();
    result.layers.back().push_back(unit);
  }
  return result;
}

namespace {

// Subsets beyond this many are represented by the fastest devices only.
constexpr size_t maxSubsets = 2000;
// So many are compared before the first one is judged.
constexpr size_t firstGrids = 64;

class SymmetricSearch {
public:
  SymmetricSearch(const CostModel &costs, Judge &judge)
      : costs(costs), judge(judge), options(judge.plannerOptions()),
        layers(findLayers(costs.units())), classes(costs) {}

  // Grids are judged by rising bounds, so that a good one leaves most of the
  // others out; a few of them first, since there may be a deadline.
  void run() {
    size_t most = firstGrids;
    for (const std::vector<unsigned> &subset : subsets())
      for (const std::vector<unsigned> &order : arrangements(subset)) {
        unsigned count = order.size();
        for (unsigned dp = 1; dp <= count; ++dp)
          for (unsigned tp = 1; dp * tp <= count; ++tp)
            if (count % (dp * tp) == 0 && !judge.mustEnd())
              addGrids(order, dp, count / (dp * tp), tp);
        if (grids.size() >= most) {
          tryGrids();
          most *= 2;
        }
      }
    tryGrids();
  }

private:
  struct Grid {
    double bound_s = 0;
    std::vector<unsigned> order; ///< devices, row by row
    unsigned dp = 1, pp = 1, tp = 1;
    int64_t microbatch_size = 1;
    bool is_first_longer = false, is_interleaved = false;
  };

  std::vector<std::vector<unsigned>> subsets() const {
    ClassCounts all = classes.counts();
    size_t number = 1;
    for (unsigned count : all)
      number = std::min(maxSubsets + 1, number * (count + 1));
    std::vector<std::vector<unsigned>> result;
    if (number > maxSubsets) {
      std::vector<unsigned> fastest = sortedByRate(allDevices(), false);
      for (unsigned count = fastest.size(); count > 0; --count)
        result.emplace_back(fastest.begin(), fastest.begin() + count);
      return result;
    }
    ClassCounts counts = all;
    while (llvm::any_of(counts, [](unsigned count) { return count; })) {
      result.push_back(classes.assign(counts).front());
      size_t digit = counts.size();
      while (counts[digit - 1] == 0)
        --digit;
      --counts[digit - 1];
      for (; digit < counts.size(); ++digit)
        counts[digit] = all[digit];
    }
    return result;
  }

  std::vector<unsigned> allDevices() const {
    std::vector<unsigned> devices(costs.machines().devices().size());
    for (unsigned device = 0; device < devices.size(); ++device)
      devices[device] = device;
    return devices;
  }

  std::vector<unsigned> sortedByRate(std::vector<unsigned> devices,
                                     bool ascending) const {
    llvm::sort(devices, [&](unsigned a, unsigned b) {
      double rateA = costs.machines().kindOf(a).flops_per_s;
      double rateB = costs.machines().kindOf(b).flops_per_s;
      if (rateA != rateB)
        return ascending ? rateA < rateB : rateA > rateB;
      return a < b;
    });
    return devices;
  }

  std::set<std::vector<unsigned>>
  arrangements(const std::vector<unsigned> &subset) const {
    return {subset, sortedByRate(subset, false), sortedByRate(subset, true)};
  }

  void addGrids(llvm::ArrayRef<unsigned> order, unsigned dp, unsigned pp,
                unsigned tp) {
    unsigned layerCount = layers.layers.size();
    // A model without layers can only be replicated or divided.
    if (pp > std::max(1u, layerCount))
      return;
    for (int64_t size = 1; size <= options.max_microbatch_size; ++size) {
      if (options.microbatch_size && size != *options.microbatch_size)
        continue;
      int64_t samples = size * dp;
      if (options.global_batch % samples)
        continue;
      if (judge.mustEnd())
        return;
      // Odd layers to the first or to the last stages; replicas side by side
      // or interleaved.
      for (bool isFirstLonger : {true, false})
        for (bool isInterleaved : {false, true}) {
          if ((layerCount % pp == 0 && !isFirstLonger) ||
              ((dp == 1 || pp == 1) && isInterleaved))
            continue;
          Grid grid = {0,    order.vec(),   dp,           pp, tp,
                       size, isFirstLonger, isInterleaved};
          grid.bound_s = lowerBound(makeGrid(grid));
          if (grid.bound_s < judge.bestSeconds())
            grids.push_back(std::move(grid));
        }
    }
  }

  ResolvedPlan makeGrid(const Grid &grid) const {
    llvm::SmallVector<int64_t> sizes =
        splitExtentEvenly(layers.layers.size(), grid.pp);
    if (!grid.is_first_longer)
      std::reverse(sizes.begin(), sizes.end());
    ResolvedPlan plan;
    for (unsigned r = 0; r < grid.dp; ++r) {
      ResolvedReplica &replica = plan.replicas.emplace_back();
      replica.microbatch_size = grid.microbatch_size;
      replica.microbatches =
          options.global_batch / (grid.microbatch_size * grid.dp);
      unsigned layer = 0;
      for (unsigned s = 0; s < grid.pp; ++s) {
        ResolvedStage &stage = replica.stages.emplace_back();
        if (s == 0)
          stage.units = layers.before;
        for (int64_t i = 0; i < sizes[s]; ++i)
          llvm::append_range(stage.units, layers.layers[layer++]);
        if (s + 1 == grid.pp)
          llvm::append_range(stage.units, layers.after);
        unsigned row = grid.is_interleaved ? s * grid.dp + r : r * grid.pp + s;
        stage.devices =
            llvm::ArrayRef(grid.order).slice(row * grid.tp, grid.tp).vec();
        stage.weights.assign(grid.tp, 1);
      }
    }
    return plan;
  }

  /// As of the cost model. Few rows of devices are in many grids.
  PassSeconds stageSeconds(const ResolvedStage &stage, int64_t size) {
    std::vector<PassSeconds> &known = unitSeconds[{stage.devices, size}];
    if (known.empty())
      for (unsigned unit = 0; unit < costs.units().units.size(); ++unit)
        known.push_back(costs.unitSeconds(unit, stage, size));
    PassSeconds sum;
    for (unsigned unit : stage.units)
      sum += known[unit];
    return sum;
  }

  // A stage computes all microbatches, after the first one's way to it and
  // before the last one's way back.
  double lowerBound(const ResolvedPlan &plan) {
    double bound = 0;
    for (const ResolvedReplica &replica : plan.replicas) {
      double before = 0;
      for (const ResolvedStage &stage : replica.stages) {
        double seconds = stageSeconds(stage, replica.microbatch_size).total();
        bound = std::max(bound, before + seconds * static_cast<double>(
                                                       replica.microbatches));
        if (costs.planObjective() == PlanObjective::Latency)
          before += seconds;
      }
    }
    return bound;
  }

  void tryGrids() {
    std::vector<size_t> byBound(grids.size());
    std::iota(byBound.begin(), byBound.end(), 0);
    llvm::sort(byBound, [&](size_t a, size_t b) {
      return std::tie(grids[a].bound_s, a) < std::tie(grids[b].bound_s, b);
    });
    for (size_t index : byBound)
      if (grids[index].bound_s < judge.bestSeconds() && !judge.mustEnd())
        judge.consider(makeGrid(grids[index]));
    grids.clear();
  }

  const CostModel &costs;
  Judge &judge;
  const PlannerOptions &options;
  ModelLayers layers;
  DeviceClasses classes;
  std::vector<Grid> grids; ///< that were not judged yet
  /// Of every unit, by devices and microbatch size.
  std::map<std::pair<std::vector<unsigned>, int64_t>, std::vector<PassSeconds>>
      unitSeconds;
};

} // namespace

void searchNamedGrids(const CostModel &costs, Judge &judge) {
  SymmetricSearch(costs, judge).run();
}

} // namespace autohet
