//===- KindPipelineProblem.cpp - one kind of device a stage ---------------===//

#include "autohet/Planner/KindPipelineProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace autohet {

using Run = KindPipeline::Run;
using Runs = std::vector<Run>;

static constexpr double never = std::numeric_limits<double>::infinity();
// Combinations of extents and numbers of stages that are all looked at.
static constexpr size_t fewCombinations = 20000;

std::string KindPipelineProblem::check() const {
  if (kinds.empty() || layers < 1 || microbatches < 1)
    return "no kinds, layers or microbatches";
  for (const Kind &kind : kinds)
    for (const Extent &extent : kind.extents)
      if (!(extent.layer_s >= 0) || !std::isfinite(extent.layer_s) ||
          !extent.most_layers || extent.devices < 1)
        return "a kind's time or memory is unknown";
  return "";
}

std::vector<unsigned> KindPipelineProblem::order() const {
  std::vector<unsigned> order(kinds.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::make_pair(-kinds[a].memory, a) <
           std::make_pair(-kinds[b].memory, b);
  });
  return order;
}

static double layerSeconds(const KindPipelineProblem &problem, unsigned kind,
                           const Run &run) {
  const KindPipelineProblem::Extent &extent =
      problem.kinds[kind].extents[run.extent];
  return extent.layer_s + (run.recompute ? extent.recompute_s : 0);
}

/// Of the kind's first stage, which has the most microbatches in flight.
static unsigned stagesToTheEnd(const KindPipelineProblem &problem,
                               llvm::ArrayRef<Run> runs, unsigned kind) {
  unsigned stages = 0;
  bool isBehind = false;
  for (unsigned other : problem.order()) {
    isBehind |= other == kind;
    if (isBehind)
      stages += runs[other].stages;
  }
  return stages;
}

std::string verifyKindPipeline(const KindPipelineProblem &problem,
                               const KindPipeline &pipeline) {
  if (pipeline.runs.size() != problem.kinds.size())
    return "not one run a kind";
  if (pipeline.replicas < 1 || problem.microbatches % pipeline.replicas)
    return "the replicas do not divide the microbatches";
  unsigned layers = 0;
  for (auto [number, run] : llvm::enumerate(pipeline.runs)) {
    std::string kind = "kind " + std::to_string(number);
    layers += run.layers;
    if (run.stages == 0) {
      if (run.layers)
        return kind + " has layers and no stages";
      continue;
    }
    const KindPipelineProblem::Kind &data = problem.kinds[number];
    if (run.extent >= data.extents.size())
      return kind + " has no such extent";
    const KindPipelineProblem::Extent &extent = data.extents[run.extent];
    if (pipeline.replicas * run.stages > extent.most_rows)
      return kind + " has too few devices";
    if (run.layers < run.stages)
      return kind + " has stages without layers";
    if (run.recompute && !problem.allow_recompute)
      return kind + " computes forward twice";
    if (run.mostLayers() >
        extent.most_layers(stagesToTheEnd(problem, pipeline.runs, number),
                           run.recompute))
      return kind + " lacks memory";
  }
  return layers == problem.layers ? "" : "the layers are not all there";
}

double kindPipelineSeconds(const KindPipelineProblem &problem,
                           const KindPipeline &pipeline) {
  double sum = 0, longest = 0;
  for (auto [kind, run] : llvm::enumerate(pipeline.runs))
    if (run.stages)
      sum += run.layers * layerSeconds(problem, kind, run);
  double each = static_cast<double>(problem.microbatches) /
                static_cast<double>(pipeline.replicas);
  for (auto [kind, run] : llvm::enumerate(pipeline.runs)) {
    if (!run.stages)
      continue;
    double stage = run.mostLayers() * layerSeconds(problem, kind, run);
    longest =
        std::max(longest, each * stage +
                              problem.kinds[kind].extents[run.extent].update_s +
                              problem.alpha * (sum - stage));
  }
  return longest;
}

//===-- Layers ------------------------------------------------------------===//

