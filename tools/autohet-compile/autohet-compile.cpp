//===- autohet-compile.cpp - options of the compiler ------------------------===//

#include "Compile.h"
#include "Options/Diagnostics.h"
#include "Options/Inputs.h"
#include "Options/ModelOptions.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Job/JobFile.h"
#include "autohet/runtime/streams.h"

#include "core/Options.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

namespace cl = llvm::cl;
using namespace autohet;

namespace {

cl::OptionCategory placement("Placement"), modelOptions("Model"),
    outputOptions("Output");

/// What the job file's section `run` may hold.
std::vector<JobOption> jobRunOptions() {
  std::vector<JobOption> options = {{"emulate", "", ""}};
  for (const runtime::OptionInfo &info : runtime::jobOptionInfos())
    options.push_back(
        {info.name, info.value ? info.value : "", info.help, info.repeats});
  return options;
}

constexpr std::pair<llvm::StringLiteral, Emit> emits[] = {
    {"imported", Emit::Imported},   {"differentiated", Emit::Differentiated},
    {"units", Emit::Units},         {"planned", Emit::Planned},
    {"scheduled", Emit::Scheduled}, {"programs", Emit::Programs},
    {"objects", Emit::Objects}};

struct CommandLine {
  cl::opt<std::string> model{cl::Positional,
                             cl::desc("<model.onnx | config.json>")};
  cl::opt<std::string> job{
      "job",
      cl::desc("Take options from a job file (YAML); the command line wins"),
      cl::value_desc("file")};

  ClusterOptions machines{placement};
  cl::opt<std::string> plan{
      "plan", cl::desc("A plan to follow (JSON); default: one is made"),
      cl::value_desc("file"), cl::cat(placement)};
  cl::opt<std::string> globalBatch{
      "global-batch", cl::desc("Samples a step, on all devices together"),
      cl::value_desc("N"), cl::cat(placement)};
  cl::opt<std::string> microbatch{
      "microbatch",
      cl::desc("Samples a microbatch; default: as in "
               "the file, else the planner's choice"),
      cl::value_desc("N"), cl::cat(placement)};
  cl::opt<std::string> planner{
      "planner",
      cl::desc("What plan to make: asymmetric (the best one; replicas and "
               "stages may differ) or symmetric (the best grid of equal parts, "
               "to compare with)"),
      cl::value_desc("kind"), cl::init("asymmetric"), cl::cat(placement)};
  cl::opt<std::string> schedule{
      "schedule",
      cl::desc("Order of microbatches without a plan: 1f1b or gpipe; default: "
               "the better"),
      cl::value_desc("name"), cl::cat(placement)};
  cl::opt<std::string> stateOwner{
      "state-owner",
      cl::desc(
          "Who updates a parameter without a plan: spread, first or a device"),
      cl::init("spread"), cl::cat(placement)};

  ModelOptions modelFile{modelOptions};
  cl::list<std::string> binds{
      "bind",
      cl::desc("Where an input comes from that data files do not have: "
               "tokens, labels, ones, zeros, arange or file; a .npy or .pb "
               "file: it always has that value"),
      cl::value_desc("NAME=KIND"), cl::cat(modelOptions)};
  cl::opt<std::string> objective{
      "objective",
      cl::desc("Labels: causal (the next token), masked or given; in "
               "inference, what the plan is best in: latency or throughput"),
      cl::value_desc("kind"), cl::cat(modelOptions)};
  cl::opt<std::string> optimizer{
      "optimizer",
      cl::desc("sgd, adam or adamw; default: as in --plan, else adamw"),
      cl::value_desc("kind"), cl::init("adamw"), cl::cat(modelOptions)};

