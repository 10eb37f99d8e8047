//===- CountedGrids.cpp - grids of equal parts over any number of devices -===//
//
// Data × pipeline × tensor parallelism over thousands of devices, as counts: a
// row of a grid is tp devices of one class in one node, rows of a class follow
// one another, and replicas take rows side by side or interleaved. Which
// classes a stage meets is then a question of a few numbers, and so is a bound
// of the grid's time; the best by that are placed and judged.
//
//===----------------------------------------------------------------------===//

#include "Judge.h"
#include "ModeSearch.h"
#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <map>

namespace autohet {
namespace {

// So many grids are judged at most.
constexpr unsigned maxJudged = 24;
// Beyond so many classes, only all of them and each alone are tried.
constexpr size_t maxSubsetClasses = 6;

struct Grid {
  std::vector<unsigned> classes; ///< in the order of their rows
  unsigned dp = 1, pp = 1, tp = 1;
  int64_t microbatch_size = 1;
  bool is_first_longer = true, is_interleaved = false;
  double bound_s = 0;
  size_t number = 0; ///< makes the order one of all runs
};

class CountedGrids {
public:
  explicit CountedGrids(Judge &judge)
      : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
        layers(findLayers(costs.units())) {
    for (int64_t size = 1; size <= options.max_microbatch_size; ++size)
      if (options.global_batch % size == 0 &&
          (!options.microbatch_size || size == *options.microbatch_size))
        sizes.push_back(size);
    unsigned most = 0;
    for (const MachineClass &entry : costs.classes().classes())
      most = std::max(most, entry.per_node);
    shapes.resize(costs.classes().size());
    for (std::vector<std::optional<unsigned>> &byExtent : shapes)
      byExtent.resize(most + 1);
    for (auto [index, shape] : llvm::enumerate(costs.shapes()))
      if (shape.parts.size() == 1)
        shapes[shape.parts[0].machine_class][shape.parts[0].count] = index;
    extents = most;
    for (int64_t count = 1; count <= options.global_batch; ++count)
      if (options.global_batch % count == 0)
        divisors.push_back(count);
  }

  void run() {
    // Half of the time is for looking at them more closely.
    searchEnd = judge.deadline().part(0.5);
    for (std::vector<unsigned> &classes : subsets()) {
      bool isFastFirst = true;
      do {
        llvm::sort(classes, [&](unsigned a, unsigned b) {
          if (rateOf(a) != rateOf(b))
            return (rateOf(a) > rateOf(b)) == isFastFirst;
          return a < b;
        });
        for (unsigned tp = 1; tp <= extents; ++tp)
          if (grids.empty() || !searchEnd.isOver())
            addGrids(classes, tp);
        isFastFirst = !isFastFirst;
      } while (!isFastFirst && classes.size() > 1);
    }
    llvm::sort(grids, [](const Grid &a, const Grid &b) {
      return std::tie(a.bound_s, a.number) < std::tie(b.bound_s, b.number);
    });
    unsigned left = maxJudged;
    for (const Grid &grid : grids) {
      if (grid.bound_s >= judge.bestSeconds() || left == 0 || judge.mustEnd())
        return;
      if (!fits(grid))
        continue;
      judge.consider(place(grid));
      --left;
    }
  }

private:
  double rateOf(unsigned index) const {
    return costs.machines().kinds[costs.classes()[index].kind].flops_per_s;
  }

  /// Classes that a grid is laid over.
  std::vector<std::vector<unsigned>> subsets() const {
    size_t count = costs.classes().size();
    std::vector<std::vector<unsigned>> result;
    if (count <= maxSubsetClasses) {
      for (unsigned bits = 1; bits < 1u << count; ++bits) {
        std::vector<unsigned> &subset = result.emplace_back();
        for (unsigned index = 0; index < count; ++index)
          if (bits >> index & 1)
            subset.push_back(index);
      }
      return result;
    }
    std::vector<unsigned> all(count);
    for (unsigned index = 0; index < count; ++index) {
      all[index] = index;
      result.push_back({index});
    }
    result.push_back(std::move(all));
    return result;
  }