namespace {

/// Kinds whose recomputation is decided: layers for the rest of the choice.
class LayerSpreader {
public:
  LayerSpreader(const KindPipelineProblem &problem, KindPipeline start)
      : problem(problem), pipeline(std::move(start)) {
    for (unsigned kind = 0; kind < pipeline.runs.size(); ++kind) {
      Run &run = pipeline.runs[kind];
      most.push_back(0);
      run.layers = 0;
      if (!run.stages)
        continue;
      most.back() = problem.kinds[kind].extents[run.extent].most_layers(
          stagesToTheEnd(problem, pipeline.runs, kind), run.recompute);
      used.push_back(kind);
    }
    llvm::sort(used, [&](unsigned a, unsigned b) {
      return std::make_pair(secondsOf(a), a) < std::make_pair(secondsOf(b), b);
    });
  }

  // T is alpha times all stages' time, and the longest stage's own part on top.
  // With a limit on that part, quick kinds take what they can; limits worth
  // trying are those of whole numbers of layers of a kind.
  std::optional<KindPipeline> run() {
    std::optional<KindPipeline> best;
    for (unsigned kind : used)
      for (unsigned count = 1; count <= std::min(most[kind], problem.layers);
           ++count) {
        if (!fill(ownPart(kind, count)))
          continue;
        pipeline.seconds = kindPipelineSeconds(problem, pipeline);
        if (!best || pipeline.seconds < best->seconds)
          best = pipeline;
      }
    return best;
  }

private:
  double secondsOf(unsigned kind) const {
    return layerSeconds(problem, kind, pipeline.runs[kind]);
  }

  double ownPart(unsigned kind, unsigned count) const {
    double each = static_cast<double>(problem.microbatches) /
                  static_cast<double>(pipeline.replicas);
    return (each - problem.alpha) * count * secondsOf(kind) +
           problem.kinds[kind].extents[pipeline.runs[kind].extent].update_s;
  }

  bool fill(double limit_s) {
    unsigned left = problem.layers;
    for (unsigned kind : used) {
      Run &run = pipeline.runs[kind];
      run.layers = run.stages; // one each
      if (run.stages > left || most[kind] < 1 || ownPart(kind, 1) > limit_s)
        return false;
      left -= run.stages;
    }
    for (unsigned kind : used) {
      Run &run = pipeline.runs[kind];
      unsigned stage = 1;
      while (stage < most[kind] && run.stages * (stage - 1) < left &&
             ownPart(kind, stage + 1) <= limit_s)
        ++stage;
      unsigned more = std::min(left, (stage - 1) * run.stages);
      run.layers += more;
      left -= more;
    }
    return left == 0;
  }

  const KindPipelineProblem &problem;
  KindPipeline pipeline;
  std::vector<unsigned> most, used;
};

} // namespace

std::optional<KindPipeline> spreadLayers(const KindPipelineProblem &problem,
                                         int64_t replicas,
                                         llvm::ArrayRef<Run> runs) {
  std::optional<KindPipeline> best;
  size_t choices = problem.allow_recompute ? size_t(1) << runs.size() : 1;
  for (size_t choice = 0; choice < choices; ++choice) {
    KindPipeline start;
    start.replicas = replicas;
    start.runs = runs.vec();
    bool isMeant = true;
    for (auto [kind, run] : llvm::enumerate(start.runs)) {
      run.recompute = choice >> kind & 1;
      isMeant &= run.stages || !run.recompute;
    }
    if (!isMeant)
      continue;
    std::optional<KindPipeline> found =
        LayerSpreader(problem, std::move(start)).run();
    if (found && (!best || found->seconds < best->seconds))
      best = std::move(found);
  }
  return best;
}

//===-- Replicas, extents and stages --------------------------------------===//

namespace {

class KindPipelineSearch {
public:
  KindPipelineSearch(const KindPipelineProblem &problem, size_t wanted)
      : problem(problem), wanted(wanted) {}

  std::vector<KindPipeline> run() {
    int64_t most = 0;
    for (const KindPipelineProblem::Kind &kind : problem.kinds)
      for (const KindPipelineProblem::Extent &extent : kind.extents)
        most += extent.most_rows;
    for (replicas = 1; replicas <= std::min(most, problem.microbatches);
         ++replicas) {
      if (problem.microbatches % replicas)
        continue;
      isExhaustive = combinations() <= fewCombinations;
      Runs runs(problem.kinds.size());
      choose(0, 0, runs);
    }
    return std::move(found);
  }

private:
  unsigned mostStages(unsigned kind, unsigned extent) const {
    return std::min<int64_t>(problem.layers,
                             problem.kinds[kind].extents[extent].most_rows /
                                 replicas);
  }

