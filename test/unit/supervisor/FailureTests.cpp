//===- FailureTests.cpp - deaths, stalls, and who is told -----------------===//

#include "TestJob.h"

#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace autohet::runtime::test;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;
using testing::Not;

/// The promise at default settings: the job ends within 15 s.
constexpr double promised_s = 15;

/// Starts two nodes of two, does `harm` at a time drawn from `seed`, and checks
/// that everything ends in time and non-zero. Returns the job for more.
static std::unique_ptr<TestJob> harmAtAnyTime(unsigned seed,
                                              void (*harm)(TestJob &)) {
  auto job = std::make_unique<TestJob>(std::vector<uint32_t>{2, 2});
  job->with("steps=100000").with("step-ms=5").start();
  // From the first moments of starting to well within the steps.
  std::mt19937 random(seed);
  usleep(random() % 1000000);
  harm(*job);
  double begin = now();
  auto statuses = job->wait(promised_s);
  EXPECT_THAT(statuses, Each(AllOf(Ne(0), Ne(-1))))
      << job->output(0) << job->output(1);
  EXPECT_LT(now() - begin, promised_s);
  // Whoever had a killed supervisor dies by PDEATHSIG, at once but not before
  // us.
  for (int i = 0; i < 100 && !job->remaining().empty(); ++i)
    usleep(10000);
  EXPECT_THAT(job->remaining(), IsEmpty());
  return job;
}

class Moments : public testing::TestWithParam<unsigned> {};

TEST_P(Moments, KillAWorker) {
  auto job = harmAtAnyTime(
      GetParam(), [](TestJob &job) { kill(job.workers(1).at(0), SIGKILL); });
  for (uint32_t node : {0, 1})
    EXPECT_THAT(job->output(node), AllOf(HasSubstr("rank 2 (n1/0), process"),
                                         HasSubstr("was killed by signal 9")));
}

TEST_P(Moments, KillNodeZerosSupervisor) {
  auto job = harmAtAnyTime(GetParam(), [](TestJob &job) {
    job.workers(0);
    job.workers(1);
    kill(job.supervisor(0), SIGKILL);
  });
  EXPECT_THAT(job->output(1), HasSubstr("the supervisor of node n0 is gone"));
}

TEST_P(Moments, KillAnotherSupervisor) {
  auto job = harmAtAnyTime(GetParam(), [](TestJob &job) {
    job.workers(1);
    kill(job.supervisor(1), SIGKILL);
  });
  EXPECT_THAT(job->output(0), HasSubstr("the supervisor of node n1 is gone"));
}

INSTANTIATE_TEST_SUITE_P(Failure, Moments, testing::Range(0u, 3u));

TEST(Failure, TheReasonOfAWorkerReachesAll) {
  TestJob job({2, 2});
  job.with("fail=3,4,error").start();
  EXPECT_THAT(job.wait(promised_s), Each(1));
  for (uint32_t node : {0, 1})
    EXPECT_THAT(job.output(node),
                AllOf(HasSubstr("rank 3 (n1/1): tokens.bin: token 300 is out "
                                "of range"),
                      Not(HasSubstr("rank 2"))));
}

TEST(Failure, AnExitWithoutAWordIsADeath) {
  TestJob job({2});
  job.with("fail=1,4,exit").start();
  EXPECT_THAT(job.wait(promised_s), Each(1));
  EXPECT_THAT(job.output(0), HasSubstr("exited with status 3"));
}

TEST(Failure, RanksThatDisagreeOnASizeEndSoon) {
  TestJob job({2, 2});
  job.with("fail=2,3,size").start();
  double begin = now();
  EXPECT_THAT(job.wait(10), Each(1));
  EXPECT_LT(now() - begin, 10);
  EXPECT_THAT(job.output(0), HasSubstr("'recv ring' from rank 2"));
}

/// A hanging rank is a stall: the message names both sides and the command. Who
/// waits for whom in the chain behind it notices first is chance.
TEST(Failure, AStallNamesRankPeerAndCommand) {
  TestJob job({2, 2});
  job.with("fail=2,3,hang").with("stall-timeout=2").start();
  EXPECT_THAT(job.wait(promised_s), Each(1));
  EXPECT_THAT(job.output(0) + job.output(1),
              AllOf(testing::ContainsRegex(
                        "'[a-z ]+' from rank [0-3] .n[01]/[01]., step 3"),
                    HasSubstr("--stall-timeout"),
                    HasSubstr("rank 2 (n1/0): running")));
}

/// Longer than the death timeout, shorter than the stall timeout.
TEST(Failure, AStoppedWorkerIsWaitedFor) {
  TestJob job({2, 2});
  job.with("steps=200").with("step-ms=10").with("death-timeout=3").start();
  job.sleepUntilRunning();
  pid_t worker = job.workers(1).at(1);
  kill(worker, SIGSTOP);
  usleep(5000000);
  EXPECT_EQ(job.output(0) + job.output(1), "");
  kill(worker, SIGCONT);
  EXPECT_THAT(job.wait(20), Each(0)) << job.output(0) << job.output(1);
}

/// A stopped supervisor is silent, and that is a death.
TEST(Failure, ASilentSupervisorIsDead) {
  TestJob job({2, 2});
  job.with("steps=100000").with("death-timeout=2").start();
  job.sleepUntilRunning();
  kill(job.supervisor(1), SIGSTOP);
  double begin = now();
  for (auto statuses = job.wait(5); statuses[0] < 0 && now() < begin + 12;)
    statuses = job.wait(1);
  EXPECT_LT(now() - begin, 10);
  EXPECT_THAT(job.output(0),
              HasSubstr("the supervisor of node n1 has sent no heartbeat"));
  // Its workers noticed by themselves.
  for (int i = 0; i < 50 && job.remaining().size() > 1; ++i)
    usleep(100000);
  EXPECT_EQ(job.remaining().size(), 1u);
}

TEST(Failure, SigtermAfterADeathIsNoSuccess) {
  TestJob job({2, 2});
  job.with("steps=100000").with("step-ms=5").start();
  job.sleepUntilRunning();
  kill(job.workers(1).at(0), SIGKILL);
  usleep(20000);
  kill(job.supervisor(0), SIGTERM);
  kill(job.supervisor(1), SIGTERM);
  EXPECT_THAT(job.wait(promised_s), Each(1));
}
