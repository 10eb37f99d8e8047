//===- CheckpointTest.cpp - saved, damaged, resumed under another plan ------===//

#include "ReplicaModel.h"
#include "checkpoint/FolderLock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

namespace {
/// A run of `steps`, saved at its end; `resume` continues it.
struct Saved {
  TemporaryFolder folder;
  NodeOptions options = trainingOptions(folder);

  explicit Saved(int64_t steps = 3) {
    options.checkpoints = folder / "checkpoints";
    options.steps = steps;
    LinearModel model(2, 2, AH_ADAMW);
    EXPECT_EQ(trainAlone(folder, options, model), "no error");
  }
  std::string resume(int64_t steps, ah_optimizer optimizer = AH_ADAMW) {
    options.resume = true;
    options.steps = steps;
    LinearModel model(1, 4, optimizer);
    return trainAlone(folder, options, model);
  }
  std::string step(int64_t step) {
    return options.checkpoints + "/" + stepFolderName(step);
  }
  std::string dataFile(int64_t number) {
    CheckpointManifest manifest =
        CheckpointManifest::read(step(number) + "/manifest.json");
    return step(number) + "/" + manifest.files.at(0).name;
  }
};
} // namespace

static std::string readAll(const std::string &path) {
  MappedFile file(path);
  return {file.data(), file.size()};
}

TEST(Checkpoint, ManifestSurvivesItsText) {
  CheckpointManifest manifest;
  manifest.step = 7;
  manifest.updates = 6;
  manifest.structureHash = ~0ull;
  manifest.seed = ~0ull;
  manifest.globalBatch = 64;
  manifest.sequenceLength = 128;
  manifest.optimizer = AH_ADAMW;
  ah_optimizer_defaults(AH_ADAMW, &manifest.settings);
  manifest.settings.learning_rate = 0.1 + 0.2;
  manifest.noDecay = "\\.bias$|\"";
  manifest.aliases = {{"b", "a \"b\""}, {"c", "a \"b\""}};
  manifest.files = {{"rank-0000.safetensors", 12}};
  manifest.slices = {
      {"a \"b\"", SliceKind::Square, AH_F32, {{4, 2}, {1, 0}, {3, 2}}, "f", 5}};
  TemporaryFolder folder;
  writeFile(folder / "m", manifest.text());
  CheckpointManifest again = CheckpointManifest::read(folder / "m");
  EXPECT_EQ(again.text(), manifest.text());
  EXPECT_EQ(again.sequenceLength, 128u);
  EXPECT_EQ(again.settings.learning_rate, 0.1 + 0.2);
  EXPECT_EQ(again.noDecay, manifest.noDecay);
  EXPECT_EQ(again.aliases, manifest.aliases);
  manifest.aliases = {{"c", "d"}};
  writeFile(folder / "m", manifest.text());
  try {
    CheckpointManifest::read(folder / "m");
    ADD_FAILURE() << "an alias of nothing was accepted";
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("'d' is no slice's name"));
  }
  EXPECT_EQ(again.slices[0].key(), "exp_avg_sq/a \"b\"/1,0");
}

TEST(Checkpoint, NoByteOfAManifestChangesUnseen) {
  CheckpointManifest manifest;
  manifest.step = manifest.updates = 3;
  manifest.globalBatch = 4;
  manifest.optimizer = AH_SGD;
  ah_optimizer_defaults(AH_SGD, &manifest.settings);
  manifest.files = {{"a", 8}};
  manifest.slices = {
      {"w", SliceKind::Parameter, AH_F32, {{2}, {0}, {2}}, "a", 5}};
  std::string text = manifest.text();
  TemporaryFolder folder;
  writeFile(folder / "m", text);
  EXPECT_EQ(CheckpointManifest::read(folder / "m").text(), text);
  // What follows the checksum is white space and braces.
  for (size_t at = 0; at + 4 < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 1;
    writeFile(folder / "m", changed);
    EXPECT_THROW(CheckpointManifest::read(folder / "m"), Error) << changed;
  }
}

TEST(Checkpoint, ResumedEqualsUninterrupted) {
  Saved run(3);
  EXPECT_EQ(run.resume(8), "no error");
  TemporaryFolder other;
  NodeOptions options = trainingOptions(other);
  options.steps = 8;
  LinearModel whole(1, 4, AH_ADAMW);
  EXPECT_EQ(trainAlone(other, options, whole), "no error");
  EXPECT_THAT(
      readFloats(run.folder / "after", "w"),
      testing::Pointwise(testing::FloatEq(), readFloats(other / "after", "w")));
  // Two checkpoints: of step 3 and of the end.
  EXPECT_EQ(findCheckpoints(run.options.checkpoints).size(), 2u);
}

