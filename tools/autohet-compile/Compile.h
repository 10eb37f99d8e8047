//===- Compile.h - from a model file to one executable a node --*- C++ -*-===//

#ifndef AUTOHET_TOOLS_COMPILE_COMPILE_H
#define AUTOHET_TOOLS_COMPILE_COMPILE_H

#include "Planning.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace autohet {

/// Where `--emit` stops.
enum class Emit {
  Imported,
  Differentiated,
  Units,
  Planned,
  Scheduled,
  Programs,
  Objects,
  Executables
};

struct CompileOptions {
  std::string model, output;
  Emit emit = Emit::Executables;
  // Placement.
  std::string cluster, hostfile, plan;
  std::vector<std::string> include;        ///< patterns; empty: all devices
  int64_t globalBatch = 0, microbatch = 0; ///< 0: not given
  PlannerKind planner = PlannerKind::Asymmetric; ///< without a plan
  std::string schedule, stateOwner = "spread"; ///< no schedule: the better one
  // What the model is.
  std::vector<std::string> dims, ties, shared, binds;
  std::string batchDim, constants, freeze;
  std::string objective = "causal", loss = "cross-entropy", lossOutput;
  int64_t ignoreIndex = -100;
  std::string optimizer = "sgd";
  bool inference = false; ///< outputs only: no loss, nothing is trained
  // How it is made.
  std::string cacheFolder, runtimeLibrary, target, features;
  unsigned threads = 2;
};

/// The whole compilation. Diagnostics go through the context; prints what
/// `emit` asks for to stdout.
mlir::LogicalResult compile(const CompileOptions &options,
                            mlir::MLIRContext &context);

} // namespace autohet

#endif
