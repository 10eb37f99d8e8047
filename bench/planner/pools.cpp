//===- pools.cpp - planners on mixed pools of GPUs, simulated -------------===//
//
//   bench-pools autohet [LINE]   GPUs of A100, H800 and H20 (AutoHet's pools),
//                          or only the lines that begin so: "LLaMA 7B 5 A100"
//   bench-pools h2         1,024 chips of four kinds: speed-up ratio of mixing
//
// Devices are what their data sheets promise times what training reaches
// (GpuKinds.h); nothing here was measured on such machines.
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/UnitTableCosts.h"
#include "autohet/Profiles/GpuClusters.h"
#include "lib/Planner/ModeSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace autohet;

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;
constexpr unsigned devicesPerNode = 8;
constexpr double mostSeconds = 20; // of a search
llvm::ExitOnError orExit("bench-pools: error: ");

struct Part {
  DeviceKind kind;
  unsigned count;
  Link inside; ///< a node
};

/// Nodes of up to eight devices of one kind; one network between them.
Cluster makeCluster(llvm::ArrayRef<Part> parts, Link between) {
  Cluster cluster;
  cluster.inter_node = between;
  for (const Part &part : parts) {
    unsigned kind = cluster.addKind(part.kind);
    for (unsigned made = 0, node = 0; made < part.count;
         made += devicesPerNode, ++node) {
      unsigned count = std::min(devicesPerNode, part.count - made);
      std::string name =
          llvm::StringRef(part.kind.name).lower() + "-" + std::to_string(node);
      cluster.addNode(name, "", std::vector<unsigned>(count, kind));
      cluster.nodes.back().inside = part.inside;
    }
  }
  return cluster;
}

Part gpus(llvm::StringRef name, unsigned count) {
  const GpuKind *kind = findGpuKind(name);
  assert(kind && "kinds of this file are known");
  return {deviceKindOf(*kind, {}), count, {kind->link_bytes_per_s, 3e-6}};
}

struct Model {
  const char *name;
  DecoderShape shape;
  int64_t batch;
};
constexpr DecoderShape bertLarge = {1024, 24, 512, 30522, 4096, false, true};
constexpr DecoderShape gpt3 = {4096, 32, 2048, 50257, 16384, false, true};
constexpr DecoderShape llama = {4096, 32, 2048, 32000, 11008, true, false};
constexpr Model models[] = {{"BERT-Large", bertLarge, 512},
                            {"GPT-3 6.7B", gpt3, 128},
                            {"LLaMA 7B", llama, 128}};

/// The best plan that a search brings; infinite if none.
double secondsOf(llvm::function_ref<void(Judge &)> search,
                 const PlanCosts &costs, const PlannerOptions &options,
                 Deadline deadline) {
  Judge judge(costs, options, std::move(deadline));
  search(judge);
  return judge.bestSeconds();
}

std::string factor(double other, double ours) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (std::isfinite(other))
    os << llvm::format("  %6.2f", other / ours);
  else
    os << "    none";
  return text;
}

