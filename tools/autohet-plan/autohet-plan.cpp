//===- autohet-plan.cpp - options of the planner's tool ---------------------===//

#include "Options/Diagnostics.h"
#include "Options/ModelOptions.h"
#include "Plan.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Support/Parallel.h"
#include "autohet/Support/Quantity.h"
#include "autohet/runtime/streams.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include <cmath>

namespace cl = llvm::cl;
using namespace autohet;

namespace {

cl::OptionCategory placement("Placement"), modelOptions("Model"),
    searchOptions("Search"), outputOptions("Output");

struct CommandLine {
  cl::opt<std::string> model{cl::Positional,
                             cl::desc("<model.onnx | config.json>")};
  ClusterOptions machines{placement};
  cl::opt<std::string> globalBatch{
      "global-batch", cl::desc("Samples a step, on all devices together"),
      cl::value_desc("N"), cl::cat(placement)};
  cl::opt<std::string> microbatch{
      "microbatch",
      cl::desc("Samples a microbatch; default: the planner's choice"),
      cl::value_desc("N"), cl::cat(placement)};
  cl::opt<std::string> maxDevices{"max-devices",
                                  cl::desc("Devices that a plan may use"),
                                  cl::value_desc("N"), cl::cat(placement)};
  cl::opt<std::string> plan{"plan",
                            cl::desc("Judge this plan instead of seeking one"),
                            cl::value_desc("file"), cl::cat(placement)};
  cl::opt<std::string> from{
      "from",
      cl::desc("Plan anew for machines that have changed since this plan: what "
               "must move counts, too"),
      cl::value_desc("file"), cl::cat(placement)};
  cl::list<std::string> lost{
      "lost", cl::desc("Devices or nodes of the cluster that are gone"),
      cl::value_desc("list"), cl::CommaSeparated, cl::cat(placement)};
  cl::list<std::string> joined{
      "joined", cl::desc("Devices or nodes of the cluster that are new"),
      cl::value_desc("list"), cl::CommaSeparated, cl::cat(placement)};
  cl::opt<std::string> speedWeight{
      "speed-weight",
      cl::desc("With --from: what a step as long as the best one counts"),
      cl::init("1"), cl::value_desc("X"), cl::cat(placement)};
  cl::opt<std::string> moveWeight{
      "move-weight",
      cl::desc("With --from: what moving all of the state counts"),
      cl::init("0.1"), cl::value_desc("X"), cl::cat(placement)};
  cl::opt<std::string> precision{
      "precision",
      cl::desc("What products are computed in: fp32 (what executables do), "
               "bf16 or fp16 (for planning only)"),
      cl::init("fp32"), cl::cat(placement)};

  ModelOptions modelFile{modelOptions};
  cl::opt<std::string> cost{
      "cost",
      cl::desc("What decides: facts (of model and cluster file) or sailor "
               "(published profiles, with the model's name in them)"),
      cl::init("facts"), cl::cat(modelOptions)};
  cl::opt<std::string> profile{
      "profile", cl::desc("With --cost=sailor: the folder of its data"),
      cl::value_desc("folder"), cl::cat(modelOptions)};
  cl::opt<std::string> zone{"zone",
                            cl::desc("With --cost=sailor: where machines are"),
                            cl::init("us-central1-a"), cl::cat(modelOptions)};
  cl::opt<std::string> optimizer{"optimizer",
                                 cl::desc("sgd, adam, adamw or none; "
                                          "default: as in --plan or --from, "
                                          "else adamw"),
                                 cl::init("adamw"), cl::cat(modelOptions)};

