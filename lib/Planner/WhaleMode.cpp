//===- WhaleMode.cpp - grids balanced by speed ----------------------------===//
//
// Whale (USENIX ATC 2022) keeps the grid of data, pipeline and tensor
// parallelism and balances within it: one cut of the model, by the speed and
// memory of each stage's devices, and a share of the batch by each replica's
// speed. Without the balancing this is what Megatron does; searchNamedGrids()
// looks at more of those.
//
//===----------------------------------------------------------------------===//

#include "JointSearch.h"
#include "LayerChain.h"
#include "ModeSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>

namespace autohet {
namespace {

// Of all grids, so many of the most promising ones are cut and judged.
constexpr size_t maxJudgedGrids = 64;
// Kinds whose subsets are all tried.
constexpr size_t maxSubsetKinds = 6;

using Shapes = std::vector<unsigned>;

/// Rows of devices as a grid.
struct Grid {
  std::vector<Shapes> replicas; ///< their stages' shapes
  int64_t microbatch_size = 1;
  double estimate_s = 0;

  unsigned depth() const { return replicas.front().size(); }
};

class GridSearch {
public:
  GridSearch(Judge &judge, const GridRules &rules)
      : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
        rules(rules), chain(costs, judge.deadline()),
        most(candidatesToJudge(maxJudgedGrids, costs)) {}

  void run() {
    // Half of the time is for looking at them more closely.
    searchEnd = judge.deadline().part(0.5);
    for (unsigned extent : chain.extents())
      addExtent(extent);
    keepBest();
    for (const Grid &grid : grids) {
      if (judge.mustEnd())
        break;
      judgeGrid(grid);
    }
  }

private:
  void addExtent(unsigned extent) {
    std::vector<RowKind> rows = chain.rows(extent, options.max_devices);
    bool hasSubsets = rules.may_idle && rows.size() <= maxSubsetKinds;
    size_t all = (size_t(1) << std::min(rows.size(), maxSubsetKinds)) - 1;
    for (size_t subset = hasSubsets ? 1 : all;
         subset <= all && !searchEnd.isOver(); ++subset) {
      // From the quickest to the slowest, and the other way.
      Shapes order;
      for (auto [number, row] : llvm::enumerate(rows))
        if (!hasSubsets || (subset >> number & 1))
          order.insert(order.end(), row.count, row.shape);
      if (order.empty())
        continue;
      std::map<int64_t, double> rates; // of all rows, by microbatch size
      for (int64_t size : microbatchSizes(options))
        for (unsigned shape : order)
          rates[size] += ratesOf(size)[shape];
      addGrids(order, rates);
      if (order.front() == order.back())
        continue;
      std::reverse(order.begin(), order.end());
      addGrids(order, rates);
    }
  }

  /// Microbatches a second that each shape computes of the whole model.
  llvm::ArrayRef<double> ratesOf(int64_t size) {
    auto [place, isNew] = knownRates.try_emplace(size);
    if (isNew)
      for (unsigned shape = 0; shape < costs.shapes().size(); ++shape)
        place->second.push_back(1 / chain.modelSeconds(shape, size));
    return place->second;
  }

  /// No estimate of a grid is lower: it has no more than all rows, and they
  /// fill their pipelines.
  bool mayBeKept(int64_t replicas, int64_t depth, int64_t size,
                 double rate) const {
    double count =
        static_cast<double>(options.global_batch) / static_cast<double>(size);
    return (count + static_cast<double>((depth - 1) * replicas)) / rate <=
           worst_s;
  }

  void addGrids(const Shapes &order, const std::map<int64_t, double> &rates) {
    unsigned rows = order.size();
    for (unsigned replicas = 1; replicas <= rows && !searchEnd.isOver();
         ++replicas) {
      unsigned depth = rows / replicas;
      if (depth > chain.layerCount() || (!rules.may_idle && rows % replicas) ||
          static_cast<int64_t>(replicas) > options.global_batch)
        continue;
      std::vector<int64_t> sizes;
      for (auto [size, rate] : rates)
        if (mayBeKept(replicas, depth, size, rate))
          sizes.push_back(size);
      if (sizes.empty())
        continue;
      for (bool isStriped : {false, true}) {
        if (isStriped && (replicas == 1 || depth == 1))
          continue;
        Grid grid;
        grid.replicas.resize(replicas);
        for (unsigned replica = 0; replica < replicas; ++replica)
          for (unsigned stage = 0; stage < depth; ++stage)
            grid.replicas[replica].push_back(
                order[isStriped ? stage * replicas + replica
                                : replica * depth + stage]);
        for (int64_t size : sizes)
          addGrid(grid, size);
      }
    }
  }

  void addGrid(Grid &grid, int64_t size) {
    int64_t replicas = grid.replicas.size();
    if (options.global_batch < replicas * size ||
        (!rules.balances_batch && options.global_batch % (replicas * size)))
      return;
    grid.microbatch_size = size;
    grid.estimate_s = estimate(grid);
    // A grid of a thousand devices names each of its rows: few are kept.
    if (grid.estimate_s > worst_s)
      return;
    grids.push_back(grid);
    if (grids.size() >= 4 * most)
      keepBest();
  }

