//===- SimulateFile.h - runs programs without computing --------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_SIMULATE_SIMULATEFILE_H
#define AUTOHET_TOOLS_SIMULATE_SIMULATEFILE_H

#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Passes/Schedule/MemoryUse.h"
#include "autohet/Simulator/Summary.h"

namespace autohet {

struct SimulateOptions {
  std::string input; ///< plan.json, programs as text or bytecode, or a folder
  ModelFile model;   ///< of a plan
  ClusterSource machines;
  int64_t steps = 3;
  std::string timeline; ///< file to write; empty: none
  unsigned tensors = 5; ///< to name for each device
};

mlir::LogicalResult simulateFile(const SimulateOptions &options,
                                 mlir::MLIRContext &context);

/// Memory of one device's program.
struct DeviceMemory {
  std::string name;
  MemoryUse use;
  double limit_bytes = 0;
  std::vector<HeldTensor> tensors; ///< at the peak
  /// Whether scratch memory of kernels is in it: known once they are compiled.
  bool has_scratch = false;
};

std::string formatSimulation(const SimSummary &summary,
                             llvm::ArrayRef<DeviceMemory> memory,
                             const Cluster &cluster, unsigned tensors);

} // namespace autohet

#endif
