//===- AutoHetMode.cpp - groups by effective power, then mapping and cuts -===//
//
// AutoHet (arXiv 2512.20953) keeps one tensor-parallel extent for the whole
// job. Rows of that extent are grouped into replicas by effective computing
// power (GroupingProblem), slow rows get the early stages of their replica and
// fast ones the late, and layers are cut so that the longest stage is shortest.
// Candidates of several extents, microbatch sizes and numbers of replicas are
// judged, as the paper's planner does with its cost model.
//
//===----------------------------------------------------------------------===//

#include "JointSearch.h"
#include "LayerChain.h"
#include "ModeSearch.h"
#include "autohet/Planner/GroupingProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {
namespace {

// Of all groupings, so many of the most promising ones are cut and judged; of
// each objective.
constexpr size_t maxJudgedGroupings = 32;

// Up to so many replicas, any number of them is tried where counts are free.
constexpr unsigned maxFreeGroups = 32;

struct Candidate {
  std::vector<RowKind> rows;
  GroupingProblem problem;
  Grouping grouping;
  int64_t microbatch_size = 1;
  double estimate_s = 0;
};

class AutoHetSearch {
public:
  AutoHetSearch(Judge &judge, const AutoHetRules &rules)
      : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
        rules(rules), chain(costs, judge.deadline()) {}

  void run() {
    for (auto objective : {GroupingProblem::Objective::SlowestGroup,
                           GroupingProblem::Objective::SumOfGroups}) {
      if (objective == GroupingProblem::Objective::SumOfGroups &&
          !rules.frees_counts)
        break;
      candidates.clear();
      // Half of the time is for looking at them more closely.
      searchEnd = judge.deadline().part(
          objective == GroupingProblem::Objective::SlowestGroup ? 0.25 : 0.5);
      for (unsigned extent : chain.extents())
        for (int64_t size : microbatchSizes(options))
          addCandidates(extent, size, objective);
      llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
        return std::tie(a.estimate_s, a.microbatch_size, a.grouping) <
               std::tie(b.estimate_s, b.microbatch_size, b.grouping);
      });
      size_t most = candidatesToJudge(maxJudgedGroupings, costs);
      for (auto [number, candidate] : llvm::enumerate(candidates)) {
        if (number >= most || judge.mustEnd())
          break;
        judgeCandidate(candidate);
      }
    }
  }

