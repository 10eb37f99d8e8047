//===- ShardedBatchProblem.h - batch and state of each device ---*- C++ -*-===//
//
// Cephalo's problem: plain data parallelism in which every device has its own
// share of the batch (microbatch size times their number) and its own share of
// the training state, independently of each other. Each layer's parameters are
// gathered before use, its gradients scattered after: with `Tf` and `Tb` of all
// microbatches of a layer, a device takes
//
//   T = max(c AG, Tf) + max(c (AG + RS), Tf + Tb)
//
// (backward computes forward again), where c is what uneven shards cost more.
// The slowest device decides.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_SHARDEDBATCHPROBLEM_H
#define AUTOHET_PLANNER_SHARDEDBATCHPROBLEM_H

#include "autohet/Support/Deadline.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace autohet {

struct ShardedBatchProblem {
  struct Device {
    double capacity_bytes = 0;
    /// Of one layer and one microbatch, by its size.
    std::function<double(int64_t)> forward_s, backward_s;
    /// What computing needs beside the state, by microbatch size; rising.
    std::function<double(int64_t)> compute_bytes;
  };

  std::vector<Device> devices;
  int64_t global_batch = 1;
  double state_bytes = 0; ///< of the model: weights, gradients and moments
  double gather_s = 0, scatter_s = 0;
  /// Between two microbatches of a layer's backward.
  double switch_s = 10e-3;
  double uneven_factor = 1.25;
  bool computes_forward_twice = true;
  /// Of each capacity, and of all together.
  double usable = 0.75;
  int64_t max_microbatch_size = 1 << 12;
  /// When to stop with the best so far.
  Deadline deadline;

  std::string check() const;
  /// Largest microbatch that fits beside an even share of the state, and
  /// without any state; 0 where none does.
  int64_t evenLimit(unsigned device) const;
  int64_t limit(unsigned device) const;
  /// T of a layer.
  double seconds(unsigned device, int64_t size, int64_t count) const;
};

struct ShardedBatch {
  struct Share {
    int64_t microbatch_size = 1, microbatches = 1;

    int64_t samples() const { return microbatch_size * microbatches; }
  };
  std::vector<Share> shares; ///< of each device: at least one sample
  double seconds = 0;        ///< of the slowest device, a layer
  double memory_bytes = 0;   ///< of all devices, with the state
};

/// What is wrong with a solution; empty if nothing.
std::string verifyShardedBatch(const ShardedBatchProblem &problem,
                               const ShardedBatch &batch);

/// The fastest that fits into memory together; of these, the one that needs the
/// least. Exact.
std::optional<ShardedBatch>
solveShardedBatch(const ShardedBatchProblem &problem);
std::optional<ShardedBatch>
solveShardedBatchByBruteForce(const ShardedBatchProblem &problem);

enum class StateSplit {
  LeastMoved,    ///< even, but for devices that this would overfill
  EqualFullness, ///< so that all devices are equally full
};
/// The part of the state that each device holds; their sum is 1. Nothing where
/// it does not fit. Even shards stay where no device would be half full.
std::optional<std::vector<double>>
splitState(const ShardedBatchProblem &problem, const ShardedBatch &batch,
           StateSplit how);

} // namespace autohet

#endif
