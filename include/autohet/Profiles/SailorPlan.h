//===- SailorPlan.h - plans as Sailor writes them ---------------*- C++ -*-===//
//
// A plan of Sailor is a list of pipelines. Each of a pipeline's stages runs on
// several groups of tensor-parallel devices that share the microbatches; all
// groups of all pipelines take equally many microbatches of one size.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_SAILORPLAN_H
#define AUTOHET_PROFILES_SAILORPLAN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace autohet {

/// Devices that share each layer of a stage.
struct SailorGroup {
  std::string kind;
  int64_t gpus_per_node = 1;
  std::string zone;
  int64_t tensor = 1;
};

struct SailorStage {
  unsigned begin = 0, end = 0; ///< layers
  std::vector<SailorGroup> groups;
};

struct SailorPipeline {
  std::vector<SailorStage> stages;
};

struct SailorPlan {
  std::vector<SailorPipeline> pipelines;
  int64_t microbatch_size = 1, global_batch = 1;
  /// Of a plan that has been run: an iteration, and the fullest device.
  std::optional<double> measured_s, measured_bytes;

  /// Each group's: Sailor rounds up, so that a degree that does not divide the
  /// batch takes more samples than asked for.
  int64_t microbatches() const;
};

llvm::Expected<SailorPlan> parseSailorPlan(llvm::StringRef text,
                                           llvm::StringRef file);
llvm::Expected<SailorPlan> loadSailorPlan(llvm::StringRef path);
/// What Sailor's simulator reads.
std::string formatSailorPlan(const SailorPlan &plan);

} // namespace autohet

#endif
