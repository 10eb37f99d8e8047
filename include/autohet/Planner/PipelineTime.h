//===- PipelineTime.h - when one replica is done ----------------*- C++ -*-===//
//
// Executes the commands of a pipeline's stages in their schedule's order, event
// by event: a command starts when its stage is free and its values have come.
// Transfers overlap with computation; those that a stage sends follow one
// another, whoever they are for. This is the judge of finalists; solvers use
// closed forms that stay near it.
//
// Many microbatches are not walked one by one: once all stages repeat the same
// times every few microbatches, the rest of them only shifts the end. Where
// nobody waits for who comes behind, as in the halves of GPipe, each stage
// repeats at a pace of its own.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_PIPELINETIME_H
#define AUTOHET_PLANNER_PIPELINETIME_H

#include "autohet/Planner/CostModel.h"

namespace autohet {

/// Values that stage `from` sends to stage `to` in forward, and receives
/// gradients of in backward.
struct PipelineEdge {
  unsigned from = 0, to = 0;
  double bytes = 0; ///< of one microbatch, each way
  Link forward, backward;
  /// How often a device of the sending stage sends it: to each of the
  /// receiving stage's that look to it.
  unsigned forward_copies = 1, backward_copies = 1;

  double forwardSeconds() const {
    return forward_copies * bytes / forward.bandwidth_bytes_per_s;
  }
  double backwardSeconds() const {
    return backward_copies * bytes / backward.bandwidth_bytes_per_s;
  }
};

struct Pipeline {
  std::vector<PassSeconds> stages; ///< one microbatch each
  std::vector<PipelineEdge> edges;
  int64_t microbatches = 1;
  Schedule schedule = Schedule::OneForwardOneBackward;
  bool is_forward_only = false; ///< whatever the schedule

  /// Of a microbatch, where they follow one another without a pause: the
  /// longest stage, or what one sends or receives.
  double forwardPeriod() const;
};

struct PipelineCommand {
  bool is_backward = false;
  int64_t microbatch = 0;
  double start_s = 0, end_s = 0;
};

struct PipelineTimeline {
  double end_s = 0;
  int64_t microbatches = 0;
  /// Those in `stages`. The others come between these, and a stage's last
  /// command is later by its `skipped_s`; empty: there are no others.
  int64_t walked_microbatches = 0;
  std::vector<double> skipped_s;
  /// Of each stage, in its order.
  std::vector<std::vector<PipelineCommand>> stages;

  double busySeconds(unsigned stage) const;
  const PipelineCommand &first(unsigned stage) const {
    return stages[stage].front();
  }
  PipelineCommand last(unsigned stage) const;
};

/// The commands of one stage in order, without times.
std::vector<PipelineCommand> scheduleCommands(Schedule schedule, unsigned stage,
                                              unsigned stageCount,
                                              int64_t microbatches);

PipelineTimeline runPipeline(const Pipeline &pipeline);
/// Every microbatch, whatever their number: the former's oracle in tests.
PipelineTimeline walkPipeline(const Pipeline &pipeline);

} // namespace autohet

#endif