  void keepBest() {
    auto key = [](const Grid &grid) {
      return std::tie(grid.estimate_s, grid.microbatch_size, grid.replicas);
    };
    llvm::sort(grids,
               [&](const Grid &a, const Grid &b) { return key(a) < key(b); });
    // Stripes of equal rows are blocks of them.
    grids.erase(std::unique(grids.begin(), grids.end(),
                            [&](const Grid &a, const Grid &b) {
                              return key(a) == key(b);
                            }),
                grids.end());
    if (grids.size() < most)
      return;
    grids.resize(most);
    worst_s = grids.back().estimate_s;
  }

  // As if layers could be divided at will: every stage takes as long.
  double estimate(const Grid &grid) {
    llvm::ArrayRef<double> rates = ratesOf(grid.microbatch_size);
    double count = static_cast<double>(options.global_batch) /
                   static_cast<double>(grid.microbatch_size);
    double replicas = static_cast<double>(grid.replicas.size());
    double depth = grid.depth();
    double all = 0, slowest = std::numeric_limits<double>::infinity();
    for (const Shapes &shapes : grid.replicas) {
      double rate = 0, least = std::numeric_limits<double>::infinity();
      for (unsigned shape : shapes) {
        double own = rates[shape];
        rate += own;
        least = std::min(least, own);
      }
      if (!rules.balances_layers)
        rate = least * depth;
      all += rate;
      slowest = std::min(slowest, rate);
    }
    double exchange =
        2 *
        costs.syncSeconds({0, unsigned(costs.units().units.size()),
                           grid.replicas.front().front(), grid.microbatch_size},
                          grid.replicas.size());
    double fill = (depth - 1) * replicas;
    return (rules.balances_batch ? (count + fill) / all
                                 : (count + fill) / (replicas * slowest)) +
           exchange / depth;
  }

  void judgeGrid(const Grid &grid) {
    int64_t replicas = grid.replicas.size();
    LayerChain::Query query;
    query.microbatch_size = grid.microbatch_size;
    query.replicas = replicas;
    query.owned =
        options.state_owner == "spread" ? 1 / static_cast<double>(replicas) : 1;
    query.microbatches = std::max<int64_t>(
        1, options.global_batch / (grid.microbatch_size * replicas));
    if (rules.balances_layers) {
      if (auto cuts = solveStagesByDynamicProgram(problemOf(grid, query)))
        judgeCuts(grid, query, *cuts);
      return;
    }
    judgeCuts(grid, query, chain.equalCuts(grid.depth(), true));
    if (chain.layerCount() % grid.depth())
      judgeCuts(grid, query, chain.equalCuts(grid.depth(), false));
  }

  // One cut for all: a stage takes what its replicas do on average, and must
  // fit into each.
  StageProblem problemOf(const Grid &grid, LayerChain::Query query) {
    std::map<Shapes, size_t> makes;
    for (const Shapes &shapes : grid.replicas)
      ++makes[shapes];
    StageProblem result;
    std::vector<StageProblem> problems;
    for (const auto &[shapes, count] : makes) {
      query.shapes = shapes;
      problems.push_back(chain.problem(query));
      double part = static_cast<double>(count) /
                    static_cast<double>(grid.replicas.size());
      if (problems.size() == 1)
        result = problems[0];
      for (auto [worker, row] : llvm::enumerate(result.seconds))
        for (auto [layer, seconds] : llvm::enumerate(row))
          seconds = (problems.size() == 1 ? 0 : seconds) +
                    part * problems.back().seconds[worker][layer];
      for (auto [worker, row] : llvm::enumerate(result.transfers))
        for (auto [layer, seconds] : llvm::enumerate(row)) {
          const PassSeconds &other = problems.back().transfers[worker][layer];
          seconds.forward_s = std::max(seconds.forward_s, other.forward_s);
          seconds.backward_s = std::max(seconds.backward_s, other.backward_s);
        }
    }
    result.memory = [problems](unsigned worker, unsigned begin, unsigned end) {
      double most = 0;
      for (const StageProblem &problem : problems)
        most = std::max(most, problem.memory(worker, begin, end));
      return most;
    };
    return result;
  }

  void judgeCuts(const Grid &grid, LayerChain::Query query,
                 const StageCuts &cuts) {
    TemplateMix mix;
    for (const Shapes &shapes : grid.replicas) {
      query.shapes = shapes;
      Template made = chain.makeTemplate(query, cuts);
      if (!chain.fits(made, query.owned))
        return;
      if (!mix.empty() && mix.back().made.isSame(made))
        ++mix.back().replicas;
      else
        mix.push_back({std::move(made), 1});
    }
    std::optional<int64_t> equal;
    if (!rules.balances_batch)
      equal = query.microbatches;
    judgeReplicas(mix, equal, judge);
  }

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  GridRules rules;
  LayerChain chain;
  size_t most;
  Deadline searchEnd; ///< of grids
  std::map<int64_t, std::vector<double>> knownRates;
  std::vector<Grid> grids;
  double worst_s = std::numeric_limits<double>::infinity(); ///< of those kept
};

} // namespace

void searchGrids(Judge &judge, const GridRules &rules) {
  GridSearch(judge, rules).run();
}

} // namespace autohet
