//===- PipelineTime.h - when one replica is done ----------------*- C++ -*-===//
//
// Executes the commands of a pipeline's stages in their schedule's order, event
// by event: a command starts when its stage is free and its values have come.
// Transfers overlap with computation and queue on their own link. This is the
// judge of finalists; solvers use closed forms that stay near it.
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
};

struct Pipeline {
  std::vector<PassSeconds> stages; ///< one microbatch each
  std::vector<PipelineEdge> edges;
  int64_t microbatches = 1;
  Schedule schedule = Schedule::OneForwardOneBackward;
};

struct PipelineCommand {
  bool is_backward = false;
  int64_t microbatch = 0;
  double start_s = 0, end_s = 0;
};

struct PipelineTimeline {
  double end_s = 0;
  /// Of each stage, in its order.
  std::vector<std::vector<PipelineCommand>> stages;

  double busySeconds(unsigned stage) const;
};

/// The commands of one stage in order, without times.
std::vector<PipelineCommand> scheduleCommands(Schedule schedule, unsigned stage,
                                              unsigned stageCount,
                                              int64_t microbatches);

PipelineTimeline runPipeline(const Pipeline &pipeline);

} // namespace autohet

#endif