  cl::opt<std::string> whose{
      "planner",
      cl::desc("Whose plans: joint, symmetric, whale, heteroauto, cephalo or "
               "autohet"),
      cl::init("joint"), cl::cat(searchOptions)};
  cl::opt<std::string> objective{
      "objective",
      cl::desc("With --mode=inference: latency (of one batch) or throughput "
               "(of many that follow one another, the default)"),
      cl::value_desc("kind"), cl::cat(searchOptions)};
  cl::opt<std::string> compare{
      "compare",
      cl::desc("Planners to show beside it, with commas; 'all' or 'none'"),
      cl::init("all"), cl::cat(searchOptions)};
  cl::opt<std::string> deadline{
      "deadline", cl::desc("Time after which the best plan so far is taken"),
      cl::value_desc("2s"), cl::cat(searchOptions)};
  cl::opt<std::string> extents{
      "tp",
      cl::desc("Devices of stages: free, or uniform (one number for all)"),
      cl::init("free"), cl::cat(searchOptions)};
  cl::opt<std::string> finalists{
      "finalists",
      cl::desc("Of the best plans, so many are lowered to programs and "
               "simulated; 0: none"),
      cl::value_desc("N"), cl::cat(searchOptions)};
  cl::opt<std::string> measureTop{
      "measure-top",
      cl::desc("Of the finalists, so many are run here for a few steps, and "
               "the fastest is taken"),
      cl::value_desc("K"), cl::cat(searchOptions)};
  cl::opt<bool> emulate{
      "emulate", cl::desc("With --measure-top: at the cluster file's speeds"),
      cl::cat(searchOptions)};
  cl::opt<std::string> threads{
      "j",
      cl::desc("Threads that search other planners' plans and simulate "
               "finalists; default: the usable cores"),
      cl::value_desc("N"), cl::cat(searchOptions)};
  cl::opt<std::string> schedule{"schedule",
                                cl::desc("1f1b or gpipe; default: the better"),
                                cl::value_desc("name"), cl::cat(searchOptions)};
  cl::opt<std::string> stateOwner{
      "state-owner",
      cl::desc("Who updates a parameter: spread, first or a device"),
      cl::init("spread"), cl::cat(searchOptions)};
  cl::opt<std::string> stateParts{
      "state-parts",
      cl::desc(
          "Parts of state that its holders own: even, or uneven where even "
          "ones do not fit; default: uneven with few devices, or where "
          "nothing else fits"),
      cl::value_desc("even|uneven"), cl::cat(searchOptions)};
  cl::list<std::string> allow{
      "allow",
      cl::desc("Plan also with what no runtime does yet: recompute, offload"),
      cl::value_desc("what"), cl::CommaSeparated, cl::cat(searchOptions)};

  cl::opt<std::string> output{"o", cl::desc("Write the plan (JSON)"),
                              cl::value_desc("file"), cl::cat(outputOptions)};
  cl::opt<std::string> sailorPlan{
      "sailor-plan",
      cl::desc("With --cost=sailor: write the plan as its simulator reads it"),
      cl::value_desc("file"), cl::cat(outputOptions)};
  cl::opt<bool> json{"json", cl::desc("Print numbers as JSON"),
                     cl::cat(outputOptions)};
  cl::opt<bool> remarks{"remarks", cl::desc("Say why the plan is as it is"),
                        cl::cat(outputOptions)};

  cl::opt<bool> megatron{"megatron",
                         cl::desc("Print the plan as flags of Megatron-LM, or "
                                  "what these cannot say"),
                         cl::cat(outputOptions)};

