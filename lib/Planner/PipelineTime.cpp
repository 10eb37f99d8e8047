//===- PipelineTime.cpp - when one replica is done ------------------------===//

#include "autohet/Planner/PipelineTime.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace autohet {

std::vector<PipelineCommand> scheduleCommands(Schedule schedule, unsigned stage,
                                              unsigned stageCount,
                                              int64_t microbatches) {
  std::vector<PipelineCommand> commands;
  int64_t ahead = schedule == Schedule::GPipe
                      ? microbatches
                      : std::min<int64_t>(stageCount - stage - 1, microbatches);
  for (int64_t microbatch = 0; microbatch < ahead; ++microbatch)
    commands.push_back({false, microbatch});
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    if (microbatch + ahead < microbatches)
      commands.push_back({false, microbatch + ahead});
    commands.push_back({true, microbatch});
  }
  return commands;
}

double Pipeline::forwardPeriod() const {
  double period = 0;
  for (const PassSeconds &stage : stages)
    period = std::max(period, stage.forward_s);
  std::vector<double> sent_s(stages.size()), received_s(stages.size());
  for (const PipelineEdge &edge : edges) {
    sent_s[edge.from] += edge.forwardSeconds();
    // Each receiver gets it once.
    received_s[edge.to] += edge.forwardSeconds() / edge.forward_copies;
  }
  for (double seconds : llvm::concat<double>(sent_s, received_s))
    period = std::max(period, seconds);
  return period;
}

double PipelineTimeline::busySeconds(unsigned stage) const {
  double busy = 0;
  for (const PipelineCommand &command : stages[stage])
    busy += command.end_s - command.start_s;
  return busy * static_cast<double>(microbatches) /
         static_cast<double>(walked_microbatches);
}

PipelineCommand PipelineTimeline::last(unsigned stage) const {
  PipelineCommand command = stages[stage].back();
  command.microbatch = microbatches - 1;
  command.start_s += skipped_s;
  command.end_s += skipped_s;
  return command;
}

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// One direction of an edge: messages, one a microbatch.
struct Channel {
  double seconds, latency_s;
  std::vector<double> arrival_s; ///< of each microbatch, or never

  /// The sender sends nothing else until `free_s`.
  void send(int64_t microbatch, double ready_s, double &free_s) {
    double start = std::max(ready_s, free_s);
    free_s = start + seconds;
    arrival_s[microbatch] = free_s + latency_s;
  }
};

class PipelineRun {
public:
  explicit PipelineRun(const Pipeline &pipeline)
      : pipeline(pipeline), stageCount(pipeline.stages.size()),
        next(stageCount), free_s(stageCount), sender_free_s(stageCount) {
    timeline.stages.resize(stageCount);
    timeline.microbatches = timeline.walked_microbatches =
        pipeline.microbatches;
    for (unsigned stage = 0; stage < stageCount; ++stage) {
      std::vector<PipelineCommand> &commands = timeline.stages[stage];
      commands = scheduleCommands(pipeline.schedule, stage, stageCount,
                                  pipeline.microbatches);
      if (pipeline.is_forward_only)
        llvm::erase_if(commands, [](const PipelineCommand &command) {
          return command.is_backward;
        });
    }
    std::vector<double> none(pipeline.microbatches, never);
    into.resize(stageCount);
    outOf.resize(stageCount);
    for (auto [index, edge] : llvm::enumerate(pipeline.edges)) {
      forward.push_back({edge.forwardSeconds(), edge.forward.latency_s, none});
      backward.push_back(
          {edge.backwardSeconds(), edge.backward.latency_s, none});
      into[edge.to].push_back(index);
      outOf[edge.from].push_back(index);
    }
  }

  PipelineTimeline run() {
    // Each sweep takes every stage as far as it can go. Forward work moves up
    // the stages and backward work down them, so sweeps alternate.
    for (bool isUp = true, moved = true; moved; isUp = !isUp) {
      moved = false;
      for (unsigned i = 0; i < stageCount; ++i) {
        unsigned stage = isUp ? i : stageCount - 1 - i;
        while (step(stage))
          moved = true;
      }
    }
    for (unsigned stage = 0; stage < stageCount; ++stage) {
      assert(next[stage] == timeline.stages[stage].size() &&
             "a schedule of a chain cannot deadlock");
      timeline.end_s = std::max(timeline.end_s, free_s[stage]);
    }
    return std::move(timeline);
  }

private:
  bool step(unsigned stage) {
    std::vector<PipelineCommand> &commands = timeline.stages[stage];
    if (next[stage] == commands.size())
      return false;
    PipelineCommand &command = commands[next[stage]];
    double ready = free_s[stage];
    std::vector<Channel> &channels = command.is_backward ? backward : forward;
    for (unsigned edge : command.is_backward ? outOf[stage] : into[stage])
      ready = std::max(ready, channels[edge].arrival_s[command.microbatch]);
    if (ready == never)
      return false;
    const PassSeconds &seconds = pipeline.stages[stage];
    command.start_s = ready;
    command.end_s = free_s[stage] =
        ready + (command.is_backward ? seconds.backward_s : seconds.forward_s);
    for (unsigned edge : command.is_backward ? into[stage] : outOf[stage])
      channels[edge].send(command.microbatch, command.end_s,
                          sender_free_s[stage]);
    ++next[stage];
    return true;
  }

