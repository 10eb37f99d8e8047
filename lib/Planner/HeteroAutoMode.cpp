//===- HeteroAutoMode.cpp - one kind of device a stage --------------------===//
//
// H2's planner (arXiv 2505.17548): all replicas are one pipeline, in which each
// kind of device has a run of stages with a tensor-parallel extent of its own;
// the kind with the most memory comes first. KindPipelineProblem finds the
// pipelines that its formula likes best, the judge decides between them.
//
//===----------------------------------------------------------------------===//

#include "JointSearch.h"
#include "LayerChain.h"
#include "ModeSearch.h"
#include "autohet/Planner/KindPipelineProblem.h"

#include "llvm/ADT/STLExtras.h"

namespace autohet {
namespace {

// Pipelines of each microbatch size that are judged.
constexpr size_t maxJudgedPipelines = 6;

class HeteroAutoSearch {
public:
  explicit HeteroAutoSearch(Judge &judge)
      : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
        chain(costs, judge.deadline()) {}

  void run() {
    std::vector<int64_t> sizes = microbatchSizes(options);
    llvm::erase_if(sizes,
                   [&](int64_t size) { return options.global_batch % size; });
    for (auto [number, size] : llvm::enumerate(sizes)) {
      if (judge.isLate())
        break;
      KindPipelineProblem problem = problemFor(size);
      problem.deadline =
          judge.deadline().part(1 / static_cast<double>(sizes.size() - number));
      if (problem.kinds.empty())
        continue;
      for (const KindPipeline &pipeline : solveKindPipeline(
               problem, candidatesToJudge(maxJudgedPipelines, costs)))
        if (!judge.mustEnd())
          judgePipeline(problem, pipeline, size);
    }
  }

private:
  /// [class]
  KindPipelineProblem problemFor(int64_t size) {
    KindPipelineProblem problem;
    problem.layers = chain.layerCount();
    problem.microbatches = options.global_batch / size;
    problem.allow_recompute = options.allow_recompute;
    shapes.assign(costs.classes().size(), {});
    problem.kinds.resize(costs.classes().size());
    for (auto [index, machine] : llvm::enumerate(costs.classes().classes())) {
      problem.kinds[index].devices = machine.devices.size();
      problem.kinds[index].memory = costs.memoryRoom(machine.devices.front());
    }
    for (unsigned extent : chain.extents())
      for (const RowKind &row : chain.rows(extent, options.max_devices)) {
        shapes[row.machine_class].push_back(row.shape);
        problem.kinds[row.machine_class].extents.push_back(
            extentOf(row, extent, size));
      }
    return problem;
  }

  KindPipelineProblem::Extent extentOf(const RowKind &row, unsigned extent,
                                       int64_t size) {
    KindPipelineProblem::Extent made;
    made.devices = extent;
    made.most_rows = row.count;
    // Layers in the middle speak for all.
    unsigned middle = chain.layerCount() / 2;
    made.layer_s = chain.layerSeconds(row.shape, middle, size);
    for (unsigned unit = chain.beginOf(middle);
         unit < chain.beginOf(middle + 1); ++unit)
      made.recompute_s += costs.unitSeconds(row.shape, unit, size).forward_s;
    // Depths and recomputation that were asked for before.
    auto known =
        std::make_shared<std::map<std::pair<unsigned, bool>, unsigned>>();
    made.most_layers = [this, row, size, known](unsigned depth,
                                                bool recompute) -> unsigned {
      auto [entry, isNew] = known->try_emplace({depth, recompute});
      if (isNew)
        entry->second = mostLayers(row.shape, size, depth, recompute);
      return entry->second;
    };
    return made;
  }

  // The first and the last layers need most: they bring embedding and head.
  unsigned mostLayers(unsigned shape, int64_t size, unsigned depth,
                      bool recompute) const {
    unsigned low = 0, high = chain.layerCount() + 1;
    auto fits = [&](unsigned begin, unsigned end) {
      return costs.mostInFlight({chain.beginOf(begin), chain.beginOf(end),
                                 shape, size,
                                 recompute ? Keeping::Inputs : Keeping::All},
                                0) >= static_cast<int64_t>(depth);
    };
    unsigned all = chain.layerCount();
    while (high - low > 1) {
      unsigned middle = low + (high - low) / 2;
      unsigned begin = (all - middle) / 2;
      (fits(begin, begin + middle) ? low : high) = middle;
    }
    return low;
  }

  void judgePipeline(const KindPipelineProblem &problem,
                     const KindPipeline &pipeline, int64_t size) {
    LayerChain::Query query;
    query.microbatch_size = size;
    query.replicas = pipeline.replicas;
    query.microbatches = problem.microbatches / pipeline.replicas;
    query.owned = options.state_owner == "spread"
                      ? 1 / static_cast<double>(pipeline.replicas)
                      : 1;
    StageCuts cuts;
    llvm::SmallVector<bool> again;
    for (unsigned kind : problem.order()) {
      const KindPipeline::Run &run = pipeline.runs[kind];
      for (unsigned stage = 0; stage < run.stages; ++stage) {
        query.shapes.push_back(shapes[kind][run.extent]);
        again.push_back(run.recompute);
        // Longer stages last: the first ones hold the embedding and more
        // microbatches.
        unsigned own = (run.layers + stage) / run.stages;
        cuts.push_back((cuts.empty() ? 0 : cuts.back()) + own);
      }
    }
    Template made = chain.makeTemplate(query, cuts, again);
    if (chain.fits(made, query.owned)) {
      judgeReplicas({{std::move(made), pipeline.replicas}}, query.microbatches,
                    judge);
      return;
    }
    // Embedding or head, or the state, are too much: cut anew for the same
    // devices.
    if (llvm::is_contained(again, true))
      return;
    if (auto other = solveStagesByDynamicProgram(chain.problem(query)))
      judgeReplicas({{chain.makeTemplate(query, *other), pipeline.replicas}},
                    query.microbatches, judge);
  }

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  LayerChain chain;
  std::vector<std::vector<unsigned>> shapes; ///< [class][extent]
};

} // namespace

void searchHeteroAuto(Judge &judge) { HeteroAutoSearch(judge).run(); }

} // namespace autohet
