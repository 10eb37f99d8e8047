//===- Compile.h - from a model file to one executable a node --*- C++ -*-===//

#ifndef AUTOHET_TOOLS_COMPILE_COMPILE_H
#define AUTOHET_TOOLS_COMPILE_COMPILE_H

#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Planner/Planner.h"

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
  ModelFile modelFile;
  std::string output;
  Emit emit = Emit::Executables;
  // Placement.
  ClusterSource machines;
  std::string plan;
  int64_t globalBatch = 0, microbatch = 0;     ///< 0: not given
  PlannerMode planner = PlannerMode::Joint;    ///< without a plan
  std::string schedule, stateOwner = "spread"; ///< no schedule: the better one
  /// Whether these were given, not only have their defaults: a plan that is
  /// pinned must then agree.
  bool isOptimizerGiven = false, isStateOwnerGiven = false;
  /// Next tokens are labels by default only where the model cannot see them.
  bool isObjectiveGiven = false;
  // How the model is trained.
  std::vector<std::string> binds;
  std::string objective = "causal", optimizer = "adamw";
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
