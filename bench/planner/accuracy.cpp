//===- accuracy.cpp - estimates beside published measurements -------------===//
//
//   bench-accuracy DATA_FOLDER [--fit] [--rows]
//
// DATA_FOLDER holds sailor/ and vtrain/ as published (bench/planner/README.md).
// --fit fits the constants anew, on every second row of each set; the other
// rows judge them. --rows prints every row.
//
//===----------------------------------------------------------------------===//

#include "Statistics.h"
#include "autohet/Profiles/MeasuredRuns.h"
#include "autohet/Profiles/SailorJudge.h"
#include "autohet/Profiles/VTrain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace autohet;

namespace {

llvm::ExitOnError orExit("bench-accuracy: error: ");
bool printRows = false;

using Comparisons = std::vector<Comparison>;

void report(const llvm::Twine &name, const Comparisons &rows) {
  llvm::outs() << llvm::format("%-34s %4zu rows: ", name.str().c_str(),
                               rows.size())
               << summarise(rows);
  if (rows.size() > 20)
    llvm::outs() << llvm::format(", rank correlation %.4f",
                                 rankCorrelation(rows));
  llvm::outs() << "\n";
}

void listRows(const Comparisons &rows, const char *unit, double scale) {
  if (!printRows)
    return;
  for (const Comparison &row : rows)
    llvm::outs() << llvm::format("  %-46s %10.3f %10.3f %s %+6.1f %%\n",
                                 row.name.c_str(), row.estimated * scale,
                                 row.measured * scale, unit, 100 * row.error());
}

/// Every second row, from `first` on.
template <typename Row>
std::vector<Row> half(const std::vector<Row> &rows, size_t first) {
  std::vector<Row> result;
  for (size_t index = first; index < rows.size(); index += 2)
    result.push_back(rows[index]);
  return result;
}

//===-- vTrain ------------------------------------------------------------===//

Comparisons compareSteps(const std::vector<MeasuredStep> &rows,
                         const GpuCluster &cluster,
                         const GpuEfficiency &efficiency) {
  Comparisons result;
  for (const MeasuredStep &row : rows) {
    const GridPlan &plan = row.plan;
    result.push_back(
        {"h " + std::to_string(row.shape.hidden) + ", " +
             std::to_string(row.shape.layers) + " layers, batch " +
             std::to_string(plan.global_batch) + "/" +
             std::to_string(plan.microbatch_size) + ", " +
             std::to_string(plan.data) + "x" + std::to_string(plan.tensor) +
             "x" + std::to_string(plan.pipeline),
         orExit(predictStep(row.shape, plan, cluster, efficiency)).step_s,
         row.measured_s});
  }
  return result;
}

void accuracyOfSteps(llvm::StringRef folder, bool isFitting) {
  VTrainData data = orExit(loadVTrainData(folder));
  GpuCluster cluster;
  cluster.kind = findGpuKind("A100-80");
  cluster.all_reduce = data.all_reduce;
  std::vector<MeasuredStep> all = data.single;
  all.insert(all.end(), data.multi.begin(), data.multi.end());
  std::vector<MeasuredStep> fitted = half(all, 0), judged = half(all, 1);
  GpuEfficiency efficiency;
  if (isFitting)
    fitConstants({&efficiency.matmul, &efficiency.bandwidth,
                  &efficiency.block_start_s, &efficiency.plain_softmax_s,
                  &efficiency.network},
                 [&] { return compareSteps(fitted, cluster, efficiency); });
  llvm::outs() << llvm::format(
      "vTrain, Megatron on A100. Fitted on every second row: matrix products "
      "%.3f of 312 TFLOP/s, memory %.3f of 2039 GB/s, start of a block %.3f "
      "ms, plain softmax %.3f ms more, network %.3f of 100 GB/s a node\n",
      efficiency.matmul, efficiency.bandwidth, efficiency.block_start_s * 1e3,
      efficiency.plain_softmax_s * 1e3, efficiency.network);
  report("step, rows of the fit", compareSteps(fitted, cluster, efficiency));
  report("step, the other rows", compareSteps(judged, cluster, efficiency));
  report("step, one node", compareSteps(data.single, cluster, efficiency));
  report("step, 64 to 512 GPUs", compareSteps(data.multi, cluster, efficiency));
  Comparisons everything = compareSteps(all, cluster, efficiency);
  report("step, all", everything);
  listRows(everything, "s", 1);
}

//===-- Sailor ------------------------------------------------------------===//

struct NamedPlan {
  std::string name;
  SailorPlan plan;
};

std::vector<NamedPlan> loadPlans(const std::string &folder) {
  std::vector<NamedPlan> plans;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator entry(folder, error), end;
       entry != end && !error; entry.increment(error))
    plans.push_back({llvm::sys::path::stem(entry->path()).str(),
                     orExit(loadSailorPlan(entry->path()))});
  if (plans.empty())
    orExit(llvm::createStringError("no plans in " + folder));
  llvm::sort(plans, [](const NamedPlan &one, const NamedPlan &other) {
    return one.name < other.name;
  });
  return plans;
}