  unsigned rowsOf(unsigned index, unsigned tp) const {
    const MachineClass &entry = costs.classes()[index];
    return entry.devices.size() / entry.per_node * (entry.per_node / tp);
  }

  void addGrids(llvm::ArrayRef<unsigned> classes, unsigned tp) {
    std::vector<unsigned> ends; // of each class's rows
    unsigned rows = 0;
    for (unsigned index : classes) {
      if (!shapes[index][tp] || rowsOf(index, tp) == 0)
        return;
      ends.push_back(rows += rowsOf(index, tp));
    }
    if (options.max_devices)
      rows = std::min(rows, *options.max_devices / tp);
    unsigned layerCount = layers.layers.size();
    for (unsigned pp = 1; pp <= std::min(rows, std::max(1u, layerCount)); ++pp)
      for (int64_t size : sizes) {
        if (!grids.empty() && searchEnd.isOver())
          return;
        unsigned dp = replicasUpTo(rows / pp, size);
        if (dp == 0)
          continue;
        for (bool isFirstLonger : {true, false})
          for (bool isInterleaved : {false, true}) {
            if ((layerCount % pp == 0 && !isFirstLonger) ||
                ((dp == 1 || pp == 1) && isInterleaved))
              continue;
            Grid grid = {
                classes.vec(), dp, pp,          tp, size, isFirstLonger,
                isInterleaved, 0,  grids.size()};
            grid.bound_s = boundOf(grid, ends);
            grids.push_back(std::move(grid));
          }
      }
  }

  /// As many replicas as share the batch evenly; 0: none.
  unsigned replicasUpTo(unsigned most, int64_t size) const {
    int64_t microbatches = options.global_batch / size;
    auto end = llvm::upper_bound(divisors, static_cast<int64_t>(most));
    for (auto next = end; next != divisors.begin();)
      if (microbatches % *--next == 0)
        return *next;
    return 0;
  }

  /// The first unit of each stage, and the end of the last.
  const std::vector<unsigned> &cutsOf(const Grid &grid) {
    std::vector<unsigned> &cuts = knownCuts[{grid.pp, grid.is_first_longer}];
    if (!cuts.empty())
      return cuts;
    llvm::SmallVector<int64_t> lengths =
        splitExtentEvenly(layers.layers.size(), grid.pp);
    if (!grid.is_first_longer)
      std::reverse(lengths.begin(), lengths.end());
    cuts.push_back(0);
    size_t layer = 0;
    for (unsigned stage = 0; stage + 1 < grid.pp; ++stage) {
      layer += lengths[stage];
      cuts.push_back(layers.layers[layer].front());
    }
    cuts.push_back(costs.units().units.size());
    return cuts;
  }

  /// Whether a stage meets rows [begin, end).
  static bool meets(const Grid &grid, unsigned stage, unsigned begin,
                    unsigned end) {
    if (grid.is_interleaved)
      return stage * grid.dp < end && (stage + 1) * grid.dp > begin;
    // The first row of the stage that is not before `begin`.
    unsigned replica =
        begin <= stage ? 0 : (begin - stage + grid.pp - 1) / grid.pp;
    return replica < grid.dp && replica * grid.pp + stage < end;
  }

  /// Seconds of units [0, unit).
  const std::vector<double> &unitSums(unsigned shape, int64_t size) {
    std::vector<double> &sums = knownSums[{shape, size}];
    if (sums.empty()) {
      sums.push_back(0);
      for (unsigned unit = 0; unit < costs.units().units.size(); ++unit)
        sums.push_back(sums.back() +
                       costs.unitSeconds(shape, unit, size).total());
    }
    return sums;
  }

