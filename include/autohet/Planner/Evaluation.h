//===- Evaluation.h - what a plan costs -------------------------*- C++ -*-===//
//
// Step time and memory of a whole plan, and where they come from.
//
//   step = what of the updates and of the new parameters' way the first forward
//          waits for, the pipeline, the gradients' way to their owners (under
//          the last backward as far as it goes), their sums as far as they are
//          behind it, and one agreement: of the replica that is last.
//
// A hierarchical exchange is two ways one behind the other: sums inside nodes
// leave under the last backward, relays pass theirs on behind it.
//
// Without a backward a step is its pipelines alone; where batches follow one
// another without a pause, the time from one batch to the next.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_EVALUATION_H
#define AUTOHET_PLANNER_EVALUATION_H

#include "autohet/Planner/CostModel.h"
#include "autohet/Planner/PipelineTime.h"

namespace autohet {

struct DeviceEvaluation {
  unsigned device = 0; ///< into the cluster
  unsigned replica = 0, stage = 0, position = 0;
  MemoryNeed memory;
  double busy_s = 0; ///< computing, of a step
  double sync_s = 0; ///< sending or receiving gradients, relayed ones too
};

struct PlanEvaluation {
  double step_s = 0;
  GradientExchange gradient_exchange = GradientExchange::Direct;
  double pipeline_s = 0; ///< of the replica that is done last
  /// Of one batch by itself, and from one batch to the next where they follow
  /// one another; 0 in training.
  double latency_s = 0, interval_s = 0;
  double exposed_sync_s = 0;
  double agreement_s = 0;
  double update_s = 0;
  double exposed_parameters_s = 0;
  /// Idle part of the used devices' time while pipelines run, weighted by
  /// their rates.
  double bubble = 0;
  std::vector<DeviceEvaluation> devices; ///< used ones, in rank order
  /// Replicas of equal make have equal times: one each of them.
  std::vector<PipelineTimeline> timelines;
  std::vector<unsigned> make_of_replica; ///< into `timelines`
  /// Of each make, as Pipeline::forwardPeriod().
  std::vector<double> forward_periods_s;
  /// What each replica takes beside its pipeline, before the agreement.
  std::vector<double> exposed_of_replica_s;

  const PipelineTimeline &timelineOf(unsigned replica) const {
    return timelines[make_of_replica[replica]];
  }

  /// The device that lacks most, and how much; none if all fit.
  std::optional<std::pair<unsigned, double>>
  worstShortage(const Cluster &cluster) const;
};

/// Without `exchange`, with the better one.
PlanEvaluation
evaluatePlan(const ResolvedPlan &plan, Schedule schedule,
             llvm::StringRef stateOwner, const CostModel &costs,
             std::optional<GradientExchange> exchange = std::nullopt);

/// The pipeline of one replica.
Pipeline buildPipeline(const ResolvedReplica &replica, Schedule schedule,
                       const CostModel &costs);

/// For verifyPlan(): the planner's estimate of one device's memory.
double estimateMemory(const ResolvedPlan &plan, unsigned replica,
                      unsigned stage, unsigned position, Schedule schedule,
                      llvm::StringRef stateOwner, const CostModel &costs);

} // namespace autohet

#endif
