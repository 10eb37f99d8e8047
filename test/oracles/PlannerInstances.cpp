//===- PlannerInstances.cpp - random problems and what our solvers find ---===//
//
// Prints one JSON object a line: a random instance of one of the planner's
// problems, and the objective that its solver reaches, null where it finds
// nothing. Instances are larger than brute force could do; another solver reads
// them and says what is best (mixed_integer.py).
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/BatchProblem.h"
#include "autohet/Planner/GroupingProblem.h"
#include "autohet/Planner/StageProblem.h"
#include "lib/Planner/MixProblem.h"
#include "planner/Instances.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace autohet;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;
using test::Random;

namespace {

Value orNull(std::optional<double> value) {
  return value ? Value(*value) : Value(nullptr);
}

Object makeGrouping(Random &random) {
  GroupingProblem problem;
  unsigned kinds = 1 + random.below(3);
  for (unsigned kind = 0; kind < kinds; ++kind)
    problem.kinds.push_back(
        {1 + random.below(4), random.real(1, 5), random.real(1, 3)});
  problem.groups = 1 + random.below(4);
  problem.microbatches = problem.groups * (1 + random.below(8));
  if (random.below(2))
    problem.least_memory = random.real(0, 6);
  problem.max_depth = 2 + random.below(5);
  bool isSum = random.below(2);
  if (isSum)
    problem.objective = GroupingProblem::Objective::SumOfGroups;
  std::optional<Grouping> exact = solveGrouping(problem),
                          improved = improveGrouping(problem);

  Array described;
  for (const GroupingProblem::Kind &kind : problem.kinds)
    described.push_back(Object{
        {"count", kind.count}, {"power", kind.power}, {"memory", kind.memory}});
  auto valueOf = [&](const std::optional<Grouping> &grouping) {
    return grouping ? std::optional(problem.value(*grouping)) : std::nullopt;
  };
  return Object{{"problem", "grouping"},
                {"kinds", std::move(described)},
                {"microbatches", problem.microbatches},
                {"groups", problem.groups},
                {"least_memory", problem.least_memory},
                {"max_depth", problem.max_depth},
                {"of", isSum ? "sum" : "slowest"},
                {"bound", problem.bound()},
                {"improved", orNull(valueOf(improved))},
                {"found", orNull(valueOf(exact))}};
}

Object makeStages(Random &random) {
  StageProblem problem;
  unsigned workers = 2 + random.below(4);
  problem.unit_count = workers + random.below(12);
  problem.microbatches = 1 + random.below(20);
  std::vector<double> work;
  for (unsigned unit = 0; unit < problem.unit_count; ++unit)
    work.push_back(random.real(0, 3));
  Array seconds, transfers, limits;
  for (unsigned worker = 0; worker < workers; ++worker) {
    double speed = random.real(0.5, 4);
    std::vector<double> &row = problem.seconds.emplace_back();
    for (double amount : work)
      row.push_back(amount / speed);
    seconds.push_back(Array(row));
    problem.in_flight.push_back(random.below(2) ? workers - worker : 0);
    problem.memory_limits.push_back(random.real(5, 40));
    if (worker + 1 == workers)
      break;
    std::vector<PassSeconds> &ways = problem.transfers.emplace_back();
    Array described;
    for (unsigned unit = 0; unit < problem.unit_count; ++unit) {
      ways.push_back({random.real(0, 1), random.real(0, 1)});
      described.push_back(Array{ways.back().forward_s, ways.back().backward_s});
    }
    transfers.push_back(std::move(described));
  }
  // Earlier workers have more microbatches in flight.
  problem.memory = [&](unsigned worker, unsigned begin, unsigned end) {
    double bytes = 0;
    for (unsigned unit = begin; unit < end; ++unit)
      bytes += work[unit] * (1 + workers - worker);
    return bytes;
  };
  std::optional<StageCuts> cuts = solveStagesByDynamicProgram(problem);
  return Object{{"problem", "stages"},
                {"microbatches", problem.microbatches},
                {"seconds", std::move(seconds)},
                {"transfers", std::move(transfers)},
                {"in_flight", Array(problem.in_flight)},
                {"bytes_in_flight", Array(work)},
                {"limits", Array(problem.memory_limits)},
                {"found", orNull(cuts ? std::optional(problem.objective(*cuts))
                                      : std::nullopt)}};
}

Object makeBatch(Random &random) {
  BatchProblem problem;
  problem.global_batch = 5 + random.below(60);
  unsigned replicas = 2 + random.below(5);
  Array described;
  for (unsigned i = 0; i < replicas; ++i) {
    BatchProblem::ReplicaCost &replica = problem.replicas.emplace_back();
    replica.microbatch_size = 1 + random.below(5);
    Array lines;
    for (unsigned line = 0; line <= random.below(3); ++line) {
      double period = random.real(0.1, 2), way = random.real(0.1, 5);
      replica.lines.push_back({period, way});
      lines.push_back(Array{period, way});
    }
    described.push_back(
        Object{{"size", replica.microbatch_size}, {"lines", std::move(lines)}});
  }
  std::optional<BatchCounts> counts = solveBatch(problem);
  return Object{
      {"problem", "batch"},
      {"batch", problem.global_batch},
      {"replicas", std::move(described)},
      {"bound", boundBatch(problem)},
      {"found", orNull(counts ? std::optional(problem.objective(*counts))
                              : std::nullopt)}};
}

Object makeMix(Random &random) {
  MixProblem problem;
  problem.global_batch = 1 + random.below(60);
  unsigned classes = 1 + random.below(3);
  for (unsigned i = 0; i < classes; ++i)
    problem.available.push_back(1 + random.below(5));
  Array templates;
  for (unsigned i = 0; i < 3 + random.below(4); ++i) {
    Template &made = problem.templates.emplace_back();
    made.microbatch_size = 1 + random.below(4);
    made.period_s = made.pace_s = random.real(0.1, 2);
    made.way_s = made.pace_s * random.real(1, 4);
    made.rest_s = random.real(0, 0.5);
    made.devices.assign(classes, 0);
    for (unsigned &count : made.devices)
      count = random.below(3);
    ++made.devices[random.below(classes)];
    templates.push_back(Object{{"size", made.microbatch_size},
                               {"first", made.way_s + made.rest_s},
                               {"period", made.period_s},
                               {"devices", Array(made.devices)}});
  }
  TemplateMix mix = solveMix(problem);
  return Object{
      {"problem", "mix"},
      {"batch", problem.global_batch},
      {"available", Array(problem.available)},
      {"templates", std::move(templates)},
      {"found", orNull(mix.empty() ? std::nullopt
                                   : std::optional(secondsOfMix(
                                         mix, problem.global_batch)))}};
}

} // namespace

int main(int argc, char **argv) {
  llvm::cl::opt<unsigned> count("count", llvm::cl::init(60),
                                llvm::cl::desc("instances of each problem"));
  llvm::cl::opt<unsigned> seed("seed", llvm::cl::init(1));
  llvm::cl::ParseCommandLineOptions(argc, argv);
  for (auto *make : {makeGrouping, makeStages, makeBatch, makeMix}) {
    Random random(seed);
    for (unsigned i = 0; i < count; ++i)
      llvm::outs() << Value(make(random)) << '\n';
  }
  return 0;
}
