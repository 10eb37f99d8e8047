//===- LayerChain.cpp - what other planners cut: whole layers -------------===//

#include "LayerChain.h"
#include "ModeSearch.h"
#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/STLExtras.h"
#include <numeric>
#include <set>

namespace autohet {

LayerChain::LayerChain(const PlanCosts &costs, Deadline deadline)
    : costs(costs), deadline(std::move(deadline)),
      unitCount(costs.units().units.size()) {
  ModelLayers found = findLayers(costs.units());
  for (const std::vector<unsigned> &layer : found.layers)
    begins.push_back(layer.front());
  // A model without layers is cut between its units.
  if (begins.empty()) {
    begins.resize(unitCount);
    std::iota(begins.begin(), begins.end(), 0);
  }
  begins.front() = 0;
}

const std::vector<double> &LayerChain::secondsOf(unsigned shape,
                                                 int64_t microbatchSize) {
  auto [entry, isNew] = known.try_emplace({shape, microbatchSize});
  std::vector<double> &seconds = entry->second;
  if (isNew)
    for (unsigned layer = 0; layer < layerCount(); ++layer) {
      double sum = 0;
      for (unsigned unit = beginOf(layer); unit < beginOf(layer + 1); ++unit)
        sum += costs.unitSeconds(shape, unit, microbatchSize).total();
      seconds.push_back(sum);
    }
  return seconds;
}

double LayerChain::layerSeconds(unsigned shape, unsigned layer,
                                int64_t microbatchSize) {
  return secondsOf(shape, microbatchSize)[layer];
}

double LayerChain::modelSeconds(unsigned shape, int64_t microbatchSize) {
  const std::vector<double> &seconds = secondsOf(shape, microbatchSize);
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

std::vector<RowKind> LayerChain::rows(unsigned extent,
                                      std::optional<unsigned> maxDevices) {
  std::vector<RowKind> result;
  for (auto [number, shape] : llvm::enumerate(costs.shapes())) {
    if (shape.parts.size() != 1 || shape.deviceCount() != extent)
      continue;
    unsigned index = shape.parts[0].machine_class;
    const MachineClass &machine = costs.classes()[index];
    // Nodes of a make have equally many of its devices.
    unsigned nodes = machine.devices.size() / machine.per_node;
    result.push_back(
        {unsigned(number), index, nodes * (machine.per_node / extent)});
  }
  llvm::sort(result, [&](const RowKind &a, const RowKind &b) {
    return std::make_pair(modelSeconds(a.shape, 1), a.shape) <
           std::make_pair(modelSeconds(b.shape, 1), b.shape);
  });
  unsigned left =
      maxDevices ? *maxDevices / extent : std::numeric_limits<unsigned>::max();
  for (RowKind &row : result) {
    row.count = std::min(row.count, left);
    left -= row.count;
  }
  llvm::erase_if(result, [](const RowKind &row) { return row.count == 0; });
  return result;
}

std::vector<unsigned> LayerChain::extents() const {
  std::set<unsigned> found;
  for (const StageShape &shape : costs.shapes())
    if (shape.parts.size() == 1)
      found.insert(shape.deviceCount());
  return {found.begin(), found.end()};
}

StageProblem LayerChain::problem(const Query &query) {
  StageProblem problem;
  problem.deadline = deadline;
  unsigned workers = query.shapes.size();
  problem.unit_count = layerCount();
  problem.microbatches = query.microbatches;
  for (auto [worker, shape] : llvm::enumerate(query.shapes)) {
    problem.seconds.push_back(secondsOf(shape, query.microbatch_size));
    problem.in_flight.push_back(
        costs.hasBackward()
            ? std::min<int64_t>(workers - worker, query.microbatches)
            : 0);
    if (worker + 1 == workers)
      break;
    std::vector<PassSeconds> &row = problem.transfers.emplace_back();
    unsigned here = costs.shapes()[shape].mainClass();
    unsigned next = costs.shapes()[query.shapes[worker + 1]].mainClass();
    row.emplace_back(); // nothing is sent before the first layer
    for (unsigned layer = 1; layer < layerCount(); ++layer)
      row.push_back(costs.transferSeconds(here, next, beginOf(layer),
                                          query.microbatch_size));
  }
  // 1 where too few microbatches fit, of which 0 are allowed.
  problem.memory_limits.assign(workers, 0.5);
  problem.memory = [this, query, workers](unsigned worker, unsigned begin,
                                          unsigned end) -> double {
    int64_t depth = std::min<int64_t>(workers - worker, query.microbatches);
    return costs.mostInFlight({beginOf(begin), beginOf(end),
                               query.shapes[worker], query.microbatch_size},
                              query.owned) < depth;
  };
  return problem;
}

StageCuts LayerChain::equalCuts(unsigned stages, bool isFirstLonger) const {
  llvm::SmallVector<int64_t> sizes = splitExtentEvenly(layerCount(), stages);
  if (!isFirstLonger)
    std::reverse(sizes.begin(), sizes.end());
  StageCuts cuts;
  for (int64_t size : sizes)
    cuts.push_back((cuts.empty() ? 0 : cuts.back()) + size);
  return cuts;
}

Template LayerChain::makeTemplate(const Query &query, const StageCuts &cuts,
                                  llvm::ArrayRef<bool> recompute) const {
  Template made;
  made.microbatch_size = query.microbatch_size;
  unsigned begin = 0;
  for (auto [stage, end] : llvm::enumerate(cuts)) {
    made.stages.push_back({beginOf(begin), beginOf(end), query.shapes[stage],
                           !recompute.empty() && recompute[stage]
                               ? Keeping::Inputs
                               : Keeping::All});
    begin = end;
  }
  TemplateSpace space = {costs, {query.microbatch_size}};
  space.allow_recompute = !recompute.empty();
  space.min_replicas = space.max_replicas = query.replicas;
  measureTemplate(made, space);
  return made;
}

bool LayerChain::fits(const Template &made, double owned) const {
  TemplateSpace space = {costs, {made.microbatch_size}};
  space.allow_recompute = true;
  return checkTemplate(made, space, owned).empty();
}

size_t candidatesToJudge(size_t few, const PlanCosts &costs) {
  constexpr size_t manyDevices = 128, least = 4;
  size_t devices = costs.machines().devices().size();
  if (devices <= manyDevices)
    return few;
  return std::max(least, few * manyDevices / devices);
}

void judgeReplicas(const TemplateMix &mix, std::optional<int64_t> microbatches,
                   Judge &judge) {
  std::vector<ReplicaLine> lines;
  for (const CountedTemplate &entry : mix)
    lines.insert(lines.end(), entry.replicas,
                 {entry.made.pace_s, entry.made.way_s, entry.made.rest_s});
  bool hasPipeline = llvm::any_of(mix, [](const CountedTemplate &entry) {
    return entry.made.stages.size() > 1;
  });
  for (PlacementOrder order :
       {PlacementOrder::ByReplica, PlacementOrder::ByStage}) {
    // Without stages both are one.
    if (order == PlacementOrder::ByStage && !hasPipeline)
      break;
    std::optional<ResolvedPlan> plan =
        placeTemplates(mix, judge.planCosts(), order);
    if (!plan)
      plan = placeTemplates(mix, judge.planCosts(), PlacementOrder::BySize);
    if (!plan)
      continue;
    if (!microbatches) {
      judge.considerCounts(std::move(*plan), lines);
      continue;
    }
    for (ResolvedReplica &replica : plan->replicas)
      replica.microbatches = *microbatches;
    judge.consider(*plan);
  }
}

} // namespace autohet