TEST(Checkpoint, ParametersWithoutDecayStayThose) {
  float after[2];
  for (bool resumes : {false, true}) {
    TemporaryFolder folder;
    NodeOptions options = trainingOptions(folder);
    options.weightDecay = 5;
    options.noDecay = "^w$";
    options.checkpoints = folder / "checkpoints";
    LinearModel model(1, 4, AH_ADAMW), again(1, 4, AH_ADAMW);
    options.steps = resumes ? 3 : 6;
    EXPECT_EQ(trainAlone(folder, options, model), "no error");
    if (resumes) {
      options.noDecay.reset();
      options.weightDecay.reset();
      options.resume = true;
      options.steps = 6;
      EXPECT_EQ(trainAlone(folder, options, again), "no error");
    }
    after[resumes] = readFloats(folder / "after", "w")[0];
  }
  EXPECT_EQ(after[0], after[1]);
}

TEST(Checkpoint, ResumesUnderAnotherPlanBothWays) {
  TemporaryFolder folder, other;
  NodeOptions options = trainingOptions(folder);
  options.checkpoints = folder / "checkpoints";
  options.steps = 2;
  Replica first(0, 3, 0, AH_ADAMW), second(1, 1, 3, AH_ADAMW);
  EXPECT_THAT(trainReplicas(folder, options, {&first, &second}),
              testing::Each("no error"));
  options.resume = true;
  options.steps = 4;
  LinearModel alone(2, 2, AH_ADAMW);
  EXPECT_EQ(trainAlone(folder, options, alone), "no error");
  options.steps = 6;
  Replica third(0, 1, 0, AH_ADAMW), fourth(1, 3, 1, AH_ADAMW);
  EXPECT_THAT(trainReplicas(folder, options, {&third, &fourth}),
              testing::Each("no error"));

  NodeOptions straight = trainingOptions(other);
  straight.steps = 6;
  LinearModel whole(1, 4, AH_ADAMW);
  EXPECT_EQ(trainAlone(other, straight, whole), "no error");
  EXPECT_THAT(
      readFloats(folder / "after", "w"),
      testing::Pointwise(testing::FloatEq(), readFloats(other / "after", "w")));
}

TEST(Checkpoint, IncompleteOnesAreSkipped) {
  Saved run(3);
  mkdir(run.step(5).c_str(), 0777);
  writeFile(run.step(5) + "/rank-0000-1.safetensors", "half");
  EXPECT_EQ(run.resume(5), "no error");
  // What was not written by the save of step 5 is still there.
  EXPECT_EQ(readAll(run.step(5) + "/rank-0000-1.safetensors"), "half");
}

// What cannot be looked at may be the newest: going back is nobody's default.
TEST(Checkpoint, UnreadableOnesAreNotSkipped) {
  Saved run(3);
  mkdir(run.step(5).c_str(), 0777);
  std::string manifest = run.step(5) + "/manifest.json";
  ASSERT_EQ(symlink(manifest.c_str(), manifest.c_str()), 0);
  EXPECT_THAT(run.resume(6),
              AllOf(HasSubstr("cannot open '" + manifest + "': Too many"),
                    HasSubstr("; another one is '" + run.step(3) +
                              "': --resume=3 goes on from it")));
  run.options.resumeStep = 3;
  EXPECT_EQ(run.resume(6), "no error");
}

TEST(Checkpoint, DamagedOnesEndNoRun) {
  Saved run(3);
  // Of a step that is saved again, and one that is to be removed.
  for (int64_t step : {1, 5}) {
    mkdir(run.step(step).c_str(), 0777);
    writeFile(run.step(step) + "/manifest.json", "");
  }
  run.options.resumeStep = 3;
  run.options.checkpointKeep = 1;
  EXPECT_EQ(run.resume(5), "no error");
  CheckpointReader(run.step(5)).verify();
  EXPECT_EQ(readAll(run.step(1) + "/manifest.json"), "");
}

TEST(Checkpoint, OthersAreNamedWhereOneIsDamaged) {
  Saved run(3);
  EXPECT_EQ(run.resume(5), "no error");
  std::string bytes = readAll(run.dataFile(5));
  bytes[bytes.size() - 1] ^= 1;
  writeFile(run.dataFile(5), bytes);
  std::string found = run.resume(7);
  EXPECT_THAT(found, HasSubstr("is damaged"));
  EXPECT_THAT(found, HasSubstr("; another one is '" + run.step(3) +
                               "': --resume=3 goes on from it"));
  // Of another job all are.
  EXPECT_THAT(run.resume(7, AH_SGD), Not(HasSubstr("another one")));
}

