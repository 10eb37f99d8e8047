//===- MeasuredRuns.h - our estimate of Sailor's measured runs --*- C++ -*-===//
//
// Sailor ran 16 plans on two clusters and publishes seconds and bytes. Our
// estimate takes the layer profiles as they are and our own view of the rest:
// each stage waits for its messages in both directions, a message moves once at
// the rate of a single GPU, all tensor-parallel ranks of a node share its NIC
// in a gradient's all-reduce, and replicas run side by side.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_MEASUREDRUNS_H
#define AUTOHET_PROFILES_MEASUREDRUNS_H

#include "autohet/Profiles/SailorData.h"
#include "autohet/Profiles/SailorPlan.h"

namespace autohet {

/// What differs between installations of one framework: fitted on every second
/// plan of a cluster (bench/planner/accuracy).
struct Installation {
  /// Of a step with data parallelism, beside the transfer itself.
  double sync_start_s = 0;
  /// Weights, gradients, optimizer state and copies.
  double bytes_per_parameter = 24;
  /// Whether softmax keeps its attention matrix.
  bool keeps_attention = true;
  /// Of the allocator, over what the profile's activations need.
  double kept_factor = 1;
  /// Libraries and workspace, and what every further GPU of the node adds.
  double base_bytes = 0, bytes_per_peer = 0;

  int64_t heads = 16, sequence = 2048;
};

struct RunEstimate {
  double step_s = 0, memory_bytes = 0;
};

llvm::Expected<RunEstimate> estimateRun(const SailorPlan &plan,
                                        const SailorModel &model,
                                        const SailorData &data,
                                        const Installation &installation);

} // namespace autohet

#endif
