//===- EmitObject.cpp - LLVM modules to object files ----------------------===//
//
// In process: four command-line tools would add more start-up time than most
// kernels take to compile.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/EmitObject.h"
#include "BackEnd.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;
using autohet::cpu::OptLevel;
using KernelTarget = autohet::cpu::TargetOptions; // LLVM has one of that name

namespace {

Expected<std::unique_ptr<TargetMachine>>
createTargetMachine(const KernelTarget &options, OptLevel level) {
  Expected<const Target *> target = autohet::cpu::findBackEnd(options.triple);
  if (!target)
    return target.takeError();
  Triple triple(options.triple);
  std::unique_ptr<TargetMachine> machine((*target)->createTargetMachine(
      triple, options.cpu, options.features, llvm::TargetOptions(), Reloc::PIC_,
      std::nullopt,
      level == OptLevel::None ? CodeGenOptLevel::None
                              : CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("LLVM has no code generator for " +
                             options.triple);
  return machine;
}

void setFunctionAttributes(Module &module, const KernelTarget &target) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(Attribute::NoUnwind);
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    // Without it auto-vectorised loops are half as wide as the registers.
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.preferVectorWidth));
  }
}

void optimize(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  PassBuilder builder(&machine, tuning);
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3)
      .run(module, modules);
}

} // namespace

Expected<std::string> autohet::cpu::emitObject(Module &module,
                                               const KernelTarget &target,
                                               OptLevel level) {
  auto machine = createTargetMachine(target, level);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple(Triple(target.triple));
  module.setDataLayout((*machine)->createDataLayout());
  setFunctionAttributes(module, target);
  std::string problems;
  raw_string_ostream problemStream(problems);
  if (verifyModule(module, &problemStream))
    return createStringError("generated LLVM IR is invalid: " + problems);
  if (level == OptLevel::Kernels)
    optimize(module, **machine);
  SmallString<0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager codegen;
  if ((*machine)->addPassesToEmitFile(codegen, stream, nullptr,
                                      CodeGenFileType::ObjectFile))
    return createStringError("LLVM cannot emit objects for " + target.triple);
  codegen.run(module);
  return object.str().str();
}

Expected<std::string> autohet::cpu::emitObject(mlir::ModuleOp module,
                                               const KernelTarget &target,
                                               OptLevel level) {
  LLVMContext context;
  std::unique_ptr<Module> translated =
      mlir::translateModuleToLLVMIR(module, context);
  if (!translated)
    return createStringError("translation to LLVM IR failed");
  return emitObject(*translated, target, level);
}

void autohet::cpu::registerCpuTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}
