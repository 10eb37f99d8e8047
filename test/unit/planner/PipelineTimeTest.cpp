//===- PipelineTimeTest.cpp - schedules and their times -------------------===//

#include "autohet/Planner/PipelineTime.h"

#include "gmock/gmock.h"
#include <random>

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

// Thousands of microbatches end when a walk through all of them says.
TEST(PipelineTime, SteadyStateIsFoundAndExact) {
  std::mt19937 random(1);
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  unsigned shortened = 0;
  for (int round = 0; round < 300; ++round) {
    Pipeline pipeline;
    pipeline.microbatches = 200 + random() % 600;
    pipeline.schedule =
        random() % 4 ? Schedule::OneForwardOneBackward : Schedule::GPipe;
    pipeline.is_forward_only = round % 4 == 0;
    unsigned stages = 1 + random() % 7;
    bool isSlow = random() % 3 == 0;
    for (unsigned stage = 0; stage < stages; ++stage) {
      pipeline.stages.push_back({real(0.5, 1), real(1, 2)});
      if (stage)
        pipeline.edges.push_back({stage - 1,
                                  stage,
                                  1,
                                  {real(1, isSlow ? 2 : 20), real(0, 0.5)},
                                  {real(1, isSlow ? 2 : 20), real(0, 0.5)}});
    }
    PipelineTimeline walked = walkPipeline(pipeline);
    PipelineTimeline found = runPipeline(pipeline);
    ASSERT_NEAR(found.end_s, walked.end_s, 1e-6 * walked.end_s)
        << "round " << round;
    for (unsigned stage = 0; stage < stages; ++stage) {
      EXPECT_NEAR(found.busySeconds(stage), walked.busySeconds(stage), 1e-6);
      EXPECT_NEAR(found.last(stage).end_s, walked.last(stage).end_s, 1e-5);
      EXPECT_EQ(found.last(stage).microbatch, walked.last(stage).microbatch);
    }
    shortened += found.walked_microbatches < pipeline.microbatches;
  }
  EXPECT_GT(shortened, 250u) << shortened;
}

// However unlike the stages are: a step of a million microbatches is not walked
// through, nor looked through for what repeats.
TEST(PipelineTime, UnlikeStagesAreSteadyToo) {
  for (Schedule schedule : {Schedule::OneForwardOneBackward, Schedule::GPipe})
    for (bool isForwardOnly : {false, true}) {
      Pipeline pipeline;
      pipeline.microbatches = 1000000;
      pipeline.schedule = schedule;
      pipeline.is_forward_only = isForwardOnly;
      const double forwards_s[] = {0.5, 0.7, 0.6, 0.9, 0.8};
      for (unsigned stage = 0; stage < 5; ++stage) {
        double forward_s = forwards_s[stage];
        pipeline.stages.push_back({forward_s, 2 * forward_s});
        if (stage)
          pipeline.edges.push_back({stage - 1, stage, 1, {20, 0}, {20, 0}});
      }
      PipelineTimeline found = runPipeline(pipeline);
      EXPECT_LT(found.walked_microbatches, 1000);
      // The longest stage sets the pace.
      double pace_s = isForwardOnly ? 0.9 : 0.9 * 3;
      EXPECT_NEAR(found.end_s / 1e6, pace_s, 1e-4 * pace_s);
    }
}

TEST(PipelineTime, AnyNumberOfMicrobatches) {
  auto end = [](int64_t microbatches) {
    return runPipeline(evenPipeline(6, microbatches,
                                    Schedule::OneForwardOneBackward, 0.1))
        .end_s;
  };
  double period = (end(2200) - end(1000)) / 1200;
  int64_t many = int64_t(1) << 40;
  EXPECT_NEAR(end(many) / static_cast<double>(many), period, 1e-6);
}
