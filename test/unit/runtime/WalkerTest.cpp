//===- WalkerTest.cpp - streams, events, loops, transfers -------------------===//

#include "LinearModel.h"
#include "LocalTransport.h"

#include "core/Trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

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
  void feed(const Pass &, uint32_t input, uint64_t microbatch, void *) override {
    note(format("feed %u %llu", input, (unsigned long long)microbatch));
  }
  void output(const Pass &, uint32_t, uint64_t microbatch, const void *from) override {
    note(format("output %llu %g", (unsigned long long)microbatch, *(const float *)from));
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
  std::string run(ProgramBuilder &builder, unsigned passes = 1) {
    Program program(builder.build());
    Memory memory(program, *ah_cpu_device_table(), 0);
    ah_worker_link link = {sizeof link, 0, nullptr, nullptr, &board};
    try {
      Walker walker(memory, client, link, nullptr);
      for (unsigned pass = 0; pass < passes; ++pass) {
        Pass p;
        p.step = pass;
        walker.run(p);
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
  EXPECT_THAT(runner.client.calls, testing::ElementsAre("output 0 0", "output 1 2",
                                                        "output 2 4", "output 3 6",
                                                        "output 4 8"));
  EXPECT_EQ(runner.board.commands, 10u);
}

TEST(Walker, StreamsMeetAtEvents) {
  ProgramBuilder b;
  b.batch(3, 1);
  b.port(b.outputs, "y", AH_F32, {});
  uint32_t y = b.buffer("y", AH_SPACE_ARENA, AH_F32, {}, 1);
  uint32_t kernel = b.kernel(storeSample);
  uint32_t made = b.event("made"), taken = b.event("taken"), end = b.event("end", true);
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

TEST(Walker, FirstFailureStopsAllStreamsAndIsNamed) {
  ProgramBuilder b;
  b.batch(4, 1);
  uint32_t never = b.event("never");
  uint32_t kernel = b.kernel([](void *const *, ah_kernel_context *context) -> int64_t {
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
  EXPECT_EQ(runner.run(b), "node0/0, step 0, microbatch 2, LAUNCH 'wte.gather': element 12 "
                           "is 50300, outside of the table it indexes");
}

TEST(Walker, WaitThatCannotEndIsAnError) {
  ProgramBuilder b;
  uint32_t never = b.event("never");
  b.stream("compute");
  b.command(AH_WAIT, "wait", {}, {never});
  Runner runner;
  EXPECT_THAT(runner.run(b), HasSubstr("waits for event 'never', which nothing can set"));
}

TEST(Walker, ProgramWithTransfersNeedsATransport) {
  ProgramBuilder b;
  b.header.world_size = 2;
  uint32_t x = b.buffer("x", AH_SPACE_ARENA, AH_F32, {4});
  b.stream("compute");
  b.command(AH_SEND, "send", {x}, {1, 0, 16, b.event("sent")});
  Runner runner;
  EXPECT_THAT(runner.run(b), HasSubstr("has transfers in its program but no transport"));
}

//===-- Two replicas of the linear model ----------------------------------------===//

namespace {
/// Rank 0 owns w: rank 1 sends its gradient there and gets the new bytes; the
/// first use of w in the next step waits for them.
class Replica : public LinearModel {
public:
  Replica(uint32_t rank, uint32_t microbatches, uint32_t first, ah_optimizer optimizer)
      : LinearModel(microbatches, 1, optimizer) {
    header.rank = rank;
    header.world_size = 2;
    header.global_batch = 4;
    header.first_sample = first;
    parameters[0].owned = rank == 0;
    uint32_t w = parameters[0].parameter_buffer, g = parameters[0].gradient_buffer;
    // Take the update off, and put the exchange in its place.
    std::vector<ah_command> all = commands;
    auto norm = std::find_if(all.begin(), all.end(),
                             [](auto &c) { return c.kind == AH_NORM; });
    std::vector<ah_command> tail(norm, all.end());
    commands.erase(commands.begin() + (norm - all.begin()), commands.end());
    streams.back().command_count = commands.size();
    uint32_t transferred = event("gradient", true), arrived = event("weights", true);
    uint32_t updated = event("updated", true), computed = event("computed", true);
    if (rank == 0) {
      uint32_t theirs = buffer("theirs", AH_SPACE_ARENA, AH_F32, {1, 1});
      command(AH_RECV, "recv gradient", {theirs}, {1, 0, 4, transferred});
      command(AH_WAIT, "wait gradient", {}, {transferred});
      command(AH_REDUCE, "sum", {g, g, theirs}, {1});
      for (ah_command &c : tail) {
        commands.push_back(c);
        ++streams.back().command_count;
      }
      command(AH_RECORD, "updated", {}, {updated});
      stream("communication");
      command(AH_WAIT, "wait update", {}, {updated});
      command(AH_SEND, "send weights", {w}, {1, 1, 4, arrived});
    } else {
      command(AH_SEND, "send gradient", {g}, {0, 0, 4, transferred});
      command(AH_WAIT, "sent", {}, {transferred});
      command(AH_AGREE, "agree");
      command(AH_RECORD, "computed", {}, {computed});
      // Waits in the next step's beginning.
      ah_command wait = {};
      wait.kind = AH_WAIT;
      wait.name = string("wait weights");
      wait.microbatch = -1;
      wait.args[0] = arrived;
      commands.insert(commands.begin(), wait);
      ++streams.back().command_count;
      stream("communication");
      command(AH_WAIT, "wait computed", {}, {computed});
      command(AH_RECV, "recv weights", {w}, {0, 1, 4, arrived});
    }
  }
};
} // namespace

static std::vector<std::string> trainReplicas(const TemporaryFolder &folder,
                                              NodeOptions options,
                                              std::vector<Replica *> replicas) {
  LocalWorld world(2);
  std::vector<std::string> errors(2, "no error");
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      ah_board board = {};
      ah_comm comm = {&world, rank};
      ah_worker_link link = {sizeof link, 0, &localTable(), &comm, &board};
      try {
        Program program(replicas[rank]->build());
        Trainer(program, options, link, folder.path).run();
      } catch (const Error &error) {
        errors[rank] = error.what();
        localCancel(&comm, error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

static NodeOptions trainingOptions(const TemporaryFolder &folder) {
  writeFloats(folder / "in", "x", {4, 1}, {1, 2, 3, 4});
  writeFloats(folder / "labels", "labels", {4, 1}, {2, 4, 6, 9});
  writeFloats(folder / "w", "w", {1, 1}, {1});
  writeFile(folder / "weights.index",
            R"({"format":"autohet-weights","version":1,
                "structure_hash":"0000000000000000","tensors":[{"name":"w","file":"w.bin",
                "offset":0,"bytes":4,"dtype":"float32","shape":[1,1],"transform":"none"}]})");
  NodeOptions options;
  options.inputs = folder / "in";
  options.labels = folder / "labels";
  options.weights = folder / "w";
  options.logEvery = 0;
  options.learningRate = 0.01;
  options.saveWeights = folder / "after";
  options.saveGradients = folder / "grad";
  options.saveOutputs = folder / "out";
  options.saveLoss = folder / "loss";
  return options;
}

TEST(Walker, UnevenReplicasEqualOneDevice) {
  for (ah_optimizer optimizer : {AH_SGD, AH_ADAMW}) {
    TemporaryFolder apart, together;
    NodeOptions options = trainingOptions(together);
    options.steps = 6;
    {
      LinearModel model(1, 4, optimizer);
      Program program(model.build());
      ah_board board = {};
      ah_worker_link link = {sizeof link, 0, nullptr, nullptr, &board};
      Trainer(program, options, link, together.path).run();
    }
    options = trainingOptions(apart);
    options.steps = 6;
    Replica first(0, 3, 0, optimizer), second(1, 1, 3, optimizer);
    EXPECT_THAT(trainReplicas(apart, options, {&first, &second}),
                testing::Each("no error"));
    for (auto [file, name] : {std::pair("after", "w"), {"grad", "w"}, {"out", "y"}}) {
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