TEST(Checkpoint, NothingToResumeFromIsAnError) {
  Saved run(3);
  run.options.resumeStep = 9;
  EXPECT_THAT(run.resume(5),
              HasSubstr("of step 9 in '" + run.options.checkpoints +
                        "'; there are steps 3"));
  run.options.resumeStep = -1;
  unlink((run.step(3) + "/manifest.json").c_str());
  EXPECT_THAT(run.resume(5), HasSubstr("there is no complete checkpoint in"));
  EXPECT_THAT(run.resume(5), HasSubstr("incomplete: " + run.step(3)));
  run.options.checkpoints = run.folder / "nowhere";
  EXPECT_THAT(run.resume(5), HasSubstr("cannot read the checkpoints in"));
}

TEST(Checkpoint, DamageIsNamed) {
  {
    Saved run(3);
    std::string bytes = readAll(run.dataFile(3));
    bytes[bytes.size() - 1] ^= 1;
    writeFile(run.dataFile(3), bytes);
    EXPECT_THAT(run.resume(5), HasSubstr("'exp_avg_sq/w/0,0' in 'rank-0000-"));
    EXPECT_THAT(run.resume(5), HasSubstr("is damaged: it is xxh64:"));
  }
  {
    Saved run(3);
    std::string bytes = readAll(run.dataFile(3));
    writeFile(run.dataFile(3), bytes.substr(0, bytes.size() - 1));
    EXPECT_THAT(run.resume(5), HasSubstr("bytes, wanted"));
  }
  {
    Saved run(3);
    unlink(run.dataFile(3).c_str());
    EXPECT_THAT(run.resume(5), HasSubstr("is missing"));
  }
  {
    Saved run(3);
    EXPECT_THAT(
        run.resume(5, AH_SGD),
        HasSubstr("was made with optimizer adamw, the program has sgd"));
  }
}

TEST(Checkpoint, FreshRunsDoNotMixWithOldOnes) {
  Saved run(3);
  LinearModel model(2, 2, AH_ADAMW);
  EXPECT_THAT(trainAlone(run.folder, run.options, model),
              HasSubstr("is a checkpoint of an earlier run"));
}

TEST(Checkpoint, OneRunAtATimeSavesIntoAFolder) {
  Saved run(3);
  std::string warning;
  auto other = std::make_unique<FolderLock>(run.options.checkpoints, warning);
  EXPECT_EQ(warning, "");
  EXPECT_THAT(run.resume(5), HasSubstr("another run (process " +
                                       std::to_string(getpid()) + " on host "));
  EXPECT_THAT(run.resume(5), HasSubstr("saves its checkpoints in '" +
                                       run.options.checkpoints + "'"));
  EXPECT_EQ(findCheckpoints(run.options.checkpoints).size(), 1u);
  // A reader needs none.
  CheckpointReader(run.step(3)).verify();
  other.reset();
  EXPECT_EQ(run.resume(5), "no error");
}

