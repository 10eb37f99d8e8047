//===- TrainerTest.cpp - whole steps of a hand-built program ----------------===//

#include "LinearModel.h"

#include "core/Trainer.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {
struct TestRun {
  TemporaryFolder folder;
  NodeOptions options;
  ah_board board = {};

  TestRun() {
    writeFloats(folder / "in.safetensors", "x", {4, 1}, {1, 2, 3, 4});
    writeFloats(folder / "labels.safetensors", "labels", {4, 1}, {2, 4, 6, 9});
    writeFloats(folder / "w.safetensors", "w", {1, 1}, {1});
    writeFile(folder / "weights.index",
              R"({"format":"autohet-weights","version":1,
                  "structure_hash":"0000000000000000","tensors":[{"name":"w","file":"w.bin",
                  "offset":0,"bytes":4,"dtype":"float32","shape":[1,1],
                  "transform":"none"}]})");
    options.inputs = {folder / "in.safetensors"};
    options.labels = folder / "labels.safetensors";
    options.weights = folder / "w.safetensors";
    options.logEvery = 0;
    options.learningRate = 0.01;
  }

  void operator()(ProgramBuilder &builder) {
    ah_device_image image = builder.build();
    Program program(image);
    ah_worker_link link = {sizeof link, 0, nullptr, nullptr, &board, 0};
    Trainer(program, options, link, folder.path).run();
  }

  std::string error(ProgramBuilder &builder) {
    try {
      (*this)(builder);
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  }
};
} // namespace

