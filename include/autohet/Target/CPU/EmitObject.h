//===- EmitObject.h - LLVM modules to object files --------------*- C++ -*-===//

#ifndef AUTOHET_TARGET_CPU_EMITOBJECT_H
#define AUTOHET_TARGET_CPU_EMITOBJECT_H

#include "autohet/Target/CPU/TargetOptions.h"
#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
} // namespace llvm

namespace autohet::cpu {

/// How hard LLVM tries.
enum class OptLevel {
  /// For tables and glue: no optimisation.
  None,
  /// For kernels: LLVM's -O3, loop vectoriser included.
  Kernels,
};

/// Compiles `module` to a position-independent ELF object for `target`.
/// Thread-safe as long as no two threads share the module's LLVMContext.
llvm::Expected<std::string>
emitObject(llvm::Module &module, const TargetOptions &target, OptLevel level);

/// Translates a module of the LLVM dialect and compiles it. The module's
/// context needs the translations (see `registerCpuTranslations`).
llvm::Expected<std::string>
emitObject(mlir::ModuleOp module, const TargetOptions &target, OptLevel level);

/// Registers what translation to LLVM IR needs.
void registerCpuTranslations(mlir::DialectRegistry &registry);

} // namespace autohet::cpu

#endif
