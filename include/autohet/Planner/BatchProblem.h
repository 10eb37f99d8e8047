//===- BatchProblem.h - how many microbatches each replica takes -*- C++ -*-===//
//
// Replicas of different speed and microbatch size share one global batch:
// choose the counts so that they add up exactly and the last replica is done
// first.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_BATCHPROBLEM_H
#define AUTOHET_PLANNER_BATCHPROBLEM_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace autohet {

struct BatchProblem {
  /// A way to run a replica: `way_s` for one microbatch and `period_s` for each
  /// further one.
  struct Line {
    double period_s = 0, way_s = 0;
  };
  struct ReplicaCost {
    int64_t microbatch_size = 1;
    std::vector<Line> lines; ///< the best one for a count is taken

    double seconds(int64_t microbatches) const;
    /// Most microbatches within `limit_s`, as a real number; below 1 if none.
    double microbatchesWithin(double limit_s) const;
  };

  int64_t global_batch = 1;
  std::vector<ReplicaCost> replicas;

  std::string check() const;
  std::string verify(llvm::ArrayRef<int64_t> counts) const;
  /// When the last replica is done.
  double objective(llvm::ArrayRef<int64_t> counts) const;
};

using BatchCounts = std::vector<int64_t>;

/// Exact. Nothing where the sizes cannot make the batch.
std::optional<BatchCounts> solveBatch(const BatchProblem &problem);
std::optional<BatchCounts> solveBatchByBruteForce(const BatchProblem &problem);

/// No solution is shorter: the counts may be fractions.
double boundBatch(const BatchProblem &problem);

} // namespace autohet

#endif
