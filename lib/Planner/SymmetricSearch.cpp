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
#include <set>

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

class SymmetricSearch {
public:
  SymmetricSearch(const CostModel &costs, Judge &judge)
      : costs(costs), judge(judge), options(judge.plannerOptions()),
        layers(findLayers(costs.units())), classes(costs) {}

  void run() {
    for (const std::vector<unsigned> &subset : subsets())
      for (const std::vector<unsigned> &order : arrangements(subset)) {
        unsigned count = order.size();
        for (unsigned dp = 1; dp <= count; ++dp)
          for (unsigned tp = 1; dp * tp <= count; ++tp)
            if (count % (dp * tp) == 0 && !judge.mustEnd())
              tryGrid(order, dp, count / (dp * tp), tp);
      }
  }

private:
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

  void tryGrid(llvm::ArrayRef<unsigned> order, unsigned dp, unsigned pp,
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
          ResolvedPlan plan =
              makeGrid(order, dp, pp, tp, isFirstLonger, isInterleaved);
          for (ResolvedReplica &replica : plan.replicas) {
            replica.microbatch_size = size;
            replica.microbatches = options.global_batch / samples;
          }
          tryPlan(std::move(plan));
        }
    }
  }

  ResolvedPlan makeGrid(llvm::ArrayRef<unsigned> order, unsigned dp,
                        unsigned pp, unsigned tp, bool isFirstLonger,
                        bool isInterleaved) const {
    llvm::SmallVector<int64_t> sizes =
        splitExtentEvenly(layers.layers.size(), pp);
    if (!isFirstLonger)
      std::reverse(sizes.begin(), sizes.end());
    ResolvedPlan plan;
    for (unsigned r = 0; r < dp; ++r) {
      ResolvedReplica &replica = plan.replicas.emplace_back();
      unsigned layer = 0;
      for (unsigned s = 0; s < pp; ++s) {
        ResolvedStage &stage = replica.stages.emplace_back();
        if (s == 0)
          stage.units = layers.before;
        for (int64_t i = 0; i < sizes[s]; ++i)
          llvm::append_range(stage.units, layers.layers[layer++]);
        if (s + 1 == pp)
          llvm::append_range(stage.units, layers.after);
        unsigned row = isInterleaved ? s * dp + r : r * pp + s;
        stage.devices = order.slice(row * tp, tp).vec();
        stage.weights.assign(tp, 1);
      }
    }
    return plan;
  }

  // A stage computes all microbatches, after the first one's way to it and
  // before the last one's way back.
  double lowerBound(const ResolvedPlan &plan) const {
    double bound = 0;
    for (const ResolvedReplica &replica : plan.replicas) {
      double before = 0;
      for (const ResolvedStage &stage : replica.stages) {
        double seconds =
            costs.stageSeconds(stage, replica.microbatch_size).total();
        bound = std::max(bound, before + seconds * static_cast<double>(
                                                       replica.microbatches));
        if (costs.planObjective() == PlanObjective::Latency)
          before += seconds;
      }
    }
    return bound;
  }

  void tryPlan(ResolvedPlan plan) {
    if (lowerBound(plan) < judge.bestSeconds())
      judge.consider(plan);
  }

  const CostModel &costs;
  Judge &judge;
  const PlannerOptions &options;
  ModelLayers layers;
  DeviceClasses classes;
};

} // namespace

void searchNamedGrids(const CostModel &costs, Judge &judge) {
  SymmetricSearch(costs, judge).run();
}

} // namespace autohet
