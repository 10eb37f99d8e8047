//===- PipelineTimeTest.cpp - schedules and their times -------------------===//

#include "autohet/Planner/PipelineTime.h"

#include "gmock/gmock.h"

using namespace autohet;

static std::string order(Schedule schedule, unsigned stage, unsigned stages,
                         int64_t microbatches) {
  std::string text;
  for (const PipelineCommand &command :
       scheduleCommands(schedule, stage, stages, microbatches))
    text += (command.is_backward ? " B" : " F") +
            std::to_string(command.microbatch);
  return text;
}

TEST(Schedule, OneForwardOneBackward) {
  Schedule schedule = Schedule::OneForwardOneBackward;
  EXPECT_EQ(order(schedule, 0, 3, 4), " F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order(schedule, 2, 3, 4), " F0 B0 F1 B1 F2 B2 F3 B3");
  // Fewer microbatches than stages.
  EXPECT_EQ(order(schedule, 0, 6, 2), " F0 F1 B0 B1");
}

TEST(Schedule, GPipe) {
  EXPECT_EQ(order(Schedule::GPipe, 1, 3, 3), " F0 F1 F2 B0 B1 B2");
}

static Pipeline evenPipeline(unsigned stages, int64_t microbatches,
                             Schedule schedule, double transfer_s = 0) {
  Pipeline pipeline;
  pipeline.microbatches = microbatches;
  pipeline.schedule = schedule;
  pipeline.stages.assign(stages, {1, 2});
  Link link = {1, 0}; // a byte a second
  for (unsigned stage = 1; stage < stages; ++stage)
    pipeline.edges.push_back({stage - 1, stage, transfer_s, link, link});
  return pipeline;
}

// Both schedules of equal stages take (M + P - 1) (F + B): the textbook bubble.
TEST(PipelineTime, TextbookBubble) {
  for (Schedule schedule : {Schedule::GPipe, Schedule::OneForwardOneBackward})
    for (unsigned stages : {1u, 2u, 3u, 6u})
      for (int64_t microbatches : {1, 2, 3, 8, 50}) {
        PipelineTimeline timeline =
            runPipeline(evenPipeline(stages, microbatches, schedule));
        EXPECT_DOUBLE_EQ(timeline.end_s, 3.0 * (microbatches + stages - 1));
        EXPECT_DOUBLE_EQ(timeline.busySeconds(stages - 1), 3.0 * microbatches);
      }
}

TEST(PipelineTime, UnevenStages) {
  Pipeline pipeline = evenPipeline(2, 10, Schedule::OneForwardOneBackward);
  pipeline.stages[0] = {0.5, 1};
  // The slow stage waits for one fast forward, then never again.
  EXPECT_DOUBLE_EQ(runPipeline(pipeline).end_s, 0.5 + 10 * 3 + 1);
}

TEST(PipelineTime, TransfersOverlapAndQueue) {
  // One microbatch: there and back.
  EXPECT_DOUBLE_EQ(runPipeline(evenPipeline(2, 1, Schedule::GPipe, 0.25)).end_s,
                   6.5);
  // A link slower than the stages sets the pace: 10 messages of 5 s
  // each way.
  EXPECT_DOUBLE_EQ(runPipeline(evenPipeline(2, 10, Schedule::GPipe, 5)).end_s,
                   1 + 10 * 5 + 1 + 2 + 10 * 5 + 2);
}

TEST(PipelineTime, CommandsDoNotOverlap) {
  Pipeline pipeline = evenPipeline(4, 7, Schedule::OneForwardOneBackward, 0.3);
  PipelineTimeline timeline = runPipeline(pipeline);
  for (const auto &commands : timeline.stages) {
    EXPECT_EQ(commands.size(), 14u);
    double free = 0;
    for (const PipelineCommand &command : commands) {
      EXPECT_GE(command.start_s, free);
      free = command.end_s;
    }
  }
}
