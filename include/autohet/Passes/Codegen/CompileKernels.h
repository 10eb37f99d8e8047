//===- CompileKernels.h - kernels to objects --------------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_CODEGEN_COMPILEKERNELS_H
#define AUTOHET_PASSES_CODEGEN_COMPILEKERNELS_H

#include "autohet/Target/CPU/ObjectCache.h"
#include "autohet/Target/CPU/TargetOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace autohet {

/// Compiles kernels: functions from static tensors to static tensors whose
/// bodies are het ops. Entry i of the result belongs to kernel i; kernels of
/// equal body and target are one object. Works in parallel on `threads`
/// threads. Emits a diagnostic at the kernel and fails if one cannot be
/// compiled.
///
/// A kernel's operands are its inputs, its results, and where `scratchBytes` is
/// not 0 that much memory, aligned to 64 bytes. None that it writes may overlap
/// another.
mlir::FailureOr<llvm::SmallVector<cpu::KernelObject>>
compileKernels(llvm::ArrayRef<mlir::func::FuncOp> kernels,
               const cpu::TargetOptions &target, cpu::ObjectCache &cache,
               unsigned threads = 2);

} // namespace autohet

#endif
