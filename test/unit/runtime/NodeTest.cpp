//===- NodeTest.cpp - a node's executable, from its command line ------------===//

#include "ReplicaModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::HasSubstr;

namespace {
struct Finished {
  int status;
  std::string output;
};
} // namespace

static Finished runNode(const TemporaryFolder &folder,
                        const std::string &options) {
  // It looks for weights.index beside itself.
  std::string node = folder / "DemoNode", line;
  if (access(node.c_str(), X_OK) != 0) {
    line = "cp '" DEMO_NODE "' '" + node + "'";
    EXPECT_EQ(system(line.c_str()), 0);
  }
  line = "timeout 60 '" + node + "' " + options + " > '" + folder / "log" +
         "' 2>&1";
  int status = system(line.c_str());
  MappedFile log(folder / "log");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          {log.data(), log.size()}};
}

static std::string dataOptions(const TemporaryFolder &folder) {
  return "--inputs " + folder / "in" + " --labels " + folder / "labels" +
         " --weights " + folder / "w" + " --lr 0.01 --check-copies ";
}

TEST(Node, HelpVersionAndDescription) {
  TemporaryFolder folder;
  Finished help = runNode(folder, "--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("Usage: DemoNode [options]"));
  EXPECT_THAT(help.output, HasSubstr("--on-nonfinite WHAT"));
  EXPECT_EQ(runNode(folder, "--version").status, 0);
  EXPECT_THAT(runNode(folder, "--describe").output,
              HasSubstr("device n0/0: rank 0 of 2, replica 0, stage 0"));
}

TEST(Node, WrongOptionsAreNamedBeforeAnythingStarts) {
  TemporaryFolder folder;
  for (auto [options, text] :
       {std::pair("--stepz 3", "unknown option '--stepz'"),
        {"--steps -3", "option --steps: found '-3', wanted a natural number"},
        {"--steps", "option --steps needs a value: N"},
        {"--data ''", "option --data: found nothing, wanted a value"},
        {"--resume=", "option --resume: found nothing behind '='"},
        {"--betas 0.9",
         "option --betas: found '0.9', wanted two numbers, B1,B2"},
        {"--schedule step",
         "option --schedule: found 'step', wanted one of constant, linear, "
         "cosine"},
        {"--alone", "option --alone: this job has 2 devices, not one"},
        {"3", "unexpected argument '3'"}}) {
    Finished finished = runNode(folder, options);
    EXPECT_EQ(finished.status, 1) << options;
    EXPECT_THAT(finished.output, HasSubstr(std::string("error: ") + text))
        << options;
  }
}

// The table of docs/cli/autohet-run.md, as far as it needs no program.
TEST(Node, OptionsWithoutEffectAreRefused) {
  TemporaryFolder folder;
  for (auto [options, text] :
       {std::pair("--data-dtype uint8", "option --data-dtype needs --data or "
                                        "--eval-data"),
        {"--data-order sequential", "--data-order needs --data"},
        {"--mask-probability 0.1", "--mask-probability needs"},
        {"--total-steps 9", "needs --schedule or --resume"},
        {"--eval-batches 3", "--eval-batches needs --eval-data"},
        {"--checkpoint-keep 3", "needs --checkpoint"},
        {"--resume", "option --resume needs --checkpoint"},
        {"--data random --data-order sequential", "drawn tokens have no order"},
        {"--data random --data-dtype uint8", "there is no file"},
        {"--data a --labels b", "give --data-order=sequential"},
        {"--schedule constant --total-steps 9", "it never ends"},
        {"--steps 0", "option --steps: found '0', wanted 1 or more"},
        {"--alone --emulate x",
         "options --alone and --emulate contradict each other"},
        {"--describe --preflight", "contradict each other"}}) {
    Finished finished = runNode(folder, options);
    EXPECT_EQ(finished.status, 1) << options;
    EXPECT_THAT(finished.output, HasSubstr(text)) << options;
  }
}

TEST(Node, OptionsThatTheProgramCannotHeedAreRefused) {
  TemporaryFolder folder;
  trainingOptions(folder);
  std::string data = dataOptions(folder);
  for (auto [options, text] :
       {std::pair("--data x --data-dtype uint8 --data-order sequential "
                  "--mask-token 3",
                  "option --mask-token: the program was not compiled with "
                  "--objective=masked"),
        {"--save-loss same --metrics ./same",
         "options --save-loss and --metrics: both are './same'"}}) {
    Finished finished = runNode(folder, data + options);
    EXPECT_EQ(finished.status, 1) << options;
    EXPECT_THAT(finished.output, HasSubstr(text)) << options;
  }
  Finished overwrites =
      runNode(folder, data + "--save-loss " + folder / "labels");
  EXPECT_THAT(overwrites.output,
              HasSubstr("options --labels and --save-loss: both are"));
  EXPECT_EQ(readFloats(folder / "labels", "labels")[0], 2);
}

TEST(Node, PipesThatNobodyReadsAreNotWaitedFor) {
  TemporaryFolder folder;
  trainingOptions(folder);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const char *option : {"--save-loss ", "--metrics "}) {
    Finished finished =
        runNode(folder, dataOptions(folder) + option + folder / "pipe");
    EXPECT_EQ(finished.status, 1) << option;
    EXPECT_THAT(finished.output, HasSubstr("nobody reads from it")) << option;
  }
}

