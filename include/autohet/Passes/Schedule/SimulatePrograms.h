//===- SimulatePrograms.h - exec programs for the simulator ----*- C++ -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE_SIMULATEPROGRAMS_H
#define AUTOHET_PASSES_SCHEDULE_SIMULATEPROGRAMS_H

#include "autohet/Simulator/SimProgram.h"

#include "mlir/IR/BuiltinOps.h"

namespace autohet {

enum class SimDetail {
  /// A row a command, with its name and buffers.
  Commands,
  /// For a step's time alone: commands that compute one after the other are
  /// one, without a name.
  Times
};

/// The module's programs, whose kernels are still functions of `het` ops, with
/// the durations that the cluster's rates give their commands. Device i of the
/// result is rank i. Fails where a program's device is none of the cluster's.
mlir::FailureOr<SimProgram>
simProgramOf(mlir::ModuleOp module, const Cluster &cluster,
             SimDetail detail = SimDetail::Commands);

} // namespace autohet

#endif
