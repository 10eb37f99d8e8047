//===- Kernels.cpp - the kernels of each device's target --------------------===//

#include "Kernels.h"

#include "autohet/Passes/Codegen/Passes.h"
#include "autohet/Target/CPU/CompileKernels.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace autohet;

llvm::Expected<cpu::TargetOptions>
autohet::targetOf(const DeviceKind &kind, const cpu::TargetOptions &flags) {
  if (!flags.cpu.empty() || !flags.features.empty())
    return cpu::resolveTarget(flags);
  cpu::TargetOptions wanted;
  wanted.triple = kind.target.triple;
  for (StringRef feature : kind.target.features) {
    if (!wanted.features.empty())
      wanted.features += ",";
    if (!feature.starts_with("+") && !feature.starts_with("-"))
      wanted.features += "+";
    wanted.features += feature;
  }
  llvm::Expected<cpu::TargetOptions> target = cpu::resolveTarget(wanted);
  if (target)
    return target;
  return llvm::createStringError("device kind '" + kind.name +
                                 "': " + llvm::toString(target.takeError()));
}

static llvm::StringSet<> launchedBy(exec::ProgramOp program) {
  llvm::StringSet<> names;
  program.walk(
      [&](exec::LaunchOp launch) { names.insert(launch.getKernel()); });
  return names;
}

LogicalResult
KernelSet::compile(ModuleOp module,
                   const llvm::StringMap<cpu::TargetOptions> &deviceTargets,
                   unsigned threads) {
  targets = &deviceTargets;
  objects.clear();
  struct Need {
    const cpu::TargetOptions *target;
    llvm::StringSet<> kernels;
  };
  std::map<std::string, Need> needs; // by target
  for (auto program : module.getOps<exec::ProgramOp>()) {
    const cpu::TargetOptions &target =
        deviceTargets.find(program.getSymName())->second;
    Need &need = needs[target.str()];
    need.target = &target;
    for (const auto &entry : launchedBy(program))
      need.kernels.insert(entry.getKey());
  }
  Builder builder(module.getContext());
  for (const auto &[name, need] : needs) {
    SmallVector<func::FuncOp> kernels;
    for (auto kernel : module.getOps<func::FuncOp>())
      if (need.kernels.contains(kernel.getName()))
        kernels.push_back(kernel);
    FailureOr<SmallVector<cpu::KernelObject>> compiled = cpu::compileKernels(
        kernels, {registerKernelDialects, buildKernelPipeline}, *need.target,
        cache, threads);
    if (failed(compiled))
      return failure();
    for (auto [kernel, object] : llvm::zip_equal(kernels, *compiled)) {
      // Decided before code is generated: the same for all targets.
      if (object.scratchBytes)
        kernel->setAttr(exec::kScratchBytesAttr,
                        builder.getI64IntegerAttr(object.scratchBytes));
      objects[name][kernel.getName()] = std::move(object);
    }
  }
  return success();
}

KernelSet::Table KernelSet::of(exec::ProgramOp program) const {
  llvm::StringSet<> launched = launchedBy(program);
  Table table;
  std::string target = targets->find(program.getSymName())->second.str();
  if (auto found = objects.find(target); found != objects.end())
    for (const auto &[name, object] : found->second)
      if (launched.contains(name))
        table[name] = &object;
  return table;
}