void runPool(const Model &model, llvm::ArrayRef<Part> parts,
             const std::string &name) {
  // Eight 400 Gbit/s cards a node, one a GPU.
  const Link network = {50e9, 10e-6};
  UnitTable table = unitsOf(model.shape);
  Cluster cluster = makeCluster(parts, network);
  PlannerOptions options;
  options.global_batch = model.batch;
  options.max_microbatch_size = 16;
  options.deadline = Deadline::in(mostSeconds);
  options.compare = {PlannerMode::Symmetric, PlannerMode::Whale,
                     PlannerMode::HeteroAuto, PlannerMode::Cephalo,
                     PlannerMode::AutoHet};
  PlannerResult result = orExit(planCluster(table, cluster, options));
  double ours = result.best.evaluation.step_s;
  llvm::outs() << llvm::format("%-11s %-26s %7.3f %5.1f %%", model.name,
                               name.c_str(), ours, 100 * result.gap());
  double autohet = std::numeric_limits<double>::infinity();
  for (const ModeResult &mode : result.modes) {
    double seconds = mode.step ? mode.step->evaluation.step_s
                               : std::numeric_limits<double>::infinity();
    llvm::outs() << factor(seconds, ours);
    if (mode.mode == PlannerMode::AutoHet)
      autohet = seconds;
  }
  UnitTableCosts costs(table, cluster, options.optimizer,
                       options.memory_fraction);
  // Equal grids, and balanced ones, that leave no device idle.
  for (bool isBalanced : {false, true}) {
    auto searchAll = [&](Judge &judge) {
      searchGrids(judge, {isBalanced, isBalanced, /*may_idle=*/false});
    };
    llvm::outs() << factor(
        secondsOf(searchAll, costs, options, Deadline::in(mostSeconds)), ours);
  }
  // Without unlike tensor parallelism.
  PlannerOptions uniform = options;
  uniform.has_one_extent = true;
  uniform.deadline = Deadline::in(mostSeconds);
  uniform.compare.clear();
  PlannerResult alike = orExit(planCluster(table, cluster, uniform));
  llvm::outs() << factor(alike.best.evaluation.step_s, ours) << "  |";
  for (bool AutoHetRules::*part :
       {&AutoHetRules::groups, &AutoHetRules::maps, &AutoHetRules::balances,
        &AutoHetRules::frees_counts}) {
    AutoHetRules rules;
    rules.*part = false;
    auto search = [&](Judge &judge) { searchAutoHet(judge, rules); };
    llvm::outs() << factor(
        secondsOf(search, costs, options, Deadline::in(mostSeconds)), autohet);
  }
  llvm::outs() << "\n";
  llvm::outs().flush();
}

/// Of all pools, or those whose line begins with `only`.
void runAutohet(llvm::StringRef only) {
  using Pool = std::vector<std::pair<const char *, unsigned>>;
  const Pool pools[] = {{{"A100-80", 4}, {"H800", 4}},
                        {{"A100-80", 5}, {"H800", 3}},
                        {{"A100-80", 6}, {"H800", 2}},
                        {{"A100-80", 8}, {"H800", 8}},
                        {{"A100-80", 7}, {"H800", 5}},
                        {{"H800", 4}, {"H20", 4}},
                        {{"H800", 5}, {"H20", 3}},
                        {{"H800", 6}, {"H20", 2}},
                        {{"H800", 8}, {"H20", 8}},
                        {{"H800", 7}, {"H20", 5}},
                        {{"A100-80", 8}, {"H800", 8}, {"H20", 8}}};
  llvm::outs()
      << "Step of the joint plan, its gap to the bound, how much longer others "
         "take, and how much\nlonger AutoHet's takes without one of its parts\n"
         "model       pool                          step    gap   Megatr   "
         "Whale  HeterA  Cephal  AutoHt  AllEql  AllBal  OneExt  |   group     "
         "map   "
         "balan  "
         "counts\n";
  for (const Model &model : models)
    for (const Pool &pool : pools) {
      std::vector<Part> parts;
      std::string name;
      for (auto [kind, count] : pool) {
        parts.push_back(gpus(kind, count));
        name +=
            (name.empty() ? "" : " + ") + std::to_string(count) + " " + kind;
      }
      if (llvm::StringRef(model.name + (" " + name)).starts_with(only))
        runPool(model, parts, name);
    }
}

//===-- H2 ----------------------------------------------------------------===//

/// Four kinds of which none is best in everything: rates beside one of 250
/// TFLOP/s, memory as in H2's description.
std::vector<Part> fourKinds(unsigned each) {
  std::vector<Part> parts;
  for (auto [name, rate, memory] :
       {std::tuple("A", 0.7, 96), std::tuple("B", 1.0, 64),
        std::tuple("C", 0.8, 32), std::tuple("D", 0.5, 32)}) {
    DeviceKind kind;
    kind.name = name;
    kind.memory_bytes = memory * gib;
    kind.flops_per_s = rate * 250e12;
    kind.memory_bandwidth_bytes_per_s = 1.5e12;
    parts.push_back({kind, each, {200e9, 5e-6}});
  }
  return parts;
}

