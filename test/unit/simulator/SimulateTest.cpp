//===- SimulateTest.cpp - simulated time ----------------------------------===//

#include "simulator/Programs.h"

#include "gmock/gmock.h"
#include <random>

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;

static SimResult run(const SimProgram &program, SimOptions options = {}) {
  llvm::Expected<SimResult> result = simulate(program, options);
  if (result)
    return *result;
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

static SimCommand compute(double seconds, std::string name = "work") {
  SimCommand command;
  command.name = std::move(name);
  command.seconds = seconds;
  return command;
}

static SimCommand on(SimCommandKind kind, unsigned event,
                     int64_t microbatch = 0) {
  SimCommand command;
  command.kind = kind;
  command.name = "command";
  command.event = event;
  command.microbatch = microbatch;
  return command;
}

static SimProgram oneDevice(std::vector<SimStream> streams) {
  SimProgram program;
  program.links = {{1e9, 0}};
  program.devices = {{"n0/0", 4, {{"e", false}, {"once", true}}, streams}};
  return program;
}

TEST(Simulate, StreamsOfADeviceShareIt) {
  SimResult result =
      run(oneDevice({{"a", {compute(1), compute(1)}}, {"b", {compute(2)}}}));
  EXPECT_EQ(result.end_s, 4);
  EXPECT_THAT(result.busy_s, ElementsAre(4));
  EXPECT_THAT(result.stream_busy_s[0], ElementsAre(2, 2));
}

TEST(Simulate, EventsOrderStreams) {
  SimResult result =
      run(oneDevice({{"a", {compute(3), on(SimCommandKind::Record, 0)}},
                     {"b", {on(SimCommandKind::Wait, 0), compute(1)}}}));
  EXPECT_EQ(result.end_s, 4);
  EXPECT_THAT(result.stream_waiting_s[0], ElementsAre(0, 3));
}

// Two events at one moment wake a stream once.
TEST(Simulate, WakesOnce) {
  SimCommand second = on(SimCommandKind::Record, 1);
  SimResult result = run(oneDevice(
      {{"a", {compute(1), on(SimCommandKind::Record, 0), second}},
       {"b", {on(SimCommandKind::Wait, 0), compute(2), compute(2)}}}));
  EXPECT_EQ(result.end_s, 5);
}

TEST(Simulate, LoopsRepeatWithTheirMicrobatch) {
  SimCommand loop, endLoop, body = compute(1);
  loop.kind = SimCommandKind::Loop;
  loop.first = 1;
  loop.end = 4;
  endLoop.kind = SimCommandKind::EndLoop;
  body.in_loop = true;
  body.microbatch = -1;
  SimProgram program = oneDevice({{"a", {loop, body, endLoop, compute(5)}}});
  SimResult result = run(program);
  EXPECT_EQ(result.end_s, 8);
  ASSERT_EQ(result.spans.size(), 4u);
  EXPECT_EQ(result.spans[2].microbatch, 2);
  // No trip at all.
  program.devices[0].streams[0].commands[0].end = 1;
  EXPECT_EQ(run(program).end_s, 5);
}

TEST(Simulate, StepsRepeatAndEventsCountOn) {
  // The second step's wait is for the first step's record.
  SimProgram program =
      oneDevice({{"a", {on(SimCommandKind::Wait, 1, -1), compute(1)}},
                 {"b", {compute(2), on(SimCommandKind::Record, 1)}}});
  SimOptions options;
  options.steps = 3;
  SimResult result = run(program, options);
  EXPECT_EQ(result.step_s.size(), 3u);
  EXPECT_EQ(result.end_s, 9);
}

TEST(Simulate, AgreementWaitsForAll) {
  SimProgram program;
  program.links.assign(4, {1e9, 0});
  program.agreement_s = 0.5;
  for (double seconds : {1.0, 3.0})
    program.devices.push_back(
        {"n/" + std::to_string(program.devices.size()),
         1,
         {},
         {{"compute",
           {compute(seconds), on(SimCommandKind::Agree, 0), compute(1)}}}});
  SimResult result = run(program);
  EXPECT_EQ(result.end_s, 4.5);
  EXPECT_EQ(result.stream_waiting_s[0][0], 2.5);
}

// The simulator and the planner's judge are written apart and must agree; but
// the judge knows of no queue in front of a receiver.
TEST(Simulate, EqualsThePlannersPipelines) {
  std::mt19937 random(1);
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  unsigned equal = 0;
  for (int round = 0; round < 300; ++round) {
    Pipeline pipeline;
    pipeline.microbatches = 1 + random() % 8;
    pipeline.schedule =
        random() % 2 ? Schedule::GPipe : Schedule::OneForwardOneBackward;
    unsigned stages = 1 + random() % 5;
    for (unsigned stage = 0; stage < stages; ++stage) {
      pipeline.stages.push_back({real(0.1, 1), real(0.1, 2)});
      if (stage)
        pipeline.edges.push_back({stage - 1,
                                  stage,
                                  1e6,
                                  {real(1e6, 1e7), real(0, 0.2)},
                                  {real(1e6, 1e7), real(0, 0.2)}});
    }
    SimOptions options;
    options.eager_bytes = 1e9;
    double end = 0;
    for (const SimSpan &span : run(test::makeProgram(pipeline), options).spans)
      end = std::max(end, span.end_s);
    double judged = runPipeline(pipeline).end_s;
    EXPECT_LE(judged, end + 1e-9) << "round " << round;
    EXPECT_GE(judged, 0.95 * end) << "round " << round;
    equal += judged >= end - 1e-9;
  }
  EXPECT_GE(equal, 270u);
}

TEST(Simulate, LargeMessagesWaitForTheReceiver) {
  SimProgram program;
  program.links.assign(4, {1e6, 0});
  SimCommand send = on(SimCommandKind::Send, 0);
  send.peer = 1;
  send.bytes = 1e6;
  SimCommand receive = on(SimCommandKind::Receive, 0);
  program.devices = {
      {"n0/0", 1, {{"sent", false}}, {{"s", {send}}}},
      {"n1/0",
       1,
       {{"there", false}},
       {{"s", {compute(5), receive, on(SimCommandKind::Wait, 0)}}}}};
  EXPECT_EQ(run(program).end_s, 6);
  SimOptions options;
  options.eager_bytes = 1e7;
  EXPECT_EQ(run(program, options).end_s, 5);
}

// Both send and wait until that has left before they receive.
TEST(Simulate, SmallMessagesLeaveUnasked) {
  SimProgram program;
  program.links.assign(4, {1e6, 1});
  auto device = [&](const char *name, unsigned peer) {
    SimCommand send = on(SimCommandKind::Send, 0);
    SimCommand receive = on(SimCommandKind::Receive, 1);
    send.peer = receive.peer = peer;
    send.bytes = receive.bytes = 2e6;
    return SimDevice{name,
                     1,
                     {{"sent", false}, {"there", false}},
                     {{"s",
                       {send, on(SimCommandKind::Wait, 0), receive,
                        on(SimCommandKind::Wait, 1)}}}};
  };
  program.devices = {device("n0/0", 1), device("n1/0", 0)};
  SimOptions options;
  options.eager_bytes = 1e7;
  EXPECT_EQ(run(program, options).end_s, 3);
  EXPECT_TRUE(llvm::errorToBool(simulate(program).takeError()));
}

TEST(Simulate, DeadlocksAreExplained) {
  SimProgram program;
  program.links.assign(4, {1e6, 0});
  auto device = [&](const char *name, unsigned peer) {
    SimCommand receive = on(SimCommandKind::Receive, 0);
    receive.peer = peer;
    receive.channel = 7;
    SimCommand wait = on(SimCommandKind::Wait, 0);
    wait.name = "wait for x";
    return SimDevice{
        name, 1, {{"x is there", false}}, {{"compute", {receive, wait}}}};
  };
  program.devices = {device("n0/0", 1), device("n1/0", 0)};
  std::string message = llvm::toString(simulate(program).takeError());
  EXPECT_THAT(message,
              HasSubstr("n0/0, stream 'compute', command 1 'wait for x' of "
                        "step 0: waits for event 'x is there' of microbatch 0, "
                        "set by receiving from n1/0 on channel 7"));
  EXPECT_THAT(message, HasSubstr("n1/0, stream"));
}
