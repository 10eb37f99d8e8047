//===- LaunchTests.cpp - every launcher, without having it ----------------===//

#include "supervisor/Launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace autohet::runtime;
using testing::AllOf;
using testing::HasSubstr;

namespace {

struct LaunchTest : testing::Test {
  std::map<std::string, std::string> variables;
  ah_supervisor_options options = {};
  Manifest manifest;
  std::string error;
  std::vector<std::string> addresses = {"", ""};

  LaunchTest() { options.launched_node = -1; }

  std::optional<Launch> decide(uint32_t node) {
    manifest.nodes.clear();
    for (const std::string &address : addresses) {
      manifest.nodes.emplace_back();
      manifest.nodes.back().name =
          "n" + std::to_string(manifest.nodes.size() - 1);
      manifest.nodes.back().address = address;
    }
    return decideLaunch(
        manifest, node, options,
        [&](const char *name) {
          auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        },
        /*jobHash=*/12345, error);
  }
};

} // namespace

TEST_F(LaunchTest, NothingIsNeeded) {
  auto launch = decide(1);
  ASSERT_TRUE(launch) << error;
  EXPECT_EQ(launch->masterAddress, "127.0.0.1");
  EXPECT_EQ(launch->masterPort, 15000 + 12345);
  EXPECT_EQ(launch->launcher, "");
}

TEST_F(LaunchTest, OneNodeHasNoMaster) {
  addresses = {"10.0.0.1"};
  variables = {{"MASTER_PORT", "1234"}};
  auto launch = decide(0);
  ASSERT_TRUE(launch) << error;
  EXPECT_EQ(launch->masterAddress, "");
}

TEST_F(LaunchTest, MpiBeforeSlurmBeforeRank) {
  variables = {{"OMPI_COMM_WORLD_RANK", "1"},
               {"OMPI_COMM_WORLD_SIZE", "2"},
               {"SLURM_PROCID", "0"},
               {"SLURM_NTASKS", "1"}};
  auto launch = decide(1);
  ASSERT_TRUE(launch) << error; // mpirun within a Slurm allocation
  EXPECT_EQ(launch->launcher, "Open MPI");
  variables.erase("OMPI_COMM_WORLD_RANK");
  variables.erase("OMPI_COMM_WORLD_SIZE");
  EXPECT_FALSE(decide(1));
  EXPECT_THAT(error, AllOf(HasSubstr("SLURM_NTASKS=1"),
                           HasSubstr("the plan has 2 nodes")));
  variables = {{"SLURM_PROCID", "1"},
               {"SLURM_NTASKS", "2"},
               {"RANK", "0"},
               {"WORLD_SIZE", "8"}};
  EXPECT_TRUE(decide(1)) << error; // no conflict: only MPI against RANK is one
  variables = {{"RANK", "0"}, {"WORLD_SIZE", "8"}};
  EXPECT_FALSE(decide(0));
  EXPECT_THAT(error, HasSubstr("WORLD_SIZE=8"));
  variables = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_TRUE(decide(1)) << error;
  variables = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  EXPECT_TRUE(decide(1)) << error;
}

/// A batch script's own shell is not a task of a step.
TEST_F(LaunchTest, SlurmsBatchShellIsNoLauncher) {
  variables = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}};
  EXPECT_TRUE(decide(0)) << error;
  variables["SLURM_STEP_ID"] = "0";
  EXPECT_FALSE(decide(0));
}

TEST_F(LaunchTest, MpiAgainstRankShowsBoth) {
  variables = {{"OMPI_COMM_WORLD_RANK", "0"},
               {"OMPI_COMM_WORLD_SIZE", "4"},
               {"WORLD_SIZE", "2"}};
  EXPECT_FALSE(decide(0));
  EXPECT_THAT(error, AllOf(HasSubstr("OMPI_COMM_WORLD_SIZE=4"),
                           HasSubstr("WORLD_SIZE=2")));
  // Our flags settle it.
  options.launched_node = 0;
  options.launched_nodes = 2;
  EXPECT_TRUE(decide(0)) << error;
}

TEST_F(LaunchTest, TheRankMustBeTheNodesIndex) {
  variables = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  EXPECT_FALSE(decide(1));
  EXPECT_THAT(error, AllOf(HasSubstr("RANK=0"),
                           HasSubstr("this executable is node 1 (n1)")));
}

TEST_F(LaunchTest, NumbersMustBeNumbers) {
  for (const char *name : {"RANK", "MASTER_PORT", "OMPI_COMM_WORLD_SIZE"}) {
    variables = {{name, "two"}};
    EXPECT_FALSE(decide(0)) << name;
    EXPECT_THAT(error, HasSubstr(std::string(name) + "=two"));
  }
  variables = {{"MASTER_PORT", "70000"}};
  EXPECT_FALSE(decide(0));
}

TEST_F(LaunchTest, WhereNodeZeroListens) {
  addresses = {"10.0.0.1", "10.0.0.2"};
  EXPECT_EQ(decide(0)->masterAddress, "10.0.0.1");
  variables = {{"MASTER_ADDR", "node0.cluster"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(decide(1)->masterAddress, "node0.cluster");
  EXPECT_EQ(decide(1)->masterPort, 29500);
  options.master_address = "10.9.9.9";
  options.master_port = 4000;
  EXPECT_EQ(decide(1)->masterAddress, "10.9.9.9");
  EXPECT_EQ(decide(1)->masterPort, 4000);
}

/// Gloo's trap: the host's own name means 127.0.1.1, and the others wait.
TEST_F(LaunchTest, LoopbackIsRefusedWhenOthersAreRemote) {
  addresses = {"10.0.0.1", "10.0.0.2"};
  variables = {{"MASTER_ADDR", "127.0.1.1"}};
  EXPECT_FALSE(decide(0));
  EXPECT_THAT(error, AllOf(HasSubstr("MASTER_ADDR=127.0.1.1"),
                           HasSubstr("n1 at 10.0.0.2")));
  addresses = {"", "10.0.0.2"};
  variables.clear();
  EXPECT_FALSE(decide(0));
  EXPECT_THAT(error, HasSubstr("gives node n0 no address"));
  options.master_address = "127.0.0.1"; // whoever says so knows
  EXPECT_TRUE(decide(0)) << error;
}
