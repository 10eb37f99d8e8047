//===- GpuStep.h - a training step of a grid of GPUs ------------*- C++ -*-===//
//
// How long a step of a GPT takes on a data x tensor x pipeline grid of one kind
// of GPU, from the kind's data sheet: what Megatron does (16-bit numbers,
// activations recomputed, 1F1B, gradients all-reduced after the last backward),
// kernel by kernel.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_GPUSTEP_H
#define AUTOHET_PROFILES_GPUSTEP_H

#include "autohet/Profiles/GpuKinds.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <vector>

namespace autohet {

struct TransformerShape {
  int64_t hidden = 0, heads = 0, layers = 0, sequence = 0;
  int64_t vocabulary = 51200; ///< GPT-2's, padded as Megatron pads it
};

struct GridPlan {
  int64_t data = 1, tensor = 1, pipeline = 1;
  int64_t microbatch_size = 1, global_batch = 1;
};

/// Measured all-reduces within a node: seconds by bytes.
struct AllReduceTable {
  std::vector<std::pair<double, double>> bytes_and_seconds; ///< ascending

  /// Straight between entries; the first entry's time below them, the last
  /// one's rate above.
  double seconds(double bytes) const;
};

struct GpuCluster {
  const GpuKind *kind = nullptr;
  int64_t gpus_per_node = 8;
  /// [GPUs that take part]
  std::map<int64_t, AllReduceTable> all_reduce;
  /// Of a node's cards, one way.
  double network_bytes_per_s = 100e9;
  double message_latency_s = 30e-6;
};

struct GpuStepSeconds {
  double step_s = 0;
  double pipeline_s = 0, gradients_s = 0, embedding_s = 0, update_s = 0;
};

/// The error names a table that is missing or a grid that does not divide.
llvm::Expected<GpuStepSeconds> predictStep(const TransformerShape &shape,
                                           const GridPlan &plan,
                                           const GpuCluster &cluster,
                                           const GpuEfficiency &efficiency);

} // namespace autohet

#endif
