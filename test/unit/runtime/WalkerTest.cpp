//===- WalkerTest.cpp - streams, events, loops, transfers -------------------===//

#include "ReplicaModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

namespace {
/// Notes what it is asked, and lets every update pass.
struct RecordingClient : StepClient {
  std::vector<std::string> calls;
  std::mutex mutex;
  void note(const std::string &text) {
    std::lock_guard<std::mutex> lock(mutex);
    calls.push_back(text);
  }
  void feed(const Pass &, uint32_t input, uint64_t microbatch,
            void *) override {
    note(format("feed %u %llu", input, (unsigned long long)microbatch));
  }
  void output(const Pass &, uint32_t, uint64_t microbatch,
              const void *from) override {
    note(format("output %llu %g", (unsigned long long)microbatch,
                *(const float *)from));
  }
  void agree(Pass &pass) override { pass.gateOpen = pass.updates; }
  double weightDecay(uint32_t) const override { return 0; }
  void hook(const Pass &pass, int64_t which) override {
    note(format("hook %lld", (long long)which));
  }
};

struct Runner {
  ah_board board = {};
  RecordingClient client;
  /// `announces`: each pass but the last says what follows it.
  std::string run(ProgramBuilder &builder, unsigned passes = 1,
                  bool announces = false) {
    Program program(builder.build());
    Memory memory(program, *ah_cpu_device_table(), 0);
    ah_worker_link link = {sizeof link, 0, nullptr, nullptr, &board, 0};
    try {
      Walker walker(memory, client, link, nullptr);
      for (unsigned pass = 0; pass < passes; ++pass) {
        Pass p, next;
        p.step = pass;
        next.step = pass + 1;
        walker.run(p, announces && pass + 1 < passes ? &next : nullptr);
      }
      walker.drain();
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  }
};

int64_t storeSample(void *const *operands, ah_kernel_context *context) {
  *(float *)operands[0] = context->first_sample;
  return 0;
}
} // namespace

TEST(Walker, LoopsSlotsAndMicrobatches) {
  ProgramBuilder b;
  b.batch(5, 2);
  b.port(b.outputs, "y", AH_F32, {});
  uint32_t y = b.buffer("y", AH_SPACE_ARENA, AH_F32, {}, 2);
  uint32_t kernel = b.kernel(storeSample);
  b.stream("compute");
  // Prologue, a loop that is one microbatch behind, epilogue.
  b.command(AH_LAUNCH, "make", {y}, {kernel}, 0);
  b.command(AH_LOOP, "loop", {}, {0, 4});
  b.command(AH_LAUNCH, "make", {y}, {kernel}, 1);
  b.command(AH_OUTPUT, "give", {y}, {0}, 0);
  b.command(AH_END_LOOP, "end");
  b.command(AH_OUTPUT, "give", {y}, {0}, 4);
  b.command(AH_LOOP, "never", {}, {5, 5});
  b.command(AH_HOOK, "never", {}, {7});
  b.command(AH_END_LOOP, "end");
  Runner runner;
  EXPECT_EQ(runner.run(b), "no error");
  EXPECT_THAT(runner.client.calls,
              testing::ElementsAre("output 0 0", "output 1 2", "output 2 4",
                                   "output 3 6", "output 4 8"));
  EXPECT_EQ(runner.board.commands, 10u);
}

TEST(Walker, StreamsMeetAtEvents) {
  ProgramBuilder b;
  b.batch(3, 1);
  b.port(b.outputs, "y", AH_F32, {});
  uint32_t y = b.buffer("y", AH_SPACE_ARENA, AH_F32, {}, 1);
  uint32_t kernel = b.kernel(storeSample);
  uint32_t made = b.event("made"), taken = b.event("taken"),
           end = b.event("end", true);
  b.stream("compute");
  b.command(AH_LOOP, "loop", {}, {0, 3});
  // One slot: it is free when the microbatch before has been taken.
  b.command(AH_WAIT, "free", {}, {taken}, -1);
  b.command(AH_LAUNCH, "make", {y}, {kernel});
  b.command(AH_RECORD, "made", {}, {made});
  b.command(AH_END_LOOP, "end");
  b.command(AH_WAIT, "all", {}, {end});
  b.stream("other");
  b.command(AH_LOOP, "loop", {}, {0, 3});
  b.command(AH_WAIT, "made", {}, {made});
  b.command(AH_OUTPUT, "give", {y}, {0});
  b.command(AH_RECORD, "taken", {}, {taken});
  b.command(AH_END_LOOP, "end");
  b.command(AH_RECORD, "end", {}, {end});
  Runner runner;
  EXPECT_EQ(runner.run(b, 50), "no error");
  ASSERT_EQ(runner.client.calls.size(), 150u);
  EXPECT_EQ(runner.client.calls[148], "output 1 1");
}

TEST(Walker, SlotsGoRoundFromPassToPass) {
  // Three microbatches a pass through two slots: what the next pass makes first
  // must not lie where this one's last is still to be taken.
  ProgramBuilder b;
  b.batch(3, 1);
  b.port(b.outputs, "y", AH_F32, {});
  uint32_t y = b.buffer("y", AH_SPACE_ARENA, AH_F32, {}, 2);
  uint32_t kernel = b.kernel(
      [](void *const *operands, ah_kernel_context *context) -> int64_t {
        *(float *)operands[0] = context->step * 3 + context->first_sample;
        return 0;
      });
  uint32_t made = b.event("made"), taken = b.event("taken");
  b.stream("compute");
  b.command(AH_LOOP, "loop", {}, {0, 3});
  b.command(AH_WAIT, "made", {}, {made});
  b.command(AH_OUTPUT, "give", {y}, {0});
  b.command(AH_RECORD, "taken", {}, {taken});
  b.command(AH_END_LOOP, "end");
  b.stream("make");
  b.command(AH_LOOP, "loop", {}, {0, 3});
  b.command(AH_WAIT, "free", {}, {taken}, -2);
  b.command(AH_LAUNCH, "make", {y}, {kernel});
  b.command(AH_RECORD, "made", {}, {made});
  b.command(AH_END_LOOP, "end");
  Runner runner;
  EXPECT_EQ(runner.run(b, 101, /*announces=*/true), "no error");
  ASSERT_EQ(runner.client.calls.size(), 303u);
  for (unsigned call = 0; call < 303; ++call)
    EXPECT_EQ(runner.client.calls[call],
              format("output %u %u", call % 3, call));
}

TEST(Walker, FirstFailureStopsAllStreamsAndIsNamed) {
  ProgramBuilder b;
  b.batch(4, 1);
  uint32_t never = b.event("never");
  uint32_t kernel =
      b.kernel([](void *const *, ah_kernel_context *context) -> int64_t {
        if (context->first_sample < 2)
          return 0;
        context->error_index = 12;
        context->error_value = 50300;
        return 1;
      });
  b.stream("compute");
  b.command(AH_WAIT, "wait", {}, {never});
  b.stream("other");
  b.command(AH_LOOP, "loop", {}, {0, 4});
  b.command(AH_LAUNCH, "wte.gather", {}, {kernel});
  b.command(AH_END_LOOP, "end");
  Runner runner;
  EXPECT_EQ(runner.run(b),
            "node0/0, step 0, microbatch 2, LAUNCH 'wte.gather': element 12 "
            "is 50300, outside of the table it indexes");
}

TEST(Walker, WaitThatCannotEndIsAnError) {
  ProgramBuilder b;
  uint32_t never = b.event("never");
  b.stream("compute");
  b.command(AH_WAIT, "wait", {}, {never});
  Runner runner;
  EXPECT_THAT(runner.run(b),
              HasSubstr("waits for event 'never', which nothing can set"));
}

TEST(Walker, ProgramWithTransfersNeedsATransport) {
  ProgramBuilder b;
  b.header.world_size = 2;
  uint32_t x = b.buffer("x", AH_SPACE_ARENA, AH_F32, {4});
  b.stream("compute");
  b.command(AH_SEND, "send", {x}, {1, 0, 16, b.event("sent")});
  Runner runner;
  EXPECT_THAT(runner.run(b),
              HasSubstr("has transfers in its program but no transport"));
}

TEST(Walker, UnevenReplicasEqualOneDevice) {
  for (ah_optimizer optimizer : {AH_SGD, AH_ADAMW}) {
    TemporaryFolder apart, together;
    NodeOptions options = trainingOptions(together);
    options.steps = 6;
    LinearModel model(1, 4, optimizer);
    EXPECT_EQ(trainAlone(together, options, model), "no error");
    options = trainingOptions(apart);
    options.steps = 6;
    options.checkCopies = true;
    Replica first(0, 3, 0, optimizer), second(1, 1, 3, optimizer);
    EXPECT_THAT(trainReplicas(apart, options, {&first, &second}),
                testing::Each("no error"));
    for (auto [file, name] :
         {std::pair("after", "w"), {"grad", "w"}, {"out", "y"}}) {
      std::vector<float> wanted = readFloats(together / file, name);
      EXPECT_THAT(readFloats(apart / file, name),
                  testing::Pointwise(testing::FloatEq(), wanted));
    }
    MappedFile a(apart / "loss"), b(together / "loss");
    EXPECT_EQ(std::string(a.data(), 40), std::string(b.data(), 40));
  }
}

TEST(Walker, FailureOfOneRankEndsTheOther) {
  TemporaryFolder folder;
  NodeOptions options = trainingOptions(folder);
  options.steps = 1000;
  options.learningRate = 1000;
  Replica first(0, 3, 0, AH_SGD), second(1, 1, 3, AH_SGD);
  auto errors = trainReplicas(folder, options, {&first, &second});
  EXPECT_THAT(errors, testing::Each(HasSubstr("gradient norm")));
  EXPECT_THAT(errors, testing::Contains(HasSubstr("LAUNCH 'squares'")));
}
