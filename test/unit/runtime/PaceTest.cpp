//===- PaceTest.cpp - an emulated device's speed ---------------------------===//

#include "core/Pace.h"

#include <chrono>
#include <gtest/gtest.h>
#include <time.h>

using namespace autohet::runtime;

/// Works for so long from `now` on, and ends `delay` later than the device
/// would: until when it is held back.
static int64_t work(Pace &pace, int64_t now, int64_t computed,
                    int64_t delay = 0) {
  pace.begin(now);
  int64_t until = pace.count(computed);
  pace.end(until + delay);
  return until;
}

TEST(Pace, ShortWorkTakesAsMuchLongerAsLongWork) {
  Pace pace(0.25);
  EXPECT_EQ(work(pace, 0, 100), 400);
  EXPECT_EQ(work(pace, 400, 1'000'000), 4'000'400);
}

TEST(Pace, AnIdleDeviceSavesNothingUp) {
  Pace pace(0.25);
  EXPECT_EQ(work(pace, 0, 100), 400);
  {
    Pace::Wait wait(pace);
  }
  EXPECT_EQ(work(pace, 1'000'000'000, 100), 1'000'000'400);
  // However it was late before.
  EXPECT_EQ(work(pace, 2'000'000'000, 100, 5000), 2'000'000'400);
  {
    Pace::Wait wait(pace);
  }
  EXPECT_EQ(work(pace, 3'000'000'000, 100), 3'000'000'400);
}

// Another worker had the core: not the device's time.
TEST(Pace, ALateDeviceCatchesUp) {
  Pace pace(0.25);
  EXPECT_EQ(work(pace, 0, 100, 250), 400);
  EXPECT_EQ(work(pace, 650, 100, 1000), 800);
  EXPECT_EQ(work(pace, 1800, 300), 2000);
  // What took no wait, as between two commands, is no reason to forget it.
  EXPECT_EQ(work(pace, 2010, 100, 500), 2410);
  EXPECT_EQ(work(pace, 2920, 100), 2820);
}

// A machine that slept for a minute makes nobody fast for the next.
TEST(Pace, ALongDelayIsLateForGood) {
  Pace pace(0.5);
  int64_t minute = 60'000'000'000;
  work(pace, 0, 100, minute);
  int64_t until = work(pace, 200 + minute, 100);
  EXPECT_LT(until, 200 + minute);
  EXPECT_GT(until, minute - 100'000'000);
}

TEST(Pace, ThreadsShareTheSpeed) {
  Pace pace(0.25);
  pace.begin(0);
  pace.begin(50);
  EXPECT_EQ(pace.count(100), 400);
  EXPECT_EQ(pace.count(100), 800);
  pace.end(400);
  // What waits beside a thread that works has not been idle.
  {
    Pace::Wait wait(pace);
  }
  pace.end(800);
  EXPECT_EQ(work(pace, 800, 100), 1200);
}

static double threadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Nothing that runs beside makes it shorter than that.
TEST(Pace, HoldsBackWhoeverComputes) {
  using Clock = std::chrono::steady_clock;
  Pace pace(0.25);
  auto begin = Clock::now();
  double computed_s = 0;
  for (int round = 0; round < 20; ++round) {
    Pace::Work work(pace);
    double begin_s = threadSeconds();
    while (threadSeconds() - begin_s < 1e-3)
      ;
    computed_s += threadSeconds() - begin_s;
  }
  double took_s = std::chrono::duration<double>(Clock::now() - begin).count();
  EXPECT_GE(took_s, computed_s / 0.25 - 1e-4);

  Pace whole(0);
  Pace::Work work(whole); // nothing to hold back: no clock is read
}