/// Samples a second of one kind a stage, or of the joint search; 0 where the
/// model does not fit.
double samplesPerSecond(llvm::ArrayRef<Part> parts, bool isJoint,
                        const UnitTable &table, int64_t batch) {
  PlannerOptions options;
  options.global_batch = batch;
  options.max_microbatch_size = 4;
  options.allow_recompute = true;
  options.compare = {PlannerMode::HeteroAuto};
  Cluster cluster = makeCluster(parts, {25e9, 10e-6});
  if (!isJoint) {
    UnitTableCosts costs(table, cluster, options.optimizer,
                         options.memory_fraction);
    return static_cast<double>(batch) /
           secondsOf(searchHeteroAuto, costs, options, Deadline());
  }
  options.deadline = Deadline::in(mostSeconds);
  llvm::Expected<PlannerResult> result = planCluster(table, cluster, options);
  if (!result) {
    llvm::consumeError(result.takeError());
    return 0;
  }
  return static_cast<double>(batch) / result->best.evaluation.step_s;
}

/// A rate, or that there is none.
std::string rate(double samplesPerSecond) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (samplesPerSecond > 0)
    os << llvm::format("%.2f", samplesPerSecond);
  else
    os << "none";
  return text;
}

/// What kinds do together, and beside what each does alone: some may not even
/// hold the model.
std::string together(double samplesPerSecond, llvm::ArrayRef<double> alone) {
  double sum = 0;
  bool isAny = samplesPerSecond > 0;
  for (double one : alone) {
    sum += one;
    isAny &= one > 0;
  }
  std::string text = rate(samplesPerSecond) + ", ratio ";
  llvm::raw_string_ostream os(text);
  if (isAny)
    os << llvm::format("%.1f %%", 100 * samplesPerSecond / sum);
  else
    os << "none: the model does not fit everywhere";
  return text;
}

void runH2(unsigned each) {
  // 80 layers of 8192, sequences of 4096: some 70B parameters.
  constexpr DecoderShape shape = {8192, 80, 4096, 32000, 28672, false, false};
  UnitTable table = unitsOf(shape);
  std::vector<Part> parts = fourKinds(each);
  for (bool isJoint : {false, true}) {
    llvm::outs() << (isJoint ? "joint" : "one kind a stage")
                 << ": samples/s alone:";
    std::vector<double> alone;
    for (const Part &part : parts) {
      // A quarter of the batch each, so that replicas are as busy.
      alone.push_back(samplesPerSecond({part}, isJoint, table, each));
      llvm::outs() << " " << part.kind.name << " " << rate(alone.back());
      llvm::outs().flush();
    }
    llvm::outs() << "; together "
                 << together(samplesPerSecond(parts, isJoint, table, 4 * each),
                             alone)
                 << "\n";
    llvm::outs().flush();
    // Pairs of the joint search would take many minutes.
    for (size_t one = 0; !isJoint && one < parts.size(); ++one)
      for (size_t other = one + 1; other < parts.size(); ++other) {
        double both = samplesPerSecond({parts[one], parts[other]}, isJoint,
                                       table, 2 * each);
        llvm::outs() << "  " << parts[one].kind.name << " + "
                     << parts[other].kind.name << ": "
                     << together(both, {alone[one], alone[other]}) << "\n";
        llvm::outs().flush();
      }
  }
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::StringRef what = argc > 1 ? argv[1] : "";
  unsigned each = 256;
  if (what == "autohet" && argc <= 3) {
    runAutohet(argc > 2 ? argv[2] : "");
    return 0;
  }
  if (what == "h2" &&
      (argc == 2 ||
       (argc == 3 && !llvm::StringRef(argv[2]).getAsInteger(10, each) &&
        each > 0))) {
    runH2(each);
    return 0;
  }
  llvm::errs()
      << "usage: bench-pools autohet [LINE] | h2 [CHIPS_OF_EACH_KIND]\n";
  return 1;
}
