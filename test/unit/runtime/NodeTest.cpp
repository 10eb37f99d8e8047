//===- NodeTest.cpp - a node's executable, from its command line ------------===//

#include "ReplicaModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