struct RunComparisons {
  Comparisons seconds, bytes;
};

RunComparisons compareRuns(const std::vector<NamedPlan> &plans,
                           const SailorModel &model, const SailorData &data,
                           const Installation &installation) {
  RunComparisons result;
  for (const NamedPlan &named : plans) {
    RunEstimate estimate =
        orExit(estimateRun(named.plan, model, data, installation));
    result.seconds.push_back(
        {named.name, estimate.step_s, *named.plan.measured_s});
    result.bytes.push_back(
        {named.name, estimate.memory_bytes, *named.plan.measured_bytes});
  }
  return result;
}

void extend(RunComparisons &all, const RunComparisons &more) {
  all.seconds.insert(all.seconds.end(), more.seconds.begin(),
                     more.seconds.end());
  all.bytes.insert(all.bytes.end(), more.bytes.begin(), more.bytes.end());
}

void reportRuns(const std::string &name, const RunComparisons &runs) {
  report(name + ", step", runs.seconds);
  listRows(runs.seconds, "s", 1);
  report(name + ", peak memory", runs.bytes);
  listRows(runs.bytes, "GB", 1e-9);
}

void accuracyOfRuns(const std::string &folder, bool isFitting) {
  std::vector<std::string> warnings;
  SailorData data = orExit(loadSailorData(folder, warnings));
  const SailorModel &model = *orExit(data.model("OPT-350"));

  // GH200: activations as profiled; RTX: what its two smallest runs fit into
  // leaves no room for attention matrices, and more GPUs a node take more.
  Installation grace;
  grace.sync_start_s = 0.070;
  grace.kept_factor = 1.12;
  grace.base_bytes = 4.0e9;
  Installation rtx;
  rtx.bytes_per_parameter = 16;
  rtx.keeps_attention = false;
  rtx.bytes_per_peer = 0.69e9;
  std::vector<NamedPlan> graceRuns =
      loadPlans(folder + "/validation/clariden_OPT-350");
  std::vector<NamedPlan> rtxRuns = loadPlans(folder + "/validation/mit");
  if (isFitting) {
    fitConstants({&grace.sync_start_s}, [&] {
      return compareRuns(half(graceRuns, 0), model, data, grace).seconds;
    });
    fitConstants({&grace.kept_factor, &grace.base_bytes}, [&] {
      return compareRuns(half(graceRuns, 0), model, data, grace).bytes;
    });
    fitConstants({&rtx.bytes_per_peer}, [&] {
      return compareRuns(half(rtxRuns, 0), model, data, rtx).bytes;
    });
  }
  llvm::outs() << llvm::format(
      "\nSailor's runs of OPT-350M, from its layer profiles. Fitted on every "
      "second run of a cluster: GH200 starts a data-parallel step's all-reduce "
      "in %.0f ms, keeps %.3f of the profiled activations and %.2f GB; RTX "
      "%.2f GB a further GPU of the node\n",
      grace.sync_start_s * 1e3, grace.kept_factor, grace.base_bytes * 1e-9,
      rtx.bytes_per_peer * 1e-9);
  RunComparisons all;
  for (const auto &[name, plans, installation] :
       {std::tuple("GH200", graceRuns, grace),
        std::tuple("RTX-3090, 2080, Titan", rtxRuns, rtx)}) {
    reportRuns(std::string(name) + ", runs of the fit",
               compareRuns(half(plans, 0), model, data, installation));
    reportRuns(std::string(name) + ", other runs",
               compareRuns(half(plans, 1), model, data, installation));
    extend(all, compareRuns(plans, model, data, installation));
  }
  report("all runs, step", all.seconds);
  report("all runs, peak memory", all.bytes);

  Comparisons judged;
  for (const std::vector<NamedPlan> &plans : {graceRuns, rtxRuns})
    for (const NamedPlan &named : plans) {
      JudgedStep step = orExit(judgeSailorPlan(named.plan, model, data,
                                               {/*ranks_share_nic=*/false}));
      judged.push_back({named.name, step.step_s, *named.plan.measured_s});
    }
  report("all runs, step, Sailor's formulas", judged);
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::vector<llvm::StringRef> arguments(argv + 1, argv + argc);
  auto takeFlag = [&](llvm::StringRef flag) {
    auto found = llvm::find(arguments, flag);
    if (found == arguments.end())
      return false;
    arguments.erase(found);
    return true;
  };
  bool isFitting = takeFlag("--fit");
  printRows = takeFlag("--rows");
  if (arguments.size() != 1 || arguments[0].starts_with("-")) {
    llvm::errs() << "usage: bench-accuracy DATA_FOLDER [--fit] [--rows]\n";
    return 1;
  }
  std::string folder = arguments[0].str();
  accuracyOfSteps(folder + "/vtrain", isFitting);
  accuracyOfRuns(folder + "/sailor", isFitting);
  return 0;
}
