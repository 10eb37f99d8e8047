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
  double shift_s = skipped_s.empty() ? 0 : skipped_s[stage];
  command.start_s += shift_s;
  command.end_s += shift_s;
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

/// Every `every` microbatches each stage does the same, so much later.
struct SteadyState {
  int64_t every = 1;
  std::vector<double> shift_s;
};

/// When each stage begins each microbatch's forward, or its backward.
using Starts = std::vector<std::vector<double>>;

// In the microbatches [begin, end): whether every stage repeats every `every`
// of them, and its shift if so.
std::optional<std::vector<double>> repeats(const Starts &starts, int64_t every,
                                           int64_t begin, int64_t end,
                                           double tolerance_s) {
  std::vector<double> shifts;
  auto isOff = [&](const std::vector<double> &stage, int64_t i) {
    return std::abs(stage[i] - stage[i - every] - shifts.back()) > tolerance_s;
  };
  // Mostly the first few tell that there is nothing to find: no walk through
  // all of them then.
  for (const std::vector<double> &stage : starts) {
    shifts.push_back(stage[end - 1] - stage[end - 1 - every]);
    if (isOff(stage, begin + every))
      return std::nullopt;
  }
  shifts.clear();
  for (const std::vector<double> &stage : starts) {
    shifts.push_back(stage[end - 1] - stage[end - 1 - every]);
    for (int64_t i = begin + every; i < end; ++i)
      if (isOff(stage, i))
        return std::nullopt;
  }
  return shifts;
}

/// No stage can take longer for a microbatch, one way: what the longest one
/// computes, or sends.
double slowestPace(const Pipeline &pipeline, bool isBackward) {
  double pace = 0;
  std::vector<double> sent_s(pipeline.stages.size());
  for (const PipelineEdge &edge : pipeline.edges)
    sent_s[isBackward ? edge.to : edge.from] +=
        isBackward ? edge.backwardSeconds() : edge.forwardSeconds();
  for (auto [stage, sent] : llvm::zip_equal(pipeline.stages, sent_s))
    pace =
        std::max({pace, isBackward ? stage.backward_s : stage.forward_s, sent});
  return pace;
}

// In one direction nobody waits for who comes behind: stages run at their own
// paces, and who comes last at the slowest one. Until that shows, it may
// change.
std::optional<SteadyState> findOneWayState(const Pipeline &pipeline,
                                           const Starts &forward,
                                           const Starts &backward,
                                           int64_t begin, int64_t count,
                                           double tolerance_s) {
  auto isLasting = [&](double shift_s, bool isBackward) {
    return shift_s >= slowestPace(pipeline, isBackward) - tolerance_s;
  };
  auto there = repeats(forward, 1, begin, count, tolerance_s);
  if (!there || !isLasting(there->back(), false))
    return std::nullopt;
  if (pipeline.is_forward_only)
    return SteadyState{1, std::move(*there)};
  auto back = repeats(backward, 1, begin, count, tolerance_s);
  if (!back || !isLasting(back->front(), true))
    return std::nullopt;
  // The last stage's forwards are over before the way back begins.
  for (double &shift_s : *back)
    shift_s += there->back();
  return SteadyState{1, std::move(*back)};
}

std::optional<SteadyState> findSteadyState(const Pipeline &pipeline,
                                           const PipelineTimeline &timeline) {
  int64_t count = pipeline.microbatches, stages = pipeline.stages.size();
  bool isGPipe = pipeline.schedule == Schedule::GPipe;
  Starts forward(stages), backward(stages);
  for (int64_t stage = 0; stage < stages; ++stage)
    for (const PipelineCommand &command : timeline.stages[stage])
      (command.is_backward ? backward : forward)[stage].push_back(
          command.start_s);
  int64_t begin = count / 2;
  double tolerance = 1e-10 * timeline.end_s;
  if (isGPipe || pipeline.is_forward_only)
    return findOneWayState(pipeline, forward, backward, begin, count,
                           tolerance);
  // Before the last stages run dry.
  int64_t end = count - stages;
  for (int64_t every = 1; begin + 2 * every < end; ++every) {
    auto there = repeats(forward, every, begin, end, tolerance);
    auto back =
        there ? repeats(backward, every, begin, end, tolerance) : std::nullopt;
    if (!back)
      continue;
    // All at one pace.
    auto isOff = [&](double shift_s) {
      return std::abs(shift_s - there->front()) > tolerance;
    };
    if (llvm::none_of(*there, isOff) && llvm::none_of(*back, isOff))
      return SteadyState{every, std::move(*there)};
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
    timeline.end_s = 0;
    for (auto [stage, shift_s] : llvm::enumerate(steady->shift_s)) {
      timeline.skipped_s.push_back(static_cast<double>(repetitions) * shift_s);
      timeline.end_s = std::max(timeline.end_s, timeline.last(stage).end_s);
    }
    return timeline;
  }
  return walkPipeline(pipeline);
}

} // namespace autohet
