//===- Programs.h - pipelines as simulated programs -------------*- C++ -*-===//

#ifndef AUTOHET_TEST_UNIT_SIMULATOR_PROGRAMS_H
#define AUTOHET_TEST_UNIT_SIMULATOR_PROGRAMS_H

#include "autohet/Planner/PipelineTime.h"
#include "autohet/Simulator/Simulate.h"

#include <string>

namespace autohet::test {

/// A chain pipeline's schedule, unrolled: compute on one stream, and sends and
/// receives with events, as programs do it.
inline SimProgram makeProgram(const Pipeline &pipeline) {
  SimProgram program;
  unsigned stages = pipeline.stages.size();
  program.links.assign(stages * stages, {1e12, 0});
  for (const PipelineEdge &edge : pipeline.edges) {
    program.links[edge.from * stages + edge.to] = edge.forward;
    program.links[edge.to * stages + edge.from] = edge.backward;
  }
  auto bytes = [&](unsigned from) {
    for (const PipelineEdge &edge : pipeline.edges)
      if (edge.from == from)
        return edge.bytes;
    return 0.0;
  };
  for (unsigned stage = 0; stage < stages; ++stage) {
    SimDevice device;
    device.name = "n" + std::to_string(stage) + "/0";
    device.microbatches = pipeline.microbatches;
    device.events = {{"activations", false},
                     {"gradients", false},
                     {"activations sent", false},
                     {"gradients sent", false}};
    SimStream compute = {"compute", {}}, arrivals = {"receive", {}};
    for (const PipelineCommand &planned : scheduleCommands(
             pipeline.schedule, stage, stages, pipeline.microbatches)) {
      SimCommand command;
      command.microbatch = planned.microbatch;
      // Channel 2s goes up from stage s, 2s + 1 comes down to it.
      bool receives = planned.is_backward ? stage + 1 < stages : stage > 0;
      bool sends = planned.is_backward ? stage > 0 : stage + 1 < stages;
      unsigned from = planned.is_backward ? stage + 1 : stage - 1;
      unsigned to = planned.is_backward ? stage - 1 : stage + 1;
      int64_t inChannel = planned.is_backward ? 2 * stage + 1 : 2 * from;
      int64_t outChannel = planned.is_backward ? 2 * to + 1 : 2 * stage;
      if (receives) {
        command.kind = SimCommandKind::Receive;
        command.name = "receive";
        command.peer = from;
        command.channel = inChannel;
        command.event = planned.is_backward;
        arrivals.commands.push_back(command);
        command.kind = SimCommandKind::Wait;
        command.name = "wait";
        compute.commands.push_back(command);
      }
      command.kind = SimCommandKind::Compute;
      command.name = planned.is_backward ? "backward" : "forward";
      command.seconds = planned.is_backward ? pipeline.stages[stage].backward_s
                                            : pipeline.stages[stage].forward_s;
      compute.commands.push_back(command);
      if (sends) {
        command.kind = SimCommandKind::Send;
        command.name = "send";
        command.peer = to;
        command.channel = outChannel;
        command.bytes = planned.is_backward ? bytes(to) : bytes(stage);
        command.event = 2 + planned.is_backward;
        compute.commands.push_back(command);
      }
    }
    device.streams = {compute, arrivals};
    program.devices.push_back(std::move(device));
  }
  return program;
}

} // namespace autohet::test

#endif
