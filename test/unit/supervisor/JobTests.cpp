//===- JobTests.cpp - jobs that end well, and ones that never begin -------===//

#include "TestJob.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace autohet::runtime::test;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Job, RunsToItsEnd) {
  for (const std::vector<uint32_t> &shape :
       {std::vector<uint32_t>{1}, {3}, {1, 1}, {2, 1, 3}}) {
    TestJob job(shape);
    job.start();
    EXPECT_THAT(job.wait(20), Each(0)) << job.output(0);
    EXPECT_THAT(job.remaining(), IsEmpty());
    EXPECT_EQ(job.output(0), "");
  }
}

/// A plan of one node opens no port, and needs no environment.
TEST(Job, OneNodeListensNowhere) {
  TestJob job({2});
  job.with("steps=1000").with("step-ms=10").start();
  job.sleepUntilRunning();
  std::vector<pid_t> processes = job.workers(0);
  processes.push_back(job.supervisor(0));
  for (pid_t pid : processes) {
    std::string command =
        "ss -Htlnp 2>/dev/null | grep -q 'pid=" + std::to_string(pid) + ",'";
    EXPECT_NE(system(command.c_str()), 0);
  }
}

TEST(Job, SigtermToOneSupervisorSavesEverywhere) {
  for (uint32_t whom : {0, 1}) {
    TestJob job({2, 2});
    job.with("steps=100000").with("step-ms=20").start();
    job.sleepUntilRunning();
    kill(job.supervisor(whom), SIGTERM);
    EXPECT_THAT(job.wait(10), Each(0)) << job.output(0) << job.output(1);
    EXPECT_NE(job.saved(0), "");
    for (uint32_t rank = 1; rank < 4; ++rank)
      EXPECT_EQ(job.saved(rank), job.saved(0));
    EXPECT_THAT(job.output(whom), HasSubstr("saving after this step"));
    EXPECT_THAT(job.remaining(), IsEmpty());
  }
}

/// Launchers signal whole groups: workers must not mind.
TEST(Job, SignalsToWorkersAreIgnored) {
  TestJob job({2});
  job.with("steps=100").with("step-ms=20").start();
  job.sleepUntilRunning();
  for (pid_t worker : job.workers(0))
    for (int signal : {SIGTERM, SIGINT, SIGHUP})
      kill(worker, signal);
  EXPECT_THAT(job.wait(20), ElementsAre(0)) << job.output(0);
  EXPECT_EQ(job.saved(0), "");
}

TEST(Job, SaveWithoutStopping) {
  TestJob job({2});
  job.with("steps=100").with("step-ms=20").start();
  job.sleepUntilRunning();
  kill(job.supervisor(0), SIGUSR1);
  EXPECT_THAT(job.wait(20), ElementsAre(0));
  EXPECT_NE(job.saved(0), "");
  EXPECT_EQ(job.saved(0), job.saved(1));
}

TEST(Job, SigtermBeforeTheBeginningIsAFailure) {
  TestJob job({1, 1});
  job.start(0); // node 1 never comes
  usleep(500000);
  kill(job.supervisor(0), SIGTERM);
  EXPECT_EQ(job.wait(5)[0], 1);
  EXPECT_THAT(job.output(0), HasSubstr("before the job began"));
}

/// Also when node 1 is started long before node 0.
TEST(Job, WaitsForNodeZero) {
  TestJob job({1, 1});
  job.start(1);
  usleep(1000000);
  job.start(0);
  EXPECT_THAT(job.wait(20), Each(0)) << job.output(1);
}

//===----------------------------------------------------------------------===//
// What does not belong together
//===----------------------------------------------------------------------===//

TEST(Job, DifferentOptionsAreNamed) {
  TestJob job({1, 1});
  job.with(0, "lr=0.1").with(1, "lr=0.01").start();
  EXPECT_THAT(job.wait(10), Each(1));
  for (uint32_t node : {0, 1})
    EXPECT_THAT(job.output(node),
                HasSubstr("the option --lr is 0.1 on node n0 and 0.01 on node "
                          "n1"));
  EXPECT_THAT(job.remaining(), IsEmpty());
}

TEST(Job, DifferentPlansAreNamed) {
  TestJob job({1, 1}), other({1, 1});
  job.start(0);
  job.manifest.replace(job.manifest.find("\"2\""), 3, "\"4\"");
  usleep(300000); // node 0 reads its file first
  job.start(1);
  EXPECT_THAT(job.wait(10), Each(1));
  EXPECT_THAT(job.output(1), HasSubstr("the plans differ: 2 on node n0, 4 on "
                                       "node n1"));
}

TEST(Job, TheSameNodeTwice) {
  TestJob job({1, 1, 1});
  job.start(0);
  job.start(1);
  usleep(300000);
  job.start(1);
  EXPECT_EQ(job.wait(10)[0], 1);
  EXPECT_THAT(job.output(0),
              HasSubstr("two processes say that they are node n1"));
}

TEST(Job, TheLaunchersCountMustBeThePlans) {
  TestJob job({1, 1});
  job.set(0, "OMPI_COMM_WORLD_RANK", "0").set(0, "OMPI_COMM_WORLD_SIZE", "4");
  job.start(0);
  EXPECT_EQ(job.wait(5)[0], 1);
  EXPECT_THAT(job.output(0),
              AllOf(HasSubstr("OMPI_COMM_WORLD_SIZE=4"),
                    HasSubstr("the plan has 2 nodes"), Not(HasSubstr("rank"))));
}

TEST(Job, ABusyPortIsNamed) {
  TestJob first({1, 1}), second({1, 1});
  first.with("master-port=29917").start(0);
  usleep(500000);
  second.with("master-port=29917").start(0);
  EXPECT_EQ(second.wait(5)[0], 1);
  EXPECT_THAT(second.output(0),
              AllOf(HasSubstr("cannot listen on 127.0.0.1:29917"),
                    HasSubstr("MASTER_PORT")));
}