  cl::opt<std::string> output{
      "o", cl::desc("Folder for the executables; default: out"),
      cl::value_desc("folder"), cl::init("out"), cl::cat(outputOptions)};
  cl::opt<std::string> emit{
      "emit",
      cl::desc("Stop early and print: imported (the model in het, with trained "
               "and untrained constants), differentiated (with loss and "
               "gradients, in units), units (those that a plan may place, as "
               "JSON), planned (each device's function), scheduled or programs "
               "(each device's program); or objects: keep the kernels' object "
               "files in the folder"),
      cl::value_desc("what"), cl::cat(outputOptions)};
  cl::opt<std::string> cacheFolder{
      "kernel-cache", cl::desc("Folder for compiled kernels, by content"),
      cl::value_desc("folder"), cl::cat(outputOptions)};
  cl::opt<std::string> runtimeLibrary{
      "runtime-library", cl::desc("The runtime; default: beside this tool"),
      cl::value_desc("file"), cl::cat(outputOptions)};
  cl::opt<std::string> target{
      "target-cpu",
      cl::desc("LLVM's name of the oldest CPU that must run it; default: what "
               "the cluster file says of a device's kind, else this one"),
      cl::value_desc("cpu"), cl::cat(outputOptions)};
  cl::opt<std::string> features{
      "target-features", cl::desc("LLVM's features beyond that, '+avx2,+fma'"),
      cl::value_desc("list"), cl::cat(outputOptions)};
  cl::opt<std::string> threads{"j", cl::desc("Threads that compile kernels"),
                               cl::init("2"), cl::value_desc("N"),
                               cl::cat(outputOptions)};

  /// Whether a job file may hold exactly what the command line may.
  static bool jobTableAgrees() {
    auto isOurs = [](const cl::Option *option) {
      return llvm::any_of(
          option->Categories, [](const cl::OptionCategory *category) {
            return category == &placement || category == &modelOptions ||
                   category == &outputOptions;
          });
    };
    size_t count = 0; // of ours but -o, which is the key `output`
    for (const auto &option : cl::getRegisteredOptions())
      count += isOurs(option.second) && option.first != "o";
    return count == compileOptions().size() &&
           llvm::all_of(compileOptions(), [&](const JobOption &option) {
             return isOurs(cl::getRegisteredOptions().lookup(option.name));
           });
  }

  /// What the job file says and the command line does not. False after an
  /// error.
  bool takeFromJob() {
    auto &registered = cl::getRegisteredOptions();
    assert(jobTableAgrees() &&
           "lib/Job/CompileOptions.cpp and this file name different options");
    llvm::Expected<JobFile> file = readJobFile(job, jobRunOptions());
    if (!file) {
      llvm::errs() << llvm::toString(file.takeError()) << "\n";
      return false;
    }
    llvm::StringSet<> typed;
    for (const auto &option : registered)
      if (option.second->getNumOccurrences())
        typed.insert(option.first);
    for (const JobArgument &argument : file->compile)
      if (!typed.contains(argument.name) &&
          registered.lookup(argument.name)
              ->addOccurrence(0, argument.name,
                              llvm::StringRef(argument.text).split('=').second))
        return false; // it has said why
    if (model.empty())
      model = file->model;
    if (!output.getNumOccurrences() && !file->output.empty())
      output = file->output;
    return true;
  }

  /// An option that says how to train, where nothing is trained.
  std::string findTrainingOption() const {
    if (!modelFile.isInference())
      return "";
    llvm::SmallVector<const cl::Option *> training =
        modelFile.trainingOptions();
    training.append({&optimizer, &schedule, &stateOwner});
    for (const cl::Option *option : training)
      if (option->getNumOccurrences())
        return ("--" + option->ArgStr +
                " says how to train, but --mode=inference does not train")
            .str();
    return "";
  }