  size_t combinations() const {
    double all = 1;
    for (unsigned kind = 0; kind < problem.kinds.size(); ++kind) {
      double here = 1;
      for (unsigned extent = 0; extent < problem.kinds[kind].extents.size();
           ++extent)
        here += mostStages(kind, extent);
      all *= here;
    }
    return static_cast<size_t>(std::min(all, 1e15));
  }

  void choose(unsigned kind, unsigned stages, Runs &runs) {
    if (problem.deadline.isOver())
      return;
    if (kind == problem.kinds.size()) {
      if (stages == 0 || stages > problem.layers)
        return;
      if (isExhaustive)
        consider(runs);
      else
        climb(runs);
      return;
    }
    runs[kind] = Run();
    choose(kind + 1, stages, runs);
    for (unsigned extent = 0; extent < problem.kinds[kind].extents.size();
         ++extent) {
      unsigned most = mostStages(kind, extent);
      for (unsigned count = isExhaustive ? 1 : std::max(1u, most);
           count <= most; ++count) {
        runs[kind].extent = extent;
        runs[kind].stages = count;
        choose(kind + 1, stages + count, runs);
      }
      runs[kind] = Run();
    }
  }

  double consider(const Runs &runs) {
    std::optional<KindPipeline> made = spreadLayers(problem, replicas, runs);
    if (!made)
      return never;
    double seconds = made->seconds;
    if (found.size() < wanted || seconds < found.back().seconds) {
      auto place = llvm::find_if(found, [&](const KindPipeline &other) {
        return seconds < other.seconds;
      });
      found.insert(place, std::move(*made));
      if (found.size() > wanted)
        found.pop_back();
    }
    return seconds;
  }

  // Fewer stages of a kind, while that helps: by halves, then one by one.
  void climb(Runs runs) {
    double best = consider(runs);
    for (bool helped = true; helped;) {
      helped = false;
      for (unsigned kind = 0; kind < runs.size() && !problem.deadline.isOver();
           ++kind)
        for (unsigned count : {runs[kind].stages / 2, runs[kind].stages - 1}) {
          if (runs[kind].stages < 2 || count == runs[kind].stages)
            continue;
          Runs fewer = runs;
          fewer[kind].stages = count;
          double seconds = consider(fewer);
          if (seconds >= best)
            continue;
          best = seconds;
          runs = std::move(fewer);
          helped = true;
        }
    }
  }

  const KindPipelineProblem &problem;
  size_t wanted;
  int64_t replicas = 1;
  bool isExhaustive = true;
  std::vector<KindPipeline> found;
};

} // namespace

std::vector<KindPipeline> solveKindPipeline(const KindPipelineProblem &problem,
                                            size_t wanted) {
  assert(problem.check().empty() && "check() the input first");
  return KindPipelineSearch(problem, wanted).run();
}

//===-- Brute force -------------------------------------------------------===//

namespace {

void tryAllRuns(const KindPipelineProblem &problem, unsigned kind,
                KindPipeline &pipeline, std::optional<KindPipeline> &best) {
  if (kind == problem.kinds.size()) {
    if (!verifyKindPipeline(problem, pipeline).empty())
      return;
    pipeline.seconds = kindPipelineSeconds(problem, pipeline);
    if (!best || pipeline.seconds < best->seconds)
      best = pipeline;
    return;
  }
  pipeline.runs[kind] = Run();
  tryAllRuns(problem, kind + 1, pipeline, best);
  for (unsigned extent = 0; extent < problem.kinds[kind].extents.size();
       ++extent)
    for (unsigned stages = 1; pipeline.replicas * stages <=
                              problem.kinds[kind].extents[extent].most_rows;
         ++stages)
      for (unsigned layers = stages; layers <= problem.layers; ++layers)
        for (bool recompute : {false, true}) {
          pipeline.runs[kind] = {extent, stages, layers, recompute};
          tryAllRuns(problem, kind + 1, pipeline, best);
        }
  pipeline.runs[kind] = Run();
}

} // namespace

std::optional<KindPipeline>
solveKindPipelineByBruteForce(const KindPipelineProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  std::optional<KindPipeline> best;
  for (int64_t replicas = 1; replicas <= problem.microbatches; ++replicas) {
    if (problem.microbatches % replicas)
      continue;
    KindPipeline pipeline;
    pipeline.replicas = replicas;
    pipeline.runs.resize(problem.kinds.size());
    tryAllRuns(problem, 0, pipeline, best);
  }
  return best;
}

} // namespace autohet
