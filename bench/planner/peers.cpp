//===- peers.cpp - our plans beside those of published planners -----------===//
//
//   bench-peers SAILOR_FOLDER [--write FOLDER]
//
// Both sides under Sailor's formulas (SailorJudge.h): the best plan that any of
// the planners in the table found, ours within what these formulas know, and
// ours of the whole search, whose replicas may differ (SailorCosts.h). --write
// writes the former as files that Sailor's own simulator reads.
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/Planner.h"
#include "autohet/Profiles/SailorSearch.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace autohet;

namespace {

llvm::ExitOnError orExit("bench-peers: error: ");

/// Seconds of an iteration, as the peers' best plans were judged.
struct Case {
  const char *model;
  int64_t batch, a100, v100;
  double peer_s;
  const char *peer;
};
constexpr Case cases[] = {
    {"OPT-350", 1024, 4, 4, 42.86, "Sailor"},
    {"OPT-350", 1024, 8, 8, 22.45, "Metis"},
    {"OPT-350", 1024, 32, 32, 6.92, "Metis"},
    {"OPT-350", 1024, 32, 96, 5.88, "Sailor"},
    {"OPT-350", 1024, 128, 384, 1.91, "Sailor"},
    {"GPT-Neo-2.7", 2048, 4, 4, 347.6, "Sailor"},
    {"GPT-Neo-2.7", 2048, 16, 16, 83.3, "Sailor"},
    {"GPT-Neo-2.7", 2048, 64, 64, 23.2, "Sailor"},
};

std::string describe(const SailorPlan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << plan.microbatches() << "x" << plan.microbatch_size << ": ";
  llvm::ListSeparator arrow(" > ");
  for (const SailorStage &stage : plan.pipelines[0].stages) {
    os << arrow << stage.end - stage.begin << " on ";
    llvm::ListSeparator plus(" + ");
    for (size_t begin = 0; begin < stage.groups.size();) {
      const SailorGroup &group = stage.groups[begin];
      size_t end = begin;
      while (end < stage.groups.size() &&
             stage.groups[end].kind == group.kind &&
             stage.groups[end].tensor == group.tensor)
        ++end;
      os << plus << end - begin << "x" << group.tensor << " " << group.kind;
      begin = end;
    }
  }
  return text;
}

void write(const std::string &folder, const Case &problem,
           const SailorPlan &plan) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    orExit(llvm::createStringError(error, "cannot make '" + folder + "'"));
  std::string path = folder + "/" + problem.model + "-" +
                     std::to_string(problem.a100) + "-" +
                     std::to_string(problem.v100) + ".json";
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    orExit(llvm::createStringError(error, "cannot write '" + path + "'"));
  os << formatSailorPlan(plan);
}

/// The whole search, within a minute.
PlannerResult searchUneven(const Case &problem, const SailorModel &model,
                           const SailorData &data) {
  constexpr const char *zone = "us-central1-a";
  constexpr double mostSeconds = 60;
  Cluster cluster = orExit(clusterOfSailorPools(
      {{"A100-40", problem.a100}, {"V100-16", problem.v100}}, zone, data));
  UnitTable units = unitsOfSailorModel(model);
  SailorCosts costs(units, cluster, model, data, zone, {});
  PlannerOptions options;
  options.global_batch = problem.batch;
  options.optimizer = OptimizerKind::Adam;
  options.schedule = Schedule::OneForwardOneBackward;
  options.max_microbatch_size = 8; // of the profiles
  options.deadline = Deadline::in(mostSeconds);
  options.compare = {PlannerMode::AutoHet, PlannerMode::HeteroAuto,
                     PlannerMode::Whale};
  return orExit(planCluster(costs, options));
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string folder;
  if (arguments.size() == 3 && arguments[1] == "--write")
    folder = arguments[2];
  else if (arguments.size() != 1) {
    llvm::errs() << "usage: bench-peers SAILOR_FOLDER [--write FOLDER]\n";
    return 1;
  }
  std::vector<std::string> warnings;
  SailorData data = orExit(loadSailorData(arguments[0], warnings));
  llvm::outs() << "model        A100+V100    best peer       ours    less  "
                  "planning   uneven    less  planning  plan\n";
  for (const Case &problem : cases) {
    const SailorModel &model = *orExit(data.model(problem.model));
    auto begin = std::chrono::steady_clock::now();
    SailorSearchResult result = orExit(
        searchSailorPlan({{"A100-40", problem.a100}, {"V100-16", problem.v100}},
                         "us-central1-a", problem.batch, model, data, {}));
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    llvm::outs() << llvm::format(
        "%-11s  %4lld+%-4lld %8.2f %-7s %8.2f %5.1f %% %7.2f s ", problem.model,
        static_cast<long long>(problem.a100),
        static_cast<long long>(problem.v100), problem.peer_s, problem.peer,
        result.step.step_s, 100 * (1 - result.step.step_s / problem.peer_s),
        seconds);
    llvm::outs().flush();
    PlannerResult uneven = searchUneven(problem, model, data);
    double step = uneven.best.evaluation.step_s;
    llvm::outs() << llvm::format("%8.2f %5.1f %% %7.2f s  ", step,
                                 100 * (1 - step / problem.peer_s),
                                 uneven.effort.seconds)
                 << describe(result.plan) << "\n";
    llvm::outs().flush();
    if (!folder.empty())
      write(folder, problem, result.plan);
  }
  return 0;
}