TEST(Trainer, StepEqualsHandComputation) {
  TestRun run;
  run.options.saveLoss = run.folder / "loss.jsonl";
  run.options.saveOutputs = run.folder / "out.safetensors";
  run.options.saveGradients = run.folder / "grad.safetensors";
  run.options.saveWeights = run.folder / "after.safetensors";
  LinearModel model(2, 2);
  run(model);
  // y = x; errors -1, -2, -3, -5: loss 39 / 4, gradient -2 (1 + 4 + 9 + 20) / 4
  // = -17.
  EXPECT_EQ(readFloats(run.folder / "out.safetensors", "y"),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(readFloats(run.folder / "grad.safetensors", "w"),
            std::vector<float>{-17});
  EXPECT_FLOAT_EQ(readFloats(run.folder / "after.safetensors", "w")[0], 1.17f);
  MappedFile lines(run.folder / "loss.jsonl");
  EXPECT_EQ(std::string(lines.data(), lines.size()),
            "{\"step\":0,\"loss\":9.75,\"gradient_norm\":17,\"lr\":0.01}\n");
}

TEST(Trainer, StepInAFileNameAsksForEveryStep) {
  TestRun run;
  run.options.steps = 3;
  run.options.saveOutputs = run.folder / "out{step}.safetensors";
  run.options.saveGradients = run.folder / "grad-{step}.safetensors";
  LinearModel model(2, 2);
  run(model);
  // The gradient is (1 + 4 + 9 + 16) / 2 w - (2 + 8 + 18 + 36) / 2 = 15 w - 32.
  double w = 1;
  for (std::string step : {"0", "1", "2"}) {
    EXPECT_NEAR(
        readFloats(run.folder / ("out" + step + ".safetensors"), "y")[0], w,
        1e-6);
    float gradient =
        readFloats(run.folder / ("grad-" + step + ".safetensors"), "w")[0];
    EXPECT_NEAR(gradient, 15 * w - 32, 1e-5);
    w -= 0.01 * gradient;
  }
  EXPECT_FALSE(std::filesystem::exists(run.folder / "grad-{step}.safetensors"));
}

TEST(Trainer, MicrobatchesDoNotChangeTheStep) {
  float results[2];
  for (uint32_t microbatches : {1u, 4u}) {
    TestRun run;
    run.options.steps = 5;
    run.options.saveWeights = run.folder / "after.safetensors";
    LinearModel model(microbatches, 4 / microbatches);
    run(model);
    results[microbatches == 4] =
        readFloats(run.folder / "after.safetensors", "w")[0];
  }
  EXPECT_NEAR(results[0], results[1], 1e-6);
}

TEST(Trainer, ClippingScalesToTheNorm) {
  TestRun run;
  run.options.clipNorm = 1;
  run.options.saveWeights = run.folder / "after.safetensors";
  LinearModel model(1, 4);
  run(model);
  EXPECT_NEAR(readFloats(run.folder / "after.safetensors", "w")[0], 1.01f,
              1e-6);
}

TEST(Trainer, NoDecayIsFoundByName) {
  for (bool excluded : {false, true}) {
    TestRun run;
    run.options.weightDecay = 10;
    run.options.noDecay = excluded ? "^w$" : "bias";
    run.options.saveWeights = run.folder / "after.safetensors";
    LinearModel model(1, 4);
    run(model);
    EXPECT_NEAR(readFloats(run.folder / "after.safetensors", "w")[0],
                excluded ? 1.17f : 1.07f, 1e-6);
  }
}

// "w" is "head" as well: either name is read, both are written.
TEST(Trainer, TiedParametersHaveAllTheirNames) {
  TestRun run;
  writeFile(run.folder / "weights.index",
            R"({"format":"autohet-weights","version":1,
                "structure_hash":"0000000000000000","tensors":[{"name":"w","file":"w.bin",
                "offset":0,"bytes":4,"dtype":"float32","shape":[1,1],
                "transform":"none"}],"aliases":{"head":"w"}})");
  run.options.saveWeights = run.folder / "after.safetensors";
  run.options.saveGradients = run.folder / "grad.safetensors";
  run.options.checkpoints = run.folder / "checkpoints";
  run.options.weightDecay = 10;
  run.options.noDecay = "^head$";
  writeFloats(run.folder / "w.safetensors", "head", {1, 1}, {1});
  LinearModel model(1, 4);
  run(model);
  for (const char *name : {"w", "head"})
    EXPECT_FLOAT_EQ(readFloats(run.folder / "after.safetensors", name)[0],
                    1.17f);
  EXPECT_EQ(SafetensorsFile(run.folder / "grad.safetensors").tensors().size(),
            1u);
  EXPECT_EQ(CheckpointManifest::read(run.options.checkpoints + "/" +
                                     stepFolderName(1) + "/manifest.json")
                .aliases,
            (Aliases{{"head", "w"}}));

  // Both are read where they are equal, and refused where not.
  run.options.checkpoints.clear();
  for (float head : {1.f, 2.f}) {
    float values[] = {1, head};
    std::vector<TensorSource> both;
    for (int index : {0, 1})
      both.push_back({index ? "head" : "w", AH_F32, {1, 1}, [&values, index] {
                        return &values[index];
                      }});
    writeSafetensors(run.folder / "w.safetensors", both);
    LinearModel again(1, 4);
    EXPECT_THAT(run.error(again),
                HasSubstr(head == 1 ? "no error" : "'w' and 'head' differ"));
  }
}

TEST(Trainer, NonfiniteNamesStepAndCommand) {
  TestRun run;
  run.options.steps = 40;
  run.options.learningRate = 1000;
  LinearModel model(2, 2);
  std::string error = run.error(model);
  EXPECT_THAT(error, HasSubstr("loss inf"));
  EXPECT_THAT(error,
              HasSubstr("infinity in 'loss', element 0 of [], made by LAUNCH "
                        "'squares', microbatch 0"));
}

