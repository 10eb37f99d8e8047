//===- CephaloMode.cpp - every device a replica with its own batch --------===//
//
// Cephalo (arXiv 2411.01075) trains data-parallel on unlike devices: each has a
// microbatch size and a number of microbatches of its own
// (ShardedBatchProblem). Its sharded parameters, which make room for models
// that no device holds, are nothing that a plan here can say: every device
// holds the model, and only the optimizer's state is spread, evenly or by room.
//
//===----------------------------------------------------------------------===//

#include "JointSearch.h"
#include "LayerChain.h"
#include "ModeSearch.h"
#include "StateByRoom.h"
#include "autohet/Planner/ShardedBatchProblem.h"

#include "llvm/ADT/STLExtras.h"

namespace autohet {
namespace {

// The exact solver takes devices times batch times batch steps a limit.
constexpr double mostExactWork = 1.6e7;
// Of what is left of a deadline, for the exact solver.
constexpr double exactPart = 0.5;

/// Devices that hold the model.
struct Holders {
  RowKind row;
  int64_t most = 0; ///< samples of a microbatch
  int64_t microbatch_size = 1;
};

class CephaloSearch {
public:
  explicit CephaloSearch(Judge &judge)
      : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
        chain(costs, judge.deadline()) {}

  void run() {
    findHolders();
    if (holders.empty())
      return;
    double batch = static_cast<double>(options.global_batch);
    // Where one size was asked for there is nothing to solve.
    if (!options.microbatch_size &&
        static_cast<double>(replicas) * batch * batch <= mostExactWork)
      solveExactly();
    if (judge.mustEnd())
      return;
    climb();
  }

private:
  // Fewer holders have more of the optimizer's state each: until none drops
  // out.
  void findHolders() {
    std::vector<RowKind> rows = chain.rows(1, options.max_devices);
    for (bool isStable = false; !isStable;) {
      replicas = 0;
      for (const RowKind &row : rows)
        replicas += row.count;
      isStable = true;
      llvm::erase_if(rows, [&](const RowKind &row) {
        bool isTooSmall = mostSamples(row) < 1;
        isStable &= !isTooSmall;
        return isTooSmall;
      });
    }
    // Each takes a sample at least: the slowest ones stay idle.
    while (replicas > options.global_batch) {
      int64_t excess = replicas - options.global_batch;
      int64_t less = std::min<int64_t>(excess, rows.back().count);
      rows.back().count -= less;
      replicas -= less;
      if (rows.back().count == 0)
        rows.pop_back();
    }
    for (const RowKind &row : rows)
      holders.push_back({row, mostSamples(row)});
  }

  int64_t mostSamples(const RowKind &row) const {
    double owned = options.state_owner != "spread" ? 1
                   : judge.shares_state && replicas > 1
                       ? 0
                       : 1 / static_cast<double>(replicas);
    unsigned units = costs.units().units.size();
    int64_t most = 0;
    for (int64_t size : microbatchSizes(options))
      if (costs.mostInFlight({0, units, row.shape, size}, owned) >= 1)
        most = std::max(most, size);
    return most;
  }

  void solveExactly() {
    ShardedBatchProblem problem;
    problem.global_batch = options.global_batch;
    problem.switch_s = 0;
    problem.uneven_factor = 1;
    problem.computes_forward_twice = false;
    problem.usable = 1;
    problem.deadline = judge.deadline().part(exactPart);
    std::vector<const Holders *> owners;
    for (const Holders &holder : holders)
      for (unsigned i = 0; i < holder.row.count; ++i) {
        ShardedBatchProblem::Device device;
        // What fits was looked up: sizes up to it need nothing, others all.
        device.capacity_bytes = 1;
        device.compute_bytes = [&](int64_t size) {
          return size > holder.most ? 2.0 : 0.0;
        };
        device.forward_s = [](int64_t) { return 0.0; };
        device.backward_s = [&](int64_t size) {
          return chain.modelSeconds(holder.row.shape, size);
        };
        problem.devices.push_back(std::move(device));
        owners.push_back(&holder);
      }
    std::optional<ShardedBatch> batch = solveShardedBatch(problem);
    if (!batch)
      return;
    TemplateMix mix;
    for (auto [owner, share] : llvm::zip_equal(owners, batch->shares))
      add(mix, *owner, share.microbatch_size, 1);
    judgeReplicas(mix, std::nullopt, judge);
  }

  void add(TemplateMix &mix, const Holders &holder, int64_t size,
           int64_t count) const {
    LayerChain::Query query;
    query.shapes = {holder.row.shape};
    query.microbatch_size = size;
    query.replicas = replicas;
    mix.push_back({chain.makeTemplate(query, {chain.layerCount()}), count});
  }

  // One size a kind, each changed while that helps.
  void climb() {
    std::vector<int64_t> sizes = microbatchSizes(options);
    auto judgeSizes = [&] {
      double before = judge.bestSeconds();
      TemplateMix mix;
      for (const Holders &holder : holders)
        add(mix, holder, holder.microbatch_size, holder.row.count);
      judgeReplicas(mix, std::nullopt, judge);
      return judge.bestSeconds() < before;
    };
    for (Holders &holder : holders)
      holder.microbatch_size = sizes.front();
    judgeSizes();
    for (bool helped = true; helped && !judge.isLate();) {
      helped = false;
      for (Holders &holder : holders)
        for (int64_t size : sizes) {
          if (size > holder.most || size == holder.microbatch_size)
            continue;
          if (judge.isLate())
            return;
          int64_t before = holder.microbatch_size;
          holder.microbatch_size = size;
          if (judgeSizes())
            helped = true;
          else
            holder.microbatch_size = before;
        }
    }
  }

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  LayerChain chain;
  std::vector<Holders> holders; ///< from the quickest on
  int64_t replicas = 0;
};

} // namespace

// State by room lets devices have larger microbatches than equal parts do, but
// not all plans that it promises find room for all of the state.
void searchCephalo(Judge &judge) {
  searchStateParts(judge, [&] { CephaloSearch(judge).run(); });
}

} // namespace autohet
