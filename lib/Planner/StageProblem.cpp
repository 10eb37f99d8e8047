//===- StageProblem.cpp - cutting a chain for a row of workers ------------===//

#include "autohet/Planner/StageProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>

namespace autohet {

std::string StageProblem::check() const {
  unsigned workers = workerCount();
  if (workers == 0)
    return "no workers";
  if (workers > unit_count)
    return "more workers than units";
  if (microbatches < 1)
    return "no microbatches";
  if (transfers.size() + 1 != workers || in_flight.size() != workers)
    return "transfers or in-flight limits do not match the workers";
  if (memory && memory_limits.size() != workers)
    return "memory limits do not match the workers";
  for (const std::vector<double> &row : seconds) {
    if (row.size() != unit_count)
      return "seconds do not match the units";
    for (double value : row)
      if (!std::isfinite(value) || value < 0)
        return "a time is negative or not finite";
  }
  for (const std::vector<PassSeconds> &row : transfers)
    if (row.size() != unit_count)
      return "transfers do not match the units";
  return "";
}

std::string StageProblem::verify(const StageCuts &cuts) const {
  if (cuts.size() != workerCount() || cuts.back() != unit_count)
    return "the cuts do not end with the units";
  unsigned begin = 0;
  for (auto [worker, end] : llvm::enumerate(cuts)) {
    if (end <= begin)
      return "worker " + std::to_string(worker) + " has no units";
    if (memory && memory(worker, begin, end) > memory_limits[worker])
      return "worker " + std::to_string(worker) + " lacks memory";
    begin = end;
  }
  return "";
}

double StageProblem::objective(const StageCuts &cuts) const {
  double period = 0, way = 0;
  // From the last worker to the first: `way` is from here to the end and back.
  for (unsigned worker = workerCount(); worker-- > 0;) {
    unsigned begin = worker ? cuts[worker - 1] : 0;
    double stage = 0;
    for (unsigned unit = begin; unit < cuts[worker]; ++unit)
      stage += seconds[worker][unit];
    period = std::max(period, stage);
    way += stage;
    if (worker + 1 < workerCount()) {
      const PassSeconds &transfer = transfers[worker][cuts[worker]];
      period = std::max({period, transfer.forward_s, transfer.backward_s});
      way += transfer.total();
    }
    if (in_flight[worker])
      period = std::max(period, way / static_cast<double>(in_flight[worker]));
  }
  return static_cast<double>(microbatches - 1) * period + way;
}

//===-- Brute force
//--------------------------------------------------------===//

namespace {

void tryAllCuts(const StageProblem &problem, StageCuts &cuts,
                std::optional<StageCuts> &best, double &bestSeconds) {
  unsigned left = problem.workerCount() - cuts.size();
  if (left == 1) {
    cuts.push_back(problem.unit_count);
    if (problem.verify(cuts).empty()) {
      double seconds = problem.objective(cuts);
      if (!best || seconds < bestSeconds) {
        best = cuts;
        bestSeconds = seconds;
      }
    }
    cuts.pop_back();
    return;
  }
  unsigned begin = cuts.empty() ? 0 : cuts.back();
  for (unsigned end = begin + 1; end + left - 1 <= problem.unit_count; ++end) {
    cuts.push_back(end);
    tryAllCuts(problem, cuts, best, bestSeconds);
    cuts.pop_back();
  }
}

} // namespace

std::optional<StageCuts> solveStagesByBruteForce(const StageProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  StageCuts cuts;
  std::optional<StageCuts> best;
  double bestSeconds = 0;
  tryAllCuts(problem, cuts, best, bestSeconds);
  return best;
}

//===-- Dynamic program
//----------------------------------------------------===//

namespace {

/// A way to give units [begin, n) to the last workers. Of two with the same
/// begin, one that has neither a longer period nor a longer way is as good for
/// whatever comes before: only undominated ones are kept.
struct Partial {
  double period, way;
  unsigned end;  ///< of the first of these workers
  unsigned rest; ///< which Partial of (worker + 1, end) follows
};
using Front = std::vector<Partial>;

// Sorts by period and drops dominated entries; among equal ones the first (the
// smallest end) stays, so that results do not depend on the library's sort.
void keepUndominated(Front &front, double tolerance) {
  llvm::sort(front, [](const Partial &a, const Partial &b) {
    return std::tie(a.period, a.way, a.end, a.rest) <
           std::tie(b.period, b.way, b.end, b.rest);
  });
  Front kept;
  for (const Partial &entry : front)
    if (kept.empty() || entry.way < kept.back().way * (1 - tolerance))
      kept.push_back(entry);
  front = std::move(kept);
}

} // namespace

std::vector<StageFrontEntry> solveStageFront(const StageProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  unsigned workers = problem.workerCount(), units = problem.unit_count;
  // fronts[worker][begin]: for units [begin, units) on workers [worker, …).
  std::vector<std::vector<Front>> fronts(workers, std::vector<Front>(units));
  for (unsigned worker = workers; worker-- > 0;) {
    bool isLast = worker + 1 == workers;
    double inFlight = static_cast<double>(problem.in_flight[worker]);
    for (unsigned begin = worker; begin + (workers - worker) <= units;
         ++begin) {
      if (worker == 0 && begin > 0)
        break;
      if (problem.deadline.isOver())
        return {};
      Front &front = fronts[worker][begin];
      double stage = 0;
      for (unsigned end = begin + 1; end <= units; ++end) {
        stage += problem.seconds[worker][end - 1];
        if (isLast && end < units)
          continue;
        if (!isLast && end + (workers - worker - 1) > units)
          break;
        if (problem.memory &&
            problem.memory(worker, begin, end) > problem.memory_limits[worker])
          break; // more units need more
        auto add = [&](double period, double way, unsigned rest) {
          if (problem.in_flight[worker])
            period = std::max(period, way / inFlight);
          front.push_back({period, way, end, rest});
        };
        if (isLast) {
          add(stage, stage, 0);
          continue;
        }
        const PassSeconds &transfer = problem.transfers[worker][end];
        for (auto [index, rest] : llvm::enumerate(fronts[worker + 1][end]))
          add(std::max({stage, rest.period, transfer.forward_s,
                        transfer.backward_s}),
              stage + transfer.total() + rest.way, index);
      }
      keepUndominated(front, problem.tolerance);
    }
  }

  std::vector<StageFrontEntry> solutions;
  for (const Partial &first : fronts[0][0]) {
    StageFrontEntry &solution = solutions.emplace_back();
    solution.period_s = first.period;
    solution.way_s = first.way;
    const Partial *entry = &first;
    solution.cuts.push_back(entry->end);
    for (unsigned worker = 1; worker < workers; ++worker) {
      entry = &fronts[worker][entry->end][entry->rest];
      solution.cuts.push_back(entry->end);
    }
  }
  return solutions;
}

std::optional<StageCuts>
solveStagesByDynamicProgram(const StageProblem &problem) {
  std::optional<StageCuts> best;
  double bestSeconds = 0;
  for (const StageFrontEntry &entry : solveStageFront(problem)) {
    double seconds = entry.seconds(problem.microbatches);
    if (best && seconds >= bestSeconds)
      continue;
    best = entry.cuts;
    bestSeconds = seconds;
  }
  return best;
}

} // namespace autohet