private:
  void addCandidates(unsigned extent, int64_t size,
                     GroupingProblem::Objective objective) {
    Candidate candidate;
    candidate.rows = chain.rows(extent, options.max_devices);
    candidate.microbatch_size = size;
    GroupingProblem &problem = candidate.problem;
    problem.deadline = searchEnd;
    problem.objective = objective;
    problem.microbatches = options.global_batch / size;
    problem.max_depth = chain.layerCount();
    unsigned rowCount = 0;
    for (const RowKind &row : candidate.rows) {
      double memory = 0;
      for (unsigned i = 0; i < extent; ++i)
        memory += costs.memoryRoom(
            costs.classes()[row.machine_class].devices.front());
      problem.kinds.push_back(
          {row.count, 1 / chain.modelSeconds(row.shape, size), memory});
      rowCount += row.count;
    }
    bool isEqual = objective == GroupingProblem::Objective::SlowestGroup;
    if (isEqual && options.global_batch % size)
      return;
    for (unsigned groups = 1; groups <= rowCount && !searchEnd.isOver();
         ++groups) {
      problem.groups = groups;
      // Of many groups only numbers that divide the batch, whatever counts.
      if (!problem.check().empty() ||
          (groups > maxFreeGroups && problem.microbatches % groups))
        continue;
      problem.least_memory = leastMemory(groups, size);
      std::optional<Grouping> grouping =
          rules.groups ? findGrouping(problem) : inFileOrder(problem);
      if (!grouping)
        continue;
      // Each replica takes K / E, all of it if counts are free.
      candidate.estimate_s =
          static_cast<double>(problem.microbatches) / problem.value(*grouping);
      candidate.estimate_s += 2 * exchangeSeconds(candidate, *grouping);
      candidate.grouping = std::move(*grouping);
      candidates.push_back(candidate);
    }
  }

  // Of the whole model: what its parameters need, and a microbatch.
  double leastMemory(unsigned groups, int64_t size) const {
    double parameters = 0, trained = 0, activations = 0;
    for (const UnitParameter &parameter : costs.units().parameters) {
      parameters += parameter.bytes;
      trained += parameter.trained ? parameter.bytes : 0;
    }
    for (const Unit &unit : costs.units().units)
      activations += unit.activations.all * static_cast<double>(size);
    double owned = options.state_owner == "spread" ? 1.0 / groups : 1;
    if (costs.optimizerKind() != OptimizerKind::None)
      parameters +=
          trained * (1 + stateBytesPerByte(costs.optimizerKind()) * owned);
    return parameters + activations;
  }

  double exchangeSeconds(const Candidate &candidate,
                         const Grouping &grouping) const {
    double depth = 0;
    for (unsigned count : grouping.front())
      depth += count;
    return costs.syncSeconds({0, unsigned(costs.units().units.size()),
                              candidate.rows.front().shape,
                              candidate.microbatch_size},
                             grouping.size()) /
           depth;
  }

  // Equal numbers of rows, as they stand in the cluster file.
  static std::optional<Grouping> inFileOrder(const GroupingProblem &problem) {
    unsigned rows = 0;
    for (const GroupingProblem::Kind &kind : problem.kinds)
      rows += kind.count;
    if (rows % problem.groups)
      return std::nullopt;
    Grouping grouping(problem.groups, ClassCounts(problem.kinds.size()));
    unsigned placed = 0;
    for (auto [number, kind] : llvm::enumerate(problem.kinds))
      for (unsigned i = 0; i < kind.count; ++i, ++placed)
        ++grouping[placed / (rows / problem.groups)][number];
    if (!problem.verify(grouping).empty())
      return std::nullopt;
    return grouping;
  }

  void judgeCandidate(const Candidate &candidate) {
    const GroupingProblem &problem = candidate.problem;
    bool isEqual =
        problem.objective == GroupingProblem::Objective::SlowestGroup;
    LayerChain::Query query;
    query.microbatch_size = candidate.microbatch_size;
    query.replicas = problem.groups;
    query.owned = options.state_owner == "spread" ? 1.0 / problem.groups : 1;
    query.microbatches =
        std::max<int64_t>(1, problem.microbatches / problem.groups);
    Grouping groups = candidate.grouping;
    llvm::sort(groups);
    TemplateMix mix;
    for (size_t i = 0, end; i < groups.size(); i = end) {
      for (end = i; end < groups.size() && groups[end] == groups[i]; ++end)
        ;
      std::optional<Template> made = cutGroup(candidate, groups[i], query);
      if (!made)
        return;
      mix.push_back({std::move(*made), int64_t(end - i)});
    }
    std::optional<int64_t> equal;
    if (isEqual)
      equal = query.microbatches;
    judgeReplicas(mix, equal, judge);
  }

  std::optional<Template> cutGroup(const Candidate &candidate,
                                   const ClassCounts &group,
                                   LayerChain::Query query) {
    // Rows stand from the quickest to the slowest: the slowest get the first
    // stages.
    query.shapes.clear();
    for (auto [row, count] : llvm::zip_equal(candidate.rows, group))
      query.shapes.insert(query.shapes.end(), count, row.shape);
    if (rules.maps)
      std::reverse(query.shapes.begin(), query.shapes.end());
    else
      llvm::sort(query.shapes);
    if (!rules.balances) {
      Template made =
          chain.makeTemplate(query, chain.equalCuts(query.shapes.size(), true));
      if (!chain.fits(made, query.owned))
        return std::nullopt;
      return made;
    }
    // The bottleneck alone counts; the shortest way of those that reach it.
    StageProblem problem = chain.problem(query);
    problem.in_flight.assign(query.shapes.size(), 0);
    std::vector<StageFrontEntry> front = solveStageFront(problem);
    if (front.empty())
      return std::nullopt;
    return chain.makeTemplate(query, front.front().cuts);
  }

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  AutoHetRules rules;
  LayerChain chain;
  Deadline searchEnd; ///< of candidates
  std::vector<Candidate> candidates;
};

} // namespace

void searchAutoHet(Judge &judge, const AutoHetRules &rules) {
  AutoHetSearch(judge, rules).run();
}

} // namespace autohet
