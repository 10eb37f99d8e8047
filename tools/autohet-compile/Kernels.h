//===- Kernels.h - the kernels of each device's target ---------*- C++ -*-===//
//
// Device kinds may name different CPUs. A kernel is compiled once for each of
// the targets whose devices launch it, and a device's table points to those of
// its own.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_COMPILE_KERNELS_H
#define AUTOHET_TOOLS_COMPILE_KERNELS_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Target/CPU/ObjectCache.h"
#include "autohet/Target/CPU/TargetOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace autohet {

/// What code for a device of this kind is compiled for: what `flags` say, else
/// the kind's target, else this machine. The error names the kind.
llvm::Expected<cpu::TargetOptions> targetOf(const DeviceKind &kind,
                                            const cpu::TargetOptions &flags);

class KernelSet {
public:
  explicit KernelSet(llvm::StringRef cacheFolder) : cache(cacheFolder) {}

  /// Compiles what the module's programs launch and notes at each kernel
  /// function how much scratch memory it needs. `targets` is by device name.
  mlir::LogicalResult
  compile(mlir::ModuleOp module,
          const llvm::StringMap<cpu::TargetOptions> &targets, unsigned threads);

  /// By the kernel function's name, in the module's order: what this program
  /// launches.
  using Table = llvm::MapVector<llvm::StringRef, const cpu::KernelObject *>;
  Table of(exec::ProgramOp program) const;

private:
  cpu::ObjectCache cache; ///< so that a second plan compiles little
  const llvm::StringMap<cpu::TargetOptions> *targets = nullptr;
  /// By target, then by the kernel function's name.
  std::map<std::string, llvm::MapVector<llvm::StringRef, cpu::KernelObject>>
      objects;
};

} // namespace autohet

#endif
