//===- WriteJob.cpp - the folder of a compiled job --------------------------===//
//
// Programs become tables, tables and kernels one executable a node. Files are
// written beside the output folder's own and take their places together, when
// all is done.
//
//===----------------------------------------------------------------------===//

#include "WriteJob.h"
#include "Options/Diagnostics.h"
#include "OutputFolder.h"
#include "Outputs.h"

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Schedule/MemoryUse.h"
#include "autohet/Program/EncodeProgram.h"
#include "autohet/Report/Report.h"
#include "autohet/Support/Hash.h"
#include "autohet/Target/CPU/EmitNodeImage.h"
#include "autohet/Target/CPU/LinkNode.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace autohet;

namespace {

/// What is linked to one executable.
struct Node {
  cpu::NodeImage image;
  llvm::MapVector<StringRef, StringRef> objects; ///< by kernel symbol
};

class Writer {
public:
  explicit Writer(const CompiledJob &job) : job(job), module(job.module) {}

  LogicalResult write();

private:
  void noteFacts();
  LogicalResult addRank(exec::ProgramOp program, const ProgramFacts &ofAll);
  LogicalResult collectNodes();
  LogicalResult linkNodes();
  LogicalResult describe();

  Report describeJob();
  LogicalResult error(llvm::Error problem) {
    return emitProblem(*module.getContext(), std::move(problem));
  }

