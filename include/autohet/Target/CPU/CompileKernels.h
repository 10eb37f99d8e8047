//===- CompileKernels.h - kernels to objects --------------------*- C++ -*-===//

#ifndef AUTOHET_TARGET_CPU_COMPILEKERNELS_H
#define AUTOHET_TARGET_CPU_COMPILEKERNELS_H

#include "autohet/Target/CPU/ObjectCache.h"
#include "autohet/Target/CPU/TargetOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include <functional>

namespace autohet::cpu {

/// How kernels become the LLVM dialect, which is the passes' business. Called
/// from several threads, each with a context of its own.
struct KernelLowering {
  /// The dialects that the pipeline passes through, and their interfaces.
  std::function<void(mlir::DialectRegistry &)> registerDialects;
  /// From a function of het ops to one of the runtime's kernel signature; it
  /// leaves `exec::kScratchBytesAttr` where the kernel wants memory.
  std::function<void(mlir::OpPassManager &)> buildPipeline;
};

/// Compiles kernels: functions from static tensors to static tensors whose
/// bodies are het ops. Entry i of the result belongs to kernel i; kernels of
/// equal body and target are one object. Works in parallel on `threads`
/// threads. Emits a diagnostic at the kernel and fails if one cannot be
/// compiled.
///
/// A kernel's operands are its inputs, its results, and where `scratchBytes` is
/// not 0 that much memory, aligned to 64 bytes. None that it writes may overlap
/// another.
mlir::FailureOr<llvm::SmallVector<KernelObject>>
compileKernels(llvm::ArrayRef<mlir::func::FuncOp> kernels,
               const KernelLowering &lowering, const TargetOptions &target,
               ObjectCache &cache, unsigned threads = 2);

} // namespace autohet::cpu

#endif