  /// Fills `options`; the error is one of the command line.
  llvm::Error read(PlanOptions &options) const;

private:
  llvm::Error readModes(PlannerOptions &planner) const;
  llvm::Error readCounts(PlannerOptions &planner) const;
  llvm::Error readInference(PlanOptions &options) const;
  llvm::Error checkGivenPlan() const;
  llvm::Error readChange(PlanOptions &options) const;
  llvm::Error readSailor(PlanOptions &options) const;
  llvm::Error readFinalists(PlanOptions &options) const;
};

llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

llvm::Error CommandLine::readModes(PlannerOptions &planner) const {
  std::vector<llvm::StringRef> known;
  for (PlannerMode candidate : allPlannerModes())
    known.push_back(plannerModeName(candidate));
  auto parse = [&](llvm::StringRef flag,
                   llvm::StringRef name) -> llvm::Expected<PlannerMode> {
    if (std::optional<PlannerMode> parsed = parsePlannerMode(name))
      return *parsed;
    return error("--" + flag + "=" + name + ": known are " +
                 llvm::join(known, ", "));
  };
  llvm::Expected<PlannerMode> chosen = parse("planner", whose);
  if (!chosen)
    return chosen.takeError();
  planner.mode = *chosen;
  planner.compare.clear();
  if (compare == "none")
    return llvm::Error::success();
  if (compare == "all") {
    for (PlannerMode candidate : allPlannerModes())
      if (candidate != planner.mode)
        planner.compare.push_back(candidate);
    return llvm::Error::success();
  }
  for (llvm::StringRef name : llvm::split(compare, ',')) {
    llvm::Expected<PlannerMode> parsed = parse("compare", name.trim());
    if (!parsed)
      return parsed.takeError();
    planner.compare.push_back(*parsed);
  }
  return llvm::Error::success();
}

llvm::Error CommandLine::readCounts(PlannerOptions &planner) const {
  std::string problem;
  int64_t batch = readNumber<int64_t>(globalBatch, problem),
          size = readNumber<int64_t>(microbatch, problem),
          most = readNumber<int64_t>(maxDevices, problem);
  if (!problem.empty())
    return error(problem);
  if (batch < 0 || size < 0 || most < 0)
    return error("--global-batch, --microbatch and --max-devices are counts");
  for (auto [name, text, count] :
       {std::tuple("global-batch", &globalBatch, batch),
        std::tuple("microbatch", &microbatch, size),
        std::tuple("max-devices", &maxDevices, most)})
    if (!text->empty() && count == 0)
      return error("--" + llvm::Twine(name) + "=0: at least 1");
  if (!batch && plan.empty() && from.empty())
    return error("--global-batch is needed: how many samples all devices share "
                 "in a step");
  if (batch > kLargestGlobalBatch)
    return error("--global-batch " + llvm::Twine(batch) + ": at most " +
                 llvm::Twine(kLargestGlobalBatch));
  planner.global_batch = std::max<int64_t>(1, batch);
  if (size)
    planner.microbatch_size = size;
  if (most)
    planner.max_devices = most;
  if (deadline.empty())
    return llvm::Error::success();
  llvm::Expected<double> limit = parseQuantity(deadline, Dimension::Seconds);
  if (!limit)
    return error("--deadline: " + llvm::toString(limit.takeError()));
  if (!(*limit > 0))
    return error("--deadline=" + deadline +
                 ": a time above 0, such as 2s, from the start of the process");
  planner.deadline = Deadline::in(*limit);
  return llvm::Error::success();
}

llvm::Error CommandLine::readChange(PlanOptions &options) const {
  options.from = from;
  options.lost = std::vector<std::string>(lost.begin(), lost.end());
  options.joined = std::vector<std::string>(joined.begin(), joined.end());
  options.has_batch = !globalBatch.empty();
  options.has_optimizer = optimizer.getNumOccurrences() > 0;
  options.has_owner = stateOwner.getNumOccurrences() > 0;
  if (from.empty()) {
    if (!lost.empty() || !joined.empty())
      return error("--lost and --joined need --from: the plan that ran before");
    if (speedWeight.getNumOccurrences() || moveWeight.getNumOccurrences())
      return error("--speed-weight and --move-weight are for --from");
    return llvm::Error::success();
  }
  if (!plan.empty())
    return error("--plan judges a plan, --from seeks another: give one");
  if (lost.empty() && joined.empty())
    return error("--from needs --lost or --joined: what has changed since?");
  for (auto [name, text, value] :
       {std::tuple("speed-weight", &speedWeight, &options.speed_weight),
        std::tuple("move-weight", &moveWeight, &options.move_weight)})
    if (!llvm::to_float(llvm::StringRef(*text), *value) ||
        !std::isfinite(*value) || *value < 0)
      return error("--" + llvm::Twine(name) + "=" + *text +
                   ": a number of at least 0");
  if (options.speed_weight == 0 && options.move_weight == 0)
    return error("--speed-weight and --move-weight are both 0: nothing counts");
  return llvm::Error::success();
}

/// What only a search needs, beside a plan that is given.
llvm::Error CommandLine::checkGivenPlan() const {
  if (plan.empty())
    return llvm::Error::success();
  llvm::SmallVector<const cl::Option *> searching = {
      &maxDevices, &whose, &deadline, &stateParts, std::addressof(allow)};
  if (compare != "none")
    searching.push_back(&compare);
  for (const cl::Option *option : searching)
    if (option->getNumOccurrences())
      return error("--" + option->ArgStr +
                   " is of the search, but --plan gives the plan");
  return llvm::Error::success();
}

llvm::Error CommandLine::readSailor(PlanOptions &options) const {
  if (cost != "sailor") {
    if (!profile.empty() || !sailorPlan.empty() || zone.getNumOccurrences())
      return error("--profile, --zone and --sailor-plan are for --cost=sailor");
    return llvm::Error::success();
  }
  if (profile.empty())
    return error("--cost=sailor needs --profile: the folder of its data");
  if (!from.empty() || !plan.empty() || precision != "fp32")
    return error("--cost=sailor has neither --from, --plan nor --precision: "
                 "profiles are what they are");
  if (std::vector<std::string> given = modelFile.arguments(); !given.empty())
    return error(given.front() + " is of a model's file, but --cost=sailor has "
                                 "published profiles of models");
  options.sailor_data = profile;
  options.sailor_zone = zone;
  options.sailor_output = sailorPlan;
  return llvm::Error::success();
}

llvm::Error CommandLine::readFinalists(PlanOptions &options) const {
  std::string problem;
  unsigned count = readNumber<unsigned>(finalists, problem);
  options.planner.threads =
      threads.empty() ? usableCores() : readNumber<unsigned>(threads, problem);
  options.measureTop = readNumber<unsigned>(measureTop, problem);
  if (!problem.empty())
    return error(problem);
  if (options.planner.threads == 0)
    return error("-j=0: at least 1");
  if (!measureTop.empty() && options.measureTop == 0)
    return error("--measure-top=0: at least 1");
  if (emulate && !options.measureTop)
    return error("--emulate is how --measure-top runs plans: give both");
  bool isAsked = count || options.measureTop;
  std::string where = !options.sailor_data.empty()           ? "--cost=sailor"
                      : !from.empty()                        ? "--from"
                      : options.precision != Precision::FP32 ? "--precision"
                                                             : "";
  if (isAsked && !where.empty())
    return error("--finalists and --measure-top are of programs as they run "
                 "today: not with " +
                 where);
  if (!finalists.empty() || !where.empty())
    options.finalists = count;
  if (!finalists.empty() && options.measureTop > count)
    return error("--measure-top=" + measureTop + " of --finalists=" +
                 finalists + ": of those that are simulated");
  for (std::vector<std::string> given :
       {modelFile.arguments(), machines.arguments()})
    options.arguments.insert(options.arguments.end(), given.begin(),
                             given.end());
  options.emulate = emulate;
  return llvm::Error::success();
}

llvm::Error CommandLine::readInference(PlanOptions &options) const {
  if (!modelFile.isInference()) {
    if (!objective.empty())
      return error("--objective is one of --mode=inference: a step of training "
                   "is planned to be short");
    return llvm::Error::success();
  }
  llvm::SmallVector<const cl::Option *> training = modelFile.trainingOptions();
  training.append({&optimizer, &schedule, &stateOwner, &stateParts,
                   std::addressof(allow), &from, &megatron});
  if (cost != "facts")
    training.push_back(&cost);
  for (const cl::Option *option : training)
    if (option->getNumOccurrences())
      return error("--" + option->ArgStr +
                   " is of training, but --mode=inference does not train");
  std::optional<PlanObjective> parsed = parsePlanObjective(objective);
  if (!parsed)
    return error(
        checkChoice("objective", objective, {"latency", "throughput"}));
  options.planner.objective = *parsed;
  return llvm::Error::success();
}

llvm::Error CommandLine::read(PlanOptions &options) const {
  if (model.empty())
    return error("which model? Give an ONNX file or a config.json; see --help");
  std::string wrong;
  ModelFile file = modelFile.read(wrong);
  if (!wrong.empty())
    return error(wrong);
  for (const std::string &problem :
       {checkChoice("optimizer", optimizer, {"sgd", "adam", "adamw", "none"}),
        schedule.empty() ? ""
                         : checkChoice("schedule", schedule, {"1f1b", "gpipe"}),
        stateParts.empty()
            ? ""
            : checkChoice("state-parts", stateParts, {"even", "uneven"}),
        checkChoice("precision", precision, {"fp32", "bf16", "fp16"}),
        checkChoice("cost", cost, {"facts", "sailor"}),
        checkChoice("tp", extents, {"free", "uniform"}),
        ModelOptions::check(file)})
    if (!problem.empty())
      return error(problem);
  options.model = std::move(file);
  options.model.path = findModelFile(model);
  options.machines = machines.read();
  if (!options.machines.hasRates())
    return error("which machines? Give --cluster or --hostfile; see --help");
  options.precision = *parsePrecision(precision);
  options.plan = plan, options.output = output;
  options.isJson = json, options.remarks = remarks;
  options.megatron = megatron;
  if (json && megatron)
    return error("--json prints numbers alone: leave out --megatron");

  PlannerOptions &planner = options.planner;
  if (llvm::Error problem = readChange(options))
    return problem;
  if (llvm::Error problem = checkGivenPlan())
    return problem;
  if (llvm::Error problem = readSailor(options))
    return problem;
  if (llvm::Error problem = readModes(planner))
    return problem;
  if (llvm::Error problem = readCounts(planner))
    return problem;
  planner.has_one_extent = extents == "uniform";
  if (planner.has_one_extent &&
      (planner.mode != PlannerMode::Joint || cost == "sailor" ||
       !from.empty() || !plan.empty()))
    return error("--tp=uniform is a limit of the joint search: not with "
                 "another --planner, --cost, --from or --plan");
  if (llvm::Error problem = readInference(options))
    return problem;
  planner.optimizer = *parseOptimizer(optimizer);
  if (modelFile.isInference())
    planner.optimizer = OptimizerKind::None;
  if (!schedule.empty())
    planner.schedule = *parseSchedule(schedule);
  planner.state_owner = stateOwner;
  if (!stateParts.empty()) {
    if (stateOwner != "spread" || cost == "sailor")
      return error("--state-parts is of state that is spread: not with "
                   "--state-owner or --cost=sailor");
    planner.state_parts =
        stateParts == "even" ? StateParts::Even : StateParts::Uneven;
  }
  for (llvm::StringRef what : allow) {
    if (what != "recompute" && what != "offload")
      return error("--allow=" + what + ": known are recompute and offload");
    (what == "offload" ? planner.allow_offload : planner.allow_recompute) =
        true;
  }
  return readFinalists(options);
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  ah_ignore_size_signal(); // which LLVM would have reported as a crash
  CommandLine commandLine;
  cl::HideUnrelatedOptions(
      {&placement, &modelOptions, &searchOptions, &outputOptions});
  if (!parseCommandLine(
          argc, argv, "autohet-plan",
          "Plans how a mixed cluster trains a transformer, and says what it "
          "will cost.\n\n"
          "  autohet-plan model.onnx --cluster c.yaml --global-batch 64\n"
          "  autohet-plan config.json --cluster c.yaml --global-batch 1024 "
          "--seq-len 2048 -o plan.json\n"))
    return 1;
  PlanOptions options;
  if (llvm::Error problem = commandLine.read(options)) {
    llvm::errs() << "autohet-plan: error: "
                 << llvm::toString(std::move(problem)) << "\n";
    return 1;
  }
  mlir::DialectRegistry dialects;
  dialects.insert<het::HetDialect, onnx::OnnxDialect, dist::DistDialect,
                  exec::ExecDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  DiagnosticPrinter printer(context, "autohet-plan");
  llvm::SmallString<128> folder;
  auto remove = llvm::scope_exit([&] {
    if (!folder.empty())
      llvm::sys::fs::remove_directories(folder);
  });
  if (options.measureTop) {
    if (std::error_code code =
            llvm::sys::fs::createUniqueDirectory("autohet-plan", folder)) {
      llvm::errs() << "autohet-plan: error: cannot make a folder for the runs: "
                   << code.message() << "\n";
      return 1;
    }
    options.work = folder.str();
  }
  mlir::LogicalResult done = options.sailor_data.empty()
                                 ? plan(options, context)
                                 : planWithSailor(options, context);
  return exitStatus(done, "autohet-plan");
}
