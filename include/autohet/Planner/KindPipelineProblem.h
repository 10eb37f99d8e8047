//===- KindPipelineProblem.h - one kind of device a stage -------*- C++ -*-===//
//
// HeteroAuto's problem: all replicas are one pipeline in which each kind of
// device has a run of stages, the kind with the most memory first. Chosen are
// the number of replicas, each kind's tensor-parallel extent and number of
// stages, its layers (spread evenly over its stages), and whether it computes
// forward twice. With b microbatches a replica,
//
//   T = max over stages s of  b t_s + update_s + alpha · sum of the others' t
//
// where alpha is 1 for 1F1B and 0 for schedules without a bubble.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_KINDPIPELINEPROBLEM_H
#define AUTOHET_PLANNER_KINDPIPELINEPROBLEM_H

#include "autohet/Support/Deadline.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace autohet {

struct KindPipelineProblem {
  /// A kind of device under one tensor-parallel extent.
  struct Extent {
    unsigned devices = 1;   ///< of a stage
    unsigned most_rows = 0; ///< stages that there is room for, all replicas
    double layer_s = 0;     ///< forward and backward of a layer
    double recompute_s = 0; ///< in addition, where forward is computed twice
    double update_s = 0;
    /// Layers that a stage has room for with so many stages from it to the end.
    std::function<unsigned(unsigned stagesToTheEnd, bool recompute)>
        most_layers;
  };
  struct Kind {
    double memory = 0; ///< bytes: the order of kinds
    unsigned devices = 0;
    std::vector<Extent> extents;
  };

  std::vector<Kind> kinds;
  unsigned layers = 1;
  /// Of all replicas together; their number divides it.
  int64_t microbatches = 1;
  double alpha = 1;
  bool allow_recompute = false;
  /// When to stop with the best ones so far.
  Deadline deadline;

  std::string check() const;
  /// Kinds in pipeline order.
  std::vector<unsigned> order() const;
};

struct KindPipeline {
  struct Run {
    unsigned extent = 0; ///< into Kind::extents
    unsigned stages = 0; ///< 0: the kind is not used
    unsigned layers = 0; ///< of all its stages
    bool recompute = false;

    unsigned mostLayers() const { return (layers + stages - 1) / stages; }
  };
  int64_t replicas = 1;
  std::vector<Run> runs; ///< of each kind
  double seconds = 0;
};

/// What is wrong with a solution; empty if nothing.
std::string verifyKindPipeline(const KindPipelineProblem &problem,
                               const KindPipeline &pipeline);
/// T.
double kindPipelineSeconds(const KindPipelineProblem &problem,
                           const KindPipeline &pipeline);

/// For given replicas, extents and stages: the best layers and recomputation.
/// Exact.
std::optional<KindPipeline>
spreadLayers(const KindPipelineProblem &problem, int64_t replicas,
             llvm::ArrayRef<KindPipeline::Run> runs);

/// The best ones, by rising T. Exact where the combinations of replicas,
/// extents and stages are few; else every kind has all the stages that it has
/// devices for, or none, and numbers of stages are improved one by one.
std::vector<KindPipeline> solveKindPipeline(const KindPipelineProblem &problem,
                                            size_t wanted = 1);
std::optional<KindPipeline>
solveKindPipelineByBruteForce(const KindPipelineProblem &problem);

} // namespace autohet

#endif