  const CompiledJob &job;
  ModuleOp module;
  ManifestFacts facts;
  std::vector<Node> nodes;
  std::string hashed; ///< all that decides what is computed
  std::string manifest;
  OutputFolder output;
};

void Writer::noteFacts() {
  // A file's name is any bytes, a job's is text.
  facts.name =
      llvm::json::fixUTF8(llvm::sys::path::stem(job.options.modelFile.path));
  facts.structureHash = job.units.structure_hash;
  facts.planHash = planHash(job.plan);
  facts.globalBatch = job.plan.global_batch;
  facts.optimizer = optimizerName(job.plan.optimizer).str();
  facts.targets = &job.targets;
  facts.cluster = &job.cluster;
}

/// Of the model: a stage in the middle of a pipeline has no tokens.
int64_t findSequenceLength(ModuleOp module) {
  int64_t length = 0;
  module->walk([&](exec::InputOp input) {
    auto type = cast<RankedTensorType>(input.getType());
    if (input.getKind() == "tokens" || input.getKind() == "labels")
      length = std::max(length, type.getRank() > 1 ? type.getDimSize(1) : 1);
  });
  return length;
}

LogicalResult Writer::addRank(exec::ProgramOp program,
                              const ProgramFacts &ofAll) {
  StringRef nodeName = program.getSymName().rsplit('/').first;
  if (facts.nodeNames.empty() || facts.nodeNames.back() != nodeName) {
    facts.nodeNames.push_back(nodeName.str());
    nodes.emplace_back();
    nodes.back().image.node = nodes.size() - 1;
  }
  Node &node = nodes.back();
  unsigned clusterDevice = *job.cluster.findDevice(program.getSymName());
  ProgramFacts about = ofAll;
  about.node = node.image.node;
  about.deviceIndex = job.cluster.devices()[clusterDevice].index;
  facts.ranks.push_back(
      {program, node.image.node, about.deviceIndex, clusterDevice});

  cpu::DeviceImage device;
  llvm::StringMap<unsigned> kernelIndex;
  for (const auto &[name, kernel] : job.kernels.of(program)) {
    kernelIndex[name] = device.kernelSymbols.size();
    device.kernelSymbols.push_back(kernel->symbol);
    device.kernelNames.push_back(name.str());
    // Equal kernels are one object.
    node.objects[kernel->symbol] = kernel->object;
    hashed += kernel->symbol;
  }
  FailureOr<std::string> blob = encodeProgram(program, kernelIndex, about);
  if (failed(blob))
    return failure();
  hashed += *blob;
  device.program = std::move(*blob);
  node.image.devices.push_back(std::move(device));
  return success();
}

LogicalResult Writer::collectNodes() {
  ProgramFacts ofAll;
  ofAll.structureHash = job.units.structure_hash;
  ofAll.optimizer = optimizerName(job.plan.optimizer).str();
  ofAll.objective = job.options.inference ? "none" : job.options.objective;
  ofAll.ignoreIndex = job.options.modelFile.ignore_index;
  ofAll.sequenceLength = findSequenceLength(module);
  SmallVector<exec::ProgramOp> programs(module.getOps<exec::ProgramOp>());
  llvm::sort(programs, [](exec::ProgramOp a, exec::ProgramOp b) {
    return a.getRank() < b.getRank();
  });
  for (exec::ProgramOp program : programs)
    if (failed(addRank(program, ofAll)))
      return failure();
  facts.programHash = hashBytes(hashed);
  manifest = formatManifest(facts);
  return success();
}

LogicalResult Writer::linkNodes() {
  for (Node &node : nodes) {
    node.image.manifest = manifest;
    node.image.nodeCount = nodes.size();
    // Tables hold no code: any of the node's targets will do.
    llvm::Expected<std::string> tables = cpu::emitNodeImage(
        node.image, *facts.targetsOf(node.image.node).front());
    if (!tables)
      return error(tables.takeError());
    SmallVector<StringRef> inputs = {*tables};
    for (const auto &[symbol, object] : node.objects) {
      inputs.push_back(object);
      if (job.options.emit == Emit::Objects)
        if (llvm::Error problem =
                writeFile(output.pathOf(symbol + ".o"), object))
          return error(std::move(problem));
    }
    cpu::LinkOptions link;
    link.runtimeLibrary = job.options.runtimeLibrary;
    std::string executable =
        output.pathOf("node" + llvm::Twine(node.image.node));
    if (llvm::Error problem = cpu::linkNode(inputs, executable, link))
      return error(std::move(problem));
  }
  return success();
}

/// The planned report, with the memory that the programs have.
Report Writer::describeJob() {
  Report report = describePlan(facts.name, job.planned, job.units, job.cluster);
  report.comparison.insert(report.comparison.begin(),
                           {"the programs, simulated", job.simulated_s});
  for (ReportDevice &device : report.devices) {
    auto program = module.lookupSymbol<exec::ProgramOp>(device.name);
    if (!program)
      continue;
    MemoryUse use = memoryUse(program);
    device.memory = {
        {"parameters", double(use.parameters)},
        {"gradients", double(use.gradients)},
        {"optimizer state", double(use.states)},
        {"activations", double(use.activations + use.messages)},
        {"temporaries", double(use.scratch + use.constants + use.gaps)}};
  }
  return report;
}

LogicalResult Writer::describe() {
  llvm::StringSet<> trained;
  module->walk([&](exec::ParameterOp parameter) {
    if (parameter.getGradient())
      trained.insert(parameter.getName());
  });
  llvm::Expected<std::string> weights =
      formatWeightsIndex(module, job.units.structure_hash, trained);
  if (!weights)
    return error(weights.takeError());
  llvm::Expected<std::string> bytecode =
      formatPrograms(module, job.options.machines);
  if (!bytecode)
    return error(bytecode.takeError());
  for (auto [name, text] :
       {std::pair<StringRef, std::string>{"plan.json", formatPlan(job.plan)},
        {"programs.mlirbc", std::move(*bytecode)},
        {"weights.index", std::move(*weights)},
        {"manifest.json", manifest},
        {"report.html", formatReport(describeJob())}})
    if (llvm::Error problem = writeFile(output.pathOf(name), text))
      return error(std::move(problem));
  return success();
}

LogicalResult Writer::write() {
  noteFacts();
  if (failed(collectNodes()))
    return failure();
  if (llvm::Error problem = output.open(job.options.output))
    return error(std::move(problem));
  if (failed(linkNodes()) || failed(describe()))
    return failure();
  if (llvm::Error problem = output.commit())
    return error(std::move(problem));
  return success();
}

} // namespace

LogicalResult autohet::writeJob(const CompiledJob &job) {
  return Writer(job).write();
}