TEST(Trainer, PlacesAreTriedBeforeTheFirstStep) {
  std::string NodeOptions::*const places[] = {
      &NodeOptions::saveLoss,    &NodeOptions::saveOutputs,
      &NodeOptions::saveWeights, &NodeOptions::saveGradients,
      &NodeOptions::metrics,     &NodeOptions::trace,
      &NodeOptions::checkpoints};
  for (auto place : places) {
    TestRun run;
    run.options.*place = run.folder / "none/file";
    // It would be an error, later.
    run.options.inputs.clear();
    LinearModel model(1, 4);
    EXPECT_THAT(run.error(model),
                AllOf(HasSubstr("option --"), HasSubstr("none/file"),
                      HasSubstr("No such file or directory")));
    run.options.*place = run.folder.path;
    if (place != &NodeOptions::checkpoints)
      EXPECT_THAT(run.error(model), HasSubstr("option --"));
  }
  // Nothing is left of an attempt that went well.
  TestRun run;
  run.options.saveWeights = run.folder / "w{step}";
  run.options.inputs.clear();
  LinearModel model(1, 4);
  EXPECT_THAT(run.error(model), HasSubstr("has no values"));
  for (const auto &entry : std::filesystem::directory_iterator(run.folder.path))
    EXPECT_EQ(entry.path().string().find("w{step}"), std::string::npos);
}

TEST(Trainer, NonfiniteStepMayBeSkipped) {
  TestRun run;
  run.options.onNonfinite = OnNonfinite::Skip;
  writeFloats(run.folder / "labels.safetensors", "labels", {8, 1},
              {2, 4, 6, 9, NAN, 4, 6, 9});
  writeFloats(run.folder / "in.safetensors", "x", {8, 1},
              {1, 2, 3, 4, 1, 2, 3, 4});
  run.options.steps = 2;
  run.options.saveWeights = run.folder / "after.safetensors";
  LinearModel model(2, 2);
  run(model);
  EXPECT_FLOAT_EQ(readFloats(run.folder / "after.safetensors", "w")[0], 1.17f);
}

TEST(Trainer, StopRequestEndsAfterTheStep) {
  TestRun run;
  run.board.requests = AH_FLAG_STOP;
  run.options.steps = 100;
  run.options.saveLoss = run.folder / "loss.jsonl";
  LinearModel model(1, 4);
  run(model);
  MappedFile lines(run.folder / "loss.jsonl");
  EXPECT_EQ(std::count(lines.data(), lines.data() + lines.size(), '\n'), 1);
}

TEST(Trainer, InputsAreCheckedAgainstTheProgram) {
  {
    TestRun run;
    writeFloats(run.folder / "in.safetensors", "x", {4, 2},
                {1, 2, 3, 4, 5, 6, 7, 8});
    LinearModel model(2, 2);
    EXPECT_THAT(run.error(model),
                HasSubstr("tensor 'x' has shape [4, 2], wanted [4, 1]"));
  }
  {
    TestRun run;
    writeFloats(run.folder / "in.safetensors", "x", {3, 1}, {1, 2, 3});
    LinearModel model(2, 2);
    EXPECT_THAT(
        run.error(model),
        HasSubstr("has 3 samples, wanted a multiple of the global batch, 4"));
  }
  {
    TestRun run;
    run.options.inputs.clear();
    LinearModel model(2, 2);
    EXPECT_THAT(run.error(model), HasSubstr("input 'x' has no values"));
  }
  {
    TestRun run;
    writeFloats(run.folder / "w.safetensors", "w", {2}, {1, 2});
    LinearModel model(2, 2);
    EXPECT_THAT(run.error(model),
                HasSubstr("parameter 'w' has shape [2], wanted "
                          "[1, 1]"));
  }
}

TEST(Trainer, BlocksOfInputsTakeTurns) {
  TestRun run;
  writeFloats(run.folder / "in.safetensors", "x", {8, 1},
              {1, 2, 3, 4, 0, 0, 0, 0});
  run.options.steps = 4;
  run.options.learningRate = 0;
  writeFloats(run.folder / "labels.safetensors", "labels", {8, 1},
              {2, 4, 6, 9, 2, 0, 0, 0});
  run.options.saveLoss = run.folder / "loss.jsonl";
  LinearModel model(2, 2);
  run(model);
  MappedFile lines(run.folder / "loss.jsonl");
  std::string text(lines.data(), lines.size());
  EXPECT_THAT(text, HasSubstr("{\"step\":2,\"loss\":9.75"));
  EXPECT_THAT(text, HasSubstr("{\"step\":3,\"loss\":1,"));
}