TEST(Checkpoint, LocksEndWithTheirProcess) {
  TemporaryFolder folder;
  std::string path = folder / "checkpoints", warning;
  mkdir(path.c_str(), 0777);
  pid_t child = fork();
  if (child == 0) {
    new FolderLock(path, warning); // never released
    _exit(0);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  FolderLock again(path, warning);
}

namespace {
/// A checkpoint of a 2 x 2 parameter in two rows, trained by AdamW.
struct Edited {
  TemporaryFolder folder;
  CheckpointManifest manifest;

  Edited() {
    manifest.step = manifest.updates = 3;
    manifest.globalBatch = 4;
    manifest.optimizer = AH_ADAMW;
    ah_optimizer_defaults(AH_ADAMW, &manifest.settings);
    manifest.files = {{"a", 0}, {"b", 0}};
    for (int kind = 0; kind < 3; ++kind)
      for (int64_t row : {0, 1})
        manifest.slices.push_back({"w",
                                   SliceKind(kind),
                                   AH_F32,
                                   {{2, 2}, {row, 0}, {1, 2}},
                                   row ? "b" : "a",
                                   0});
  }
  std::string open(const char *name = "step-00000003") {
    std::string path = folder / name;
    mkdir(path.c_str(), 0777);
    for (const char *file : {"/a", "/b"})
      writeFile(path + file, "");
    writeFile(path + "/manifest.json", manifest.text());
    try {
      CheckpointReader reader(path);
    } catch (const Error &error) {
      return error.what();
    }
    return "good";
  }
};
} // namespace

TEST(Checkpoint, SlicesAreTheWholeOfEveryTensor) {
  EXPECT_EQ(Edited().open(), "good");
  {
    Edited edited;
    edited.manifest.slices.clear();
    EXPECT_THAT(edited.open(), HasSubstr("it has no slices"));
  }
  {
    Edited edited;
    edited.manifest.slices.erase(edited.manifest.slices.begin() + 3);
    EXPECT_THAT(edited.open(), HasSubstr("exp_avg of 'w' is not whole: [1:2, "
                                         "0:2] of [2, 2] is in no slice"));
  }
  {
    Edited edited;
    edited.manifest.slices[0].box.size = {1, 1};
    EXPECT_THAT(edited.open(),
                HasSubstr("[0:1, 1:2] of [2, 2] is in no slice"));
  }
  {
    Edited edited;
    edited.manifest.slices[0].box.size = {2, 1};
    edited.manifest.slices.push_back(edited.manifest.slices[0]);
    edited.manifest.slices.back().box = {{2, 2}, {0, 1}, {1, 1}};
    EXPECT_THAT(edited.open(),
                HasSubstr("'parameter/w/0,0' in 'a' and 'parameter/w/1,0' in "
                          "'b' overlap in [1:2, 0:1] of [2, 2]"));
  }
  {
    Edited edited;
    edited.manifest.slices.push_back(edited.manifest.slices[1]);
    EXPECT_THAT(edited.open(),
                HasSubstr("'parameter/w/1,0' in 'b' is listed twice"));
  }
  {
    Edited edited;
    edited.manifest.slices.resize(4);
    EXPECT_THAT(edited.open(), HasSubstr("it has no exp_avg_sq of 'w'"));
    // Frozen, and held by two devices.
    edited.manifest.slices.resize(2);
    edited.manifest.slices.push_back(edited.manifest.slices[1]);
    edited.manifest.slices.back().file = "a";
    EXPECT_EQ(edited.open(), "good");
  }
  {
    Edited edited;
    edited.manifest.files.pop_back();
    EXPECT_THAT(edited.open(), HasSubstr("which is not one of its files"));
  }
  {
    Edited edited;
    edited.manifest.slices[5].box = {{3, 2}, {1, 0}, {2, 2}};
    EXPECT_THAT(edited.open(), HasSubstr("is of float32 [3, 2]"));
  }
}

TEST(Checkpoint, ManifestsAgreeWithTheirFolder) {
  Edited edited;
  EXPECT_THAT(edited.open("step-00000004"),
              HasSubstr("its manifest is of step 3, its folder's name of step "
                        "4"));
  EXPECT_EQ(edited.open("a-copy"), "good");
}

TEST(Checkpoint, SettingsAreThoseOfARun) {
  auto edited = [](auto &&edit) {
    Edited checkpoint;
    edit(checkpoint.manifest);
    return checkpoint.open();
  };
  using Manifest = CheckpointManifest;
  EXPECT_THAT(edited([](Manifest &m) { m.settings.learning_rate = -1; }),
              HasSubstr("settings: 'lr' is negative"));
  EXPECT_THAT(edited([](Manifest &m) { m.settings.beta1 = 2; }),
              HasSubstr("settings: 'beta1' is not from 0 to below 1"));
  EXPECT_THAT(edited([](Manifest &m) { m.globalBatch = 0; }),
              HasSubstr("'global_batch' is no number of samples"));
  EXPECT_THAT(edited([](Manifest &m) { m.updates = 10; }),
              HasSubstr("more 'updates' than 'step' steps"));
}

TEST(Checkpoint, OlderOnesGo) {
  TemporaryFolder folder;
  NodeOptions options = trainingOptions(folder);
  options.checkpoints = folder / "checkpoints";
  options.steps = 5;
  options.checkpointEvery = 1;
  options.checkpointKeep = 2;
  LinearModel model(2, 2, AH_SGD);
  EXPECT_EQ(trainAlone(folder, options, model), "no error");
  auto found = findCheckpoints(options.checkpoints);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 5u);
  EXPECT_EQ(found[1].step, 4u);
}

TEST(Checkpoint, CopiedFoldersAreCheckpoints) {
  Saved run(3);
  std::string copy = run.folder / "elsewhere";
  std::string command =
      "cp -r '" + run.options.checkpoints + "' '" + copy + "'";
  ASSERT_EQ(system(command.c_str()), 0);
  run.options.checkpoints = copy;
  EXPECT_EQ(run.resume(5), "no error");
}
