//===- Pace.cpp - an emulated device's speed --------------------------------===//

#include "core/Pace.h"

#include <algorithm>
#include <sys/prctl.h>
#include <time.h>

using namespace autohet::runtime;

/// A device that could not have its core for longer than this is late for good:
/// it does not run fast for a long time because it stood still for one.
static constexpr int64_t mostLateness_ns = 20'000'000;
/// Below this a sleep would take longer than it should: it is owed.
static constexpr int64_t leastSleep_ns = 30'000;

static int64_t nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

static void sleepUntil(int64_t time_ns) {
  // The default is 50 us late.
  thread_local bool isPunctual = prctl(PR_SET_TIMERSLACK, 1000) == 0;
  (void)isPunctual;
  timespec until = {time_t(time_ns / 1'000'000'000),
                    long(time_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr))
    ;
}

void Pace::begin(int64_t now) {
  std::lock_guard<std::mutex> lock(mutex);
  ++begun;
  if (working++ == 0)
    done = std::max(done, now - late);
}

int64_t Pace::count(int64_t computed) {
  std::lock_guard<std::mutex> lock(mutex);
  done += static_cast<int64_t>(static_cast<double>(computed) / share);
  return done;
}

void Pace::end(int64_t now) {
  std::lock_guard<std::mutex> lock(mutex);
  --working;
  late = std::clamp<int64_t>(now - done, 0, mostLateness_ns);
}

void Pace::endWait(uint64_t begunBefore) {
  std::lock_guard<std::mutex> lock(mutex);
  if (working == 0 && begun == begunBefore)
    late = 0;
}

void Pace::Work::begin() {
  pace.begin(nanoseconds(CLOCK_MONOTONIC));
  threadBegin_ns = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

void Pace::Work::end() {
  int64_t until =
      pace.count(nanoseconds(CLOCK_THREAD_CPUTIME_ID) - threadBegin_ns);
  if (until - nanoseconds(CLOCK_MONOTONIC) >= leastSleep_ns)
    sleepUntil(until);
  pace.end(nanoseconds(CLOCK_MONOTONIC));
}
