//===- autohet-simulate.cpp - options of the simulator ----------------------===//

#include "Options/Diagnostics.h"
#include "Options/ModelOptions.h"
#include "SimulateFile.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/runtime/streams.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

namespace cl = llvm::cl;
using namespace autohet;

namespace {

cl::OptionCategory inputs("Inputs"), modelOptions("Model"),
    outputOptions("Output");

struct CommandLine {
  cl::opt<std::string> input{
      cl::Positional,
      cl::desc("<folder of a job | plan.json | programs.mlir>")};
  cl::opt<std::string> model{
      "model", cl::desc("The model that the plan is of (ONNX or config.json)"),
      cl::value_desc("file"), cl::cat(inputs)};
  ClusterOptions machines{inputs};
  ModelOptions modelFile{modelOptions};
  cl::opt<std::string> steps{
      "steps", cl::desc("Steps to run; the last one is reported"),
      cl::value_desc("N"), cl::init("3"), cl::cat(outputOptions)};
  cl::opt<std::string> timeline{
      "timeline", cl::desc("Write all steps for Perfetto (ui.perfetto.dev)"),
      cl::value_desc("file"), cl::cat(outputOptions)};
  cl::opt<std::string> tensors{
      "tensors", cl::desc("Tensors to name for each device, largest first"),
      cl::value_desc("N"), cl::init("5"), cl::cat(outputOptions)};

  /// What is wrong; empty if nothing.
  std::string read(SimulateOptions &options) const {
    if (input.empty())
      return "what to simulate? Give a plan or programs; see --help";
    std::string problem;
    options.input = input;
    options.model = modelFile.read(problem);
    options.model.path = findModelFile(model);
    options.machines = machines.read();
    options.steps = readNumber<int64_t>(steps, problem);
    options.tensors = readNumber<unsigned>(tensors, problem);
    options.timeline = timeline;
    if (!problem.empty())
      return problem;
    if (options.steps < 1 || options.steps > 1000)
      return "--steps " + steps + ": wanted 1 to 1000";
    bool isPlan = llvm::sys::path::extension(options.input) == ".json";
    std::vector<std::string> ofModel = modelFile.arguments();
    if (model.getNumOccurrences())
      ofModel.push_back("--model");
    if (!isPlan && !ofModel.empty())
      return llvm::StringRef(ofModel.front()).split('=').first.str() +
             " is for a plan: '" + options.input +
             "' holds programs, whose model is read already";
    if (!options.machines.include.empty() && !options.machines.hasRates())
      return "--include says nothing without --cluster or --hostfile: a "
             "compiled job's devices are those of its programs";
    if (timeline.getNumOccurrences() && timeline.empty())
      return "--timeline: found nothing, wanted a file";
    if (isPlan && !options.machines.hasRates())
      return "which machines? Give --cluster or --hostfile; see --help";
    return ModelOptions::check(options.model);
  }
};

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  ah_ignore_size_signal(); // which LLVM would have reported as a crash
  CommandLine commandLine;
  cl::HideUnrelatedOptions({&inputs, &modelOptions, &outputOptions});
  if (!parseCommandLine(
          argc, argv, "autohet-simulate",
          "Runs a job's programs without computing: how long, where time and "
          "memory go.\n\n"
          "  autohet-simulate plan.json --model config.json --cluster c.yaml\n"
          "  autohet-simulate programs.mlir --cluster c.yaml --timeline "
          "t.json\n"))
    return 1;
  SimulateOptions options;
  if (std::string problem = commandLine.read(options); !problem.empty()) {
    llvm::errs() << "autohet-simulate: error: " << problem << "\n";
    return 1;
  }
  mlir::MLIRContext context;
  context.loadDialect<het::HetDialect, onnx::OnnxDialect, dist::DistDialect,
                      exec::ExecDialect, mlir::func::FuncDialect>();
  DiagnosticPrinter printer(context, "autohet-simulate");
  return exitStatus(simulateFile(options, context), "autohet-simulate");
}