  // The slowest stage computes all microbatches, after the first one's way to
  // it and before the last one's way back: at best over the fastest others.
  double boundOf(const Grid &grid, llvm::ArrayRef<unsigned> ends) {
    const std::vector<unsigned> &cuts = cutsOf(grid);
    llvm::SmallVector<llvm::ArrayRef<double>> sums;
    for (unsigned index : grid.classes)
      sums.push_back(unitSums(*shapes[index][grid.tp], grid.microbatch_size));
    double microbatches = static_cast<double>(options.global_batch /
                                              (grid.microbatch_size * grid.dp));
    double before = 0, bound = 0;
    for (unsigned stage = 0; stage < grid.pp; ++stage) {
      double slowest = 0, fastest = std::numeric_limits<double>::infinity();
      unsigned begin = 0;
      for (auto [sum, end] : llvm::zip_equal(sums, ends)) {
        if (meets(grid, stage, begin, end)) {
          double seconds = sum[cuts[stage + 1]] - sum[cuts[stage]];
          slowest = std::max(slowest, seconds);
          fastest = std::min(fastest, seconds);
        }
        begin = end;
      }
      bound = std::max(bound, before + slowest * microbatches);
      if (costs.planObjective() == PlanObjective::Latency)
        before += fastest;
    }
    return bound;
  }

  // Every class that a stage meets must hold it.
  bool fits(const Grid &grid) {
    const std::vector<unsigned> &cuts = cutsOf(grid);
    int64_t microbatches =
        options.global_batch / (grid.microbatch_size * grid.dp);
    double owned = options.state_owner == "spread" ? 1.0 / grid.dp : 0;
    for (unsigned stage = 0; stage < grid.pp; ++stage) {
      int64_t needed = std::min<int64_t>(grid.pp - stage, microbatches);
      unsigned begin = 0;
      for (unsigned index : grid.classes) {
        unsigned end = begin + rowsOf(index, grid.tp);
        if (meets(grid, stage, begin, end) &&
            costs.mostInFlight({cuts[stage], cuts[stage + 1],
                                *shapes[index][grid.tp], grid.microbatch_size},
                               owned) < needed)
          return false;
        begin = end;
      }
    }
    return true;
  }

  ResolvedPlan place(const Grid &grid) {
    // Rows of tp devices in one node.
    std::vector<std::vector<unsigned>> rows;
    for (unsigned index : grid.classes) {
      const MachineClass &entry = costs.classes()[index];
      for (size_t node = 0; node < entry.devices.size(); node += entry.per_node)
        for (unsigned i = 0; i + grid.tp <= entry.per_node; i += grid.tp)
          rows.emplace_back(entry.devices.begin() + node + i,
                            entry.devices.begin() + node + i + grid.tp);
    }
    const std::vector<unsigned> &cuts = cutsOf(grid);
    ResolvedPlan plan;
    for (unsigned r = 0; r < grid.dp; ++r) {
      ResolvedReplica &replica = plan.replicas.emplace_back();
      replica.microbatch_size = grid.microbatch_size;
      replica.microbatches =
          options.global_batch / (grid.microbatch_size * grid.dp);
      for (unsigned s = 0; s < grid.pp; ++s) {
        ResolvedStage &stage = replica.stages.emplace_back();
        for (unsigned unit = cuts[s]; unit < cuts[s + 1]; ++unit)
          stage.units.push_back(unit);
        stage.devices =
            rows[grid.is_interleaved ? s * grid.dp + r : r * grid.pp + s];
        stage.weights.assign(grid.tp, 1);
      }
    }
    return plan;
  }

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  ModelLayers layers;
  std::vector<int64_t> sizes, divisors; ///< divisors: of the global batch
  unsigned extents = 1;
  Deadline searchEnd; ///< of grids
  /// Of each class, by tensor-parallel extent.
  std::vector<std::vector<std::optional<unsigned>>> shapes;
  /// By shape and microbatch size.
  std::map<std::pair<unsigned, int64_t>, std::vector<double>> knownSums;
  /// By number of stages, and whether the first are the longer ones.
  std::map<std::pair<unsigned, bool>, std::vector<unsigned>> knownCuts;
  std::vector<Grid> grids;
};

} // namespace

void searchCountedGrids(Judge &judge) { CountedGrids(judge).run(); }

} // namespace autohet