// Processes, supervisor and UCX, against one device in this process.
TEST(Node, TwoWorkersEqualOneDevice) {
  TemporaryFolder together, apart;
  NodeOptions options = trainingOptions(together);
  options.steps = 5;
  LinearModel model(1, 4, AH_ADAMW);
  EXPECT_EQ(trainAlone(together, options, model), "no error");

  trainingOptions(apart);
  Finished finished = runNode(
      apart, dataOptions(apart) + "--steps 5 --save-weights " +
                 apart / "after" + " --save-gradients " + apart / "grad" +
                 " --save-outputs " + apart / "out" + " --metrics " +
                 apart / "metrics" + " --trace " + apart / "trace.json");
  EXPECT_EQ(finished.status, 0) << finished.output;
  for (auto [file, name] :
       {std::pair("after", "w"), {"grad", "w"}, {"out", "y"}})
    EXPECT_THAT(readFloats(apart / file, name),
                testing::Pointwise(testing::FloatEq(),
                                   readFloats(together / file, name)));
  for (auto [file, command] :
       {std::pair("trace.rank0.json", "\"recv gradient\""),
        {"trace.rank1.json", "\"send gradient\""}}) {
    MappedFile trace(apart / file);
    EXPECT_THAT(std::string(trace.data(), trace.size()), HasSubstr(command));
  }
}

TEST(Node, SavesAndResumes) {
  TemporaryFolder folder, other;
  trainingOptions(folder);
  trainingOptions(other);
  std::string checkpoint = " --checkpoint " + folder / "checkpoints";
  Finished first =
      runNode(folder, dataOptions(folder) + "--steps 2" + checkpoint);
  EXPECT_EQ(first.status, 0) << first.output;
  Finished second =
      runNode(folder, dataOptions(folder) + "--steps 5 --resume" + checkpoint +
                          " --save-weights " + folder / "after");
  EXPECT_EQ(second.status, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("2 steps done"));
  runNode(other,
          dataOptions(other) + "--steps 5 --save-weights " + other / "after");
  EXPECT_EQ(readFloats(folder / "after", "w"),
            readFloats(other / "after", "w"));
}

TEST(Node, FailuresOfAWorkerReachTheExitStatus) {
  TemporaryFolder folder;
  trainingOptions(folder);
  writeFloats(folder / "labels", "labels", {4, 1}, {2, 4, NAN, 9});
  Finished finished = runNode(folder, dataOptions(folder) + "--steps 5");
  EXPECT_EQ(finished.status, 1) << finished.output;
  EXPECT_THAT(finished.output,
              HasSubstr("NaN in 't', element 0 of [1, 1], made by FEED "
                        "'feed t', microbatch 2"));
}

// Samples and labels of another file would be taken for each other's.
TEST(Node, FilesBelongTogetherSampleBySample) {
  TemporaryFolder folder;
  NodeOptions options = trainingOptions(folder);
  writeFloats(folder / "in", "x", {8, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  LinearModel model(2, 2, AH_SGD);
  EXPECT_THAT(
      trainAlone(folder, options, model),
      HasSubstr("has 4 samples, the longest of the inputs' files has 8: "
                "they belong together, sample by sample"));
}
