//===- SimulateFile.cpp - runs programs without computing -------------------===//
//
// Programs are read, or made from a plan as autohet-compile makes them but
// without compiling a kernel; then they run in the event simulator against the
// cluster file's rates.
//
//===----------------------------------------------------------------------===//

#include "SimulateFile.h"
#include "Options/Diagnostics.h"
#include "Options/Programs.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Model/Units.h"
#include "autohet/Passes/Schedule/Passes.h"
#include "autohet/Passes/Schedule/SimulatePrograms.h"
#include "autohet/Support/InputFile.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace autohet;

namespace {

class Simulator {
public:
  Simulator(const SimulateOptions &options, MLIRContext &context)
      : options(options), context(context) {}

  LogicalResult run();

private:
  StringRef clusterText();
  LogicalResult readCluster();
  LogicalResult readPrograms(StringRef path);
  LogicalResult makePrograms();
  LogicalResult error(const llvm::Twine &message) {
    return emitError(UnknownLoc::get(&context), message);
  }
  LogicalResult writeTimeline(const SimProgram &programs,
                              const SimResult &result);
  std::vector<DeviceMemory> measureMemory();

  const SimulateOptions &options;
  MLIRContext &context;
  Cluster cluster;
  OwningOpRef<ModuleOp> module;
};

/// Of a compiled job's programs.
StringRef Simulator::clusterText() {
  auto text = (*module)->getAttrOfType<StringAttr>(dist::kClusterAttr);
  return text ? text.getValue() : StringRef();
}

LogicalResult Simulator::readCluster() {
  std::vector<std::string> warnings;
  llvm::Expected<Cluster> read =
      options.machines.hasRates()
          ? loadCluster(options.machines, warnings)
          : parseCluster(clusterText(), options.input, warnings);
  if (!read)
    return emitProblem(context, read.takeError());
  emitWarnings(context, warnings);
  cluster = std::move(*read);
  return success();
}

LogicalResult Simulator::readPrograms(StringRef path) {
  auto bytes = readInputFile(path, kMostModelBytes);
  if (!bytes)
    return error("'" + path + "': " + llvm::toString(bytes.takeError()));
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*bytes), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  if (module->getOps<exec::ProgramOp>().empty())
    return error("'" + path +
                 "' has no programs; autohet-compile --emit=programs prints "
                 "some");
  return success();
}

LogicalResult Simulator::makePrograms() {
  llvm::Expected<Plan> plan = loadPlan(options.input);
  if (!plan)
    return emitProblem(context, plan.takeError());
  if (options.model.path.empty())
    return error("which model is '" + options.input +
                 "' a plan of? Give --model FILE");
  ModelsBySize models;
  if (failed(addModels(models, options.model, *plan, context)))
    return failure();
  UnitTable units = collectUnits(modelOf(*models.front().second));
  std::vector<std::string> problems = verifyPlan(*plan, units, cluster);
  for (const std::string &problem : problems)
    (void)error(options.input + ": " + problem);
  if (!problems.empty())
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> placed =
      placeModels(models, *plan, cluster, context);
  if (failed(placed))
    return failure();
  module = std::move(*placed);
  return success(succeeded(orderPrograms(*module, *plan)) &&
                 succeeded(planMemory(*module)));
}

LogicalResult Simulator::writeTimeline(const SimProgram &programs,
                                       const SimResult &result) {
  std::error_code code;
  llvm::raw_fd_ostream file(options.timeline, code);
  if (!code) {
    file << formatChromeTrace(programs, result);
    file.flush();
    code = file.error();
    file.clear_error();
  }
  if (code)
    return error("cannot write '" + options.timeline + "': " + code.message());
  return success();
}

std::vector<DeviceMemory> Simulator::measureMemory() {
  SmallVector<exec::ProgramOp> programs(module->getOps<exec::ProgramOp>());
  llvm::sort(programs, [](exec::ProgramOp a, exec::ProgramOp b) {
    return a.getRank() < b.getRank();
  });
  std::vector<DeviceMemory> memory;
  for (exec::ProgramOp program : programs) {
    if (!program.getSpaceBytes())
      continue;
    DeviceMemory &entry = memory.emplace_back();
    entry.name = program.getSymName().str();
    entry.use = memoryUse(program);
    entry.tensors = tensorsAtPeak(program);
    entry.has_scratch = llvm::any_of(
        program.getBody().getOps<exec::BufferOp>(), [](exec::BufferOp buffer) {
          return buffer.getName() == kScratchBuffer;
        });
    if (std::optional<unsigned> device = cluster.findDevice(entry.name))
      entry.limit_bytes = cluster.kindOf(*device).memory_bytes;
  }
  return memory;
}

LogicalResult Simulator::run() {
  SmallString<128> input(options.input);
  if (llvm::sys::fs::is_directory(input)) {
    llvm::sys::path::append(input, "programs.mlirbc");
    if (!llvm::sys::fs::exists(input))
      return error("'" + options.input +
                   "' is no compiled job: it has no programs.mlirbc");
  }
  if (llvm::sys::path::extension(input) == ".json") {
    if (failed(readCluster()) || failed(makePrograms()))
      return failure();
  } else {
    if (failed(readPrograms(input)))
      return failure();
    if (!options.machines.hasRates() && clusterText().empty())
      return error("which machines? Give --cluster or --hostfile; see --help");
    if (failed(readCluster()))
      return failure();
  }
  FailureOr<SimProgram> programs = simProgramOf(*module, cluster);
  if (failed(programs))
    return failure();
  SimOptions steps;
  steps.steps = options.steps;
  llvm::Expected<SimResult> result = simulate(*programs, steps);
  if (!result)
    return error("the programs wait for each other forever: " +
                 llvm::toString(result.takeError()));
  if (!options.timeline.empty() && failed(writeTimeline(*programs, *result)))
    return failure();
  llvm::outs() << formatSimulation(summarize(*programs, *result),
                                   measureMemory(), cluster, options.tensors);
  return success();
}

} // namespace

LogicalResult autohet::simulateFile(const SimulateOptions &options,
                                    MLIRContext &context) {
  return Simulator(options, context).run();
}
