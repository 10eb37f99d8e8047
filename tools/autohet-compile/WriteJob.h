//===- WriteJob.h - the folder of a compiled job ----------------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_COMPILE_WRITEJOB_H
#define AUTOHET_TOOLS_COMPILE_WRITEJOB_H

#include "Compile.h"
#include "Kernels.h"

#include "autohet/Planner/Planner.h"

namespace autohet {

/// What all phases together have made of a model.
struct CompiledJob {
  const CompileOptions &options;
  const Plan &plan;
  const PlannerResult &planned; ///< the plan with its predicted cost
  const UnitTable &units;
  const Cluster &cluster;
  mlir::ModuleOp module; ///< exec programs, scheduled, memory planned
  const KernelSet &kernels;
  const llvm::StringMap<cpu::TargetOptions> &targets; ///< by device name
  double simulated_s; ///< a step of the programs
};

/// Links one executable a node and writes it with the plan, the programs, the
/// index of weights, the report and, last, the manifest into the output folder.
/// On an error, which is emitted, the folder is as it was.
mlir::LogicalResult writeJob(const CompiledJob &job);

} // namespace autohet

#endif