  /// `problem`: a number that is none.
  CompileOptions read(std::string &problem) const {
    CompileOptions options;
    options.modelFile = modelFile.read(problem);
    options.modelFile.path = findModelFile(model);
    options.output = output;
    options.planner =
        planner == "symmetric" ? PlannerMode::Symmetric : PlannerMode::Joint;
    if (problem.empty())
      problem = checkChoice("planner", planner, {"asymmetric", "symmetric"});
    if (!emit.empty()) {
      std::vector<llvm::StringRef> known;
      for (auto [name, what] : emits) {
        known.push_back(name);
        if (emit == name)
          options.emit = what;
      }
      if (std::string unknown = checkChoice("emit", emit, known);
          problem.empty())
        problem = unknown;
    }
    options.machines = machines.read(), options.plan = plan;
    options.globalBatch = readNumber<int64_t>(globalBatch, problem);
    options.microbatch = readNumber<int64_t>(microbatch, problem);
    options.schedule = schedule, options.stateOwner = stateOwner;
    options.isStateOwnerGiven = stateOwner.getNumOccurrences();
    options.isOptimizerGiven = optimizer.getNumOccurrences();
    options.binds.assign(binds.begin(), binds.end());
    options.objective = objective, options.optimizer = optimizer;
    options.isObjectiveGiven = !objective.empty();
    options.inference = options.modelFile.inference;
    if (options.inference)
      options.optimizer = "none";
    else if (options.objective.empty())
      // Labels of mse are numbers, which nothing makes of tokens.
      options.objective = options.modelFile.loss == "mse" ? "given" : "causal";
    options.modelFile.prepare_graph = [given = options.binds](auto graph) {
      return bindValues(graph, given);
    };
    options.cacheFolder = cacheFolder, options.runtimeLibrary = runtimeLibrary;
    options.target = target, options.features = features,
    options.threads = readNumber<unsigned>(threads, problem);
    return options;
  }
};

/// What options say that no later step would notice.
std::string findWrongOption(const CompileOptions &options) {
  if (!options.inference && options.modelFile.loss == "mse" &&
      (options.objective == "causal" || options.objective == "masked"))
    return "--loss=mse and --objective=" + options.objective +
           " contradict each other: labels are numbers of the output's shape, "
           "which no tokens are; wanted --objective=given";
  for (const std::string &problem :
       {options.inference ? ""
                          : checkChoice("optimizer", options.optimizer,
                                        {"sgd", "adam", "adamw"}),
        options.inference ? parsePlanObjective(options.objective)
                                ? ""
                                : checkChoice("objective", options.objective,
                                              {"latency", "throughput"})
                          : checkChoice("objective", options.objective,
                                        {"causal", "masked", "given"}),
        options.schedule.empty()
            ? ""
            : checkChoice("schedule", options.schedule, {"1f1b", "gpipe"}),
        ModelOptions::check(options.modelFile)})
    if (!problem.empty())
      return problem;
  for (llvm::StringRef bind : options.binds) {
    auto [name, kind] = bind.split('=');
    if (isValueFile(kind))
      continue;
    std::string problem =
        checkChoice("bind " + name.str(), kind,
                    {"tokens", "labels", "ones", "zeros", "arange", "file"});
    if (!problem.empty())
      return problem;
  }
  if (options.globalBatch < 0 || options.microbatch < 0)
    return "--global-batch and --microbatch are counts of samples";
  return "";
}

} // namespace

int main(int argc, char **argv) {
  ah_hold_standard_streams();
  llvm::InitLLVM init(argc, argv);
  ah_ignore_size_signal(); // which LLVM would have reported as a crash
  CommandLine commandLine;
  cl::HideUnrelatedOptions({&placement, &modelOptions, &outputOptions});
  if (!parseCommandLine(
          argc, argv, "autohet-compile",
          "Compiles a transformer for a mixed cluster: one executable a "
          "node.\n\n"
          "  autohet-compile model.onnx --global-batch 8 -o out     this "
          "machine as one device\n"
          "  autohet-compile model.onnx --cluster c.yaml --global-batch 64 -o "
          "out\n"
          "                                                         plans for "
          "the cluster\n"
          "  autohet-compile model.onnx --cluster c.yaml --plan p.json -o out\n"
          "  autohet-run out --steps 100 --data tokens.bin --data-dtype "
          "uint16\n"
          "                                                         trains "
          "it\n"))
    return 1;
  if (!commandLine.job.empty() && !commandLine.takeFromJob())
    return 1;
  if (commandLine.model.empty()) {
    llvm::errs() << "autohet-compile: error: which model? Give an ONNX file "
                    "or a config.json; see --help\n";
    return 1;
  }
  std::string problem;
  CompileOptions options = commandLine.read(problem);
  if (problem.empty())
    problem = commandLine.findTrainingOption();
  if (problem.empty())
    problem = findWrongOption(options);
  if (!problem.empty()) {
    llvm::errs() << "autohet-compile: error: " << problem << "\n";
    return 1;
  }
  mlir::MLIRContext context;
  context.loadDialect<het::HetDialect, onnx::OnnxDialect, dist::DistDialect,
                      exec::ExecDialect, mlir::func::FuncDialect>();
  DiagnosticPrinter printer(context, "autohet-compile");
  return exitStatus(compile(options, context), "autohet-compile");
}
