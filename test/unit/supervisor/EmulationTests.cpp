//===- EmulationTests.cpp - unequal devices made of one machine -----------===//

#include "TestJob.h"
#include "supervisor/Calibration.h"
#include "supervisor/Emulation.h"

#include <chrono>
#include <cstdlib>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <thread>
#include <unistd.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

static Manifest manifestOf(const std::vector<double> &speeds) {
  Manifest manifest;
  manifest.nodes.resize(1);
  for (double speed : speeds) {
    manifest.ranks.emplace_back();
    manifest.ranks.back().relative_speed = speed;
    manifest.ranks.back().device = manifest.ranks.size() - 1;
  }
  return manifest;
}

TEST(Emulation, DividesNineTenthsOfTheCores) {
  Shares shares = divideCores(manifestOf({4, 2, 1, 1}), 2);
  EXPECT_DOUBLE_EQ(shares.coresPerSpeed, 0.225);
  EXPECT_THAT(shares.cores, ElementsAre(0.9, 0.45, 0.225, 0.225));
  // One thread cannot use more than one core, and all keep their proportion.
  EXPECT_THAT(divideCores(manifestOf({4, 2}), 64).cores,
              ElementsAre(0.9, 0.45));
}

TEST(Emulation, ScaleIsOfTheWholeCluster) {
  Manifest manifest = manifestOf({1, 1}); // a plan without the fast device
  manifest.clusterDevices = {{1, 4}, {1, 2}, {1, 1}, {1, 1}};
  EXPECT_THAT(divideCores(manifest, 2).cores, ElementsAre(0.225, 0.225));
}

TEST(Emulation, PacksSharesOntoCores) {
  EXPECT_THAT(packCores(divideCores(manifestOf({1, 4, 2, 1}), 2), 2),
              ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(packCores(divideCores(manifestOf({3, 3, 1, 1, 1, 1}), 2), 2),
              ElementsAre(0, 1, 0, 0, 1, 1));
  // 0.6 each: two cores hold two of three.
  EXPECT_THAT(packCores(divideCores(manifestOf({3, 3, 3}), 2), 2), IsEmpty());
}

TEST(Emulation, PartsAreOfTheLargestShare) {
  EXPECT_THAT(partsOfLargest(divideCores(manifestOf({4, 2, 1, 1}), 2)),
              ElementsAre(1, 0.5, 0.25, 0.25));
}

TEST(Emulation, JudgesSpeeds) {
  Manifest manifest = manifestOf({4, 2, 1, 1});
  EXPECT_LT(judgeSpeeds(manifest, {400, 200, 100, 100}).worstDeviation, 1e-9);
  Calibration bad = judgeSpeeds(manifest, {300, 200, 100, 100});
  EXPECT_GT(bad.worstDeviation, 0.1);
  EXPECT_THAT(bad.text, AllOf(HasSubstr("warning"), HasSubstr("asked 4 : 2")));
}

/// Threads of this process that run where nobody else does.
static unsigned countIdleThreads() {
  unsigned count = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (dirent *entry = tasks ? readdir(tasks) : nullptr)
    if (int task = atoi(entry->d_name))
      count += sched_getscheduler(task) == SCHED_IDLE;
  if (tasks)
    closedir(tasks);
  return count;
}

// So that a worker is as fast alone as among busy ones.
TEST(Emulation, KeepsCoresBusyWhileItLives) {
  using Clock = std::chrono::steady_clock;
  {
    auto emulation = makeNiceness(manifestOf({2, 1}));
    auto end = Clock::now() + std::chrono::seconds(20);
    while (countIdleThreads() < usableCores() && Clock::now() < end)
      std::this_thread::yield();
    EXPECT_EQ(countIdleThreads(), usableCores());
  }
  EXPECT_EQ(countIdleThreads(), 0u);
}

class Ways : public testing::TestWithParam<const char *> {};

/// Both ways run a job; how exact they are depends on what else runs here.
TEST_P(Ways, RunsAJob) {
  if (GetParam() == std::string("weight") && geteuid() != 0)
    GTEST_SKIP() << "control groups need root";
  TestJob job({1, 2});
  job.with("emulate=1").with("steps=20");
  for (uint32_t node : {0, 1})
    job.set(node, "AUTOHET_EMULATE_BY", GetParam());
  job.start();
  auto statuses = job.wait(60);
  if (job.output(0).find("no CPU controller is mounted") != std::string::npos)
    GTEST_SKIP() << "no control groups here";
  EXPECT_THAT(statuses, Each(0)) << job.output(0) << job.output(1);
  EXPECT_THAT(job.output(0),
              AllOf(HasSubstr("emulating: 0."), HasSubstr("emulated speeds ")));
  // Nothing is left behind.
  std::string command = "find /sys/fs/cgroup -maxdepth 2 -name 'autohet-" +
                        std::to_string(job.supervisor(0)) + "-*' | grep -q .";
  EXPECT_NE(system(command.c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(Emulation, Ways, testing::Values("weight", "nice"),
                         [](const auto &info) {
                           return info.index ? "Nice" : "Weight";
                         });