  const Pipeline &pipeline;
  unsigned stageCount;
  std::vector<size_t> next;
  std::vector<double> free_s, sender_free_s;      ///< of each stage
  std::vector<Channel> forward, backward;         ///< of each edge
  std::vector<std::vector<unsigned>> into, outOf; ///< edges of each stage
  PipelineTimeline timeline;
};

} // namespace

PipelineTimeline walkPipeline(const Pipeline &pipeline) {
  return PipelineRun(pipeline).run();
}

namespace {

/// Every `every` microbatches all stages do the same, `shift_s` later.
struct SteadyState {
  int64_t every = 1;
  double shift_s = 0;
};

// Of `timeline`, in the microbatches [begin, end) of one kind of command:
// whether all stages repeat every `every` of them, and the shift if so.
std::optional<double> repeats(const std::vector<std::vector<double>> &starts,
                              int64_t every, int64_t begin, int64_t end,
                              double tolerance_s) {
  double shift = starts[0][end - 1] - starts[0][end - 1 - every];
  for (const std::vector<double> &stage : starts)
    for (int64_t i = begin + every; i < end; ++i)
      if (std::abs(stage[i] - stage[i - every] - shift) > tolerance_s)
        return std::nullopt;
  return shift;
}

std::optional<SteadyState> findSteadyState(const Pipeline &pipeline,
                                           const PipelineTimeline &timeline) {
  int64_t count = pipeline.microbatches, stages = pipeline.stages.size();
  bool isGPipe = pipeline.schedule == Schedule::GPipe;
  std::vector<std::vector<double>> forward(stages), backward(stages);
  for (int64_t stage = 0; stage < stages; ++stage)
    for (const PipelineCommand &command : timeline.stages[stage])
      (command.is_backward ? backward : forward)[stage].push_back(
          command.start_s);
  // Before the last stages run dry. What goes one way only is steady to the
  // end, and so is each half of GPipe.
  int64_t end = isGPipe || pipeline.is_forward_only ? count : count - stages;
  int64_t begin = count / 2;
  double tolerance = 1e-10 * timeline.end_s;
  for (int64_t every = 1; begin + 2 * every < end; ++every) {
    auto there = repeats(forward, every, begin, end, tolerance);
    if (pipeline.is_forward_only) {
      if (there)
        return SteadyState{every, *there};
      continue;
    }
    auto back = repeats(backward, every, begin, end, tolerance);
    if (!there || !back)
      continue;
    if (isGPipe)
      return SteadyState{every, *there + *back};
    if (std::abs(*there - *back) <= tolerance)
      return SteadyState{every, *there};
  }
  return std::nullopt;
}

} // namespace

PipelineTimeline runPipeline(const Pipeline &pipeline) {
  Pipeline shorter = pipeline;
  int64_t stages = pipeline.stages.size();
  for (shorter.microbatches = 8 * stages + 24;
       2 * shorter.microbatches < pipeline.microbatches;
       shorter.microbatches *= 2) {
    std::optional<SteadyState> steady =
        findSteadyState(shorter, walkPipeline(shorter));
    if (!steady)
      continue;
    // The same number of microbatches, up to whole repetitions.
    int64_t rest =
        (pipeline.microbatches - shorter.microbatches) % steady->every;
    shorter.microbatches += rest;
    PipelineTimeline timeline = walkPipeline(shorter);
    int64_t repetitions =
        (pipeline.microbatches - shorter.microbatches) / steady->every;
    timeline.microbatches = pipeline.microbatches;
    timeline.skipped_s = static_cast<double>(repetitions) * steady->shift_s;
    timeline.end_s += timeline.skipped_s;
    return timeline;
  }
  return walkPipeline(pipeline);
}

} // namespace autohet
