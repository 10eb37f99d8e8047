//===- CoreTicks.cpp - makes the kernel look at quotas more often ---------===//

#include "supervisor/CoreTicks.h"

#include "supervisor/Emulation.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

using namespace autohet::runtime;

/// Costs a core about 2 %, out of the tenth that quotas leave free.
static constexpr long period_ns = 500'000;

void CoreTicks::start(uint32_t core) {
  std::thread &thread = threads[core];
  if (!thread.joinable())
    thread = std::thread([this, core] { run(core); });
}

void CoreTicks::run(uint32_t core) {
  pinToCore(core);
  prctl(PR_SET_TIMERSLACK, 1000);
  // Before all workers, where we may: a tick that waits its turn is late.
  sched_param first = {};
  first.sched_priority = 1;
  sched_setscheduler(0, SCHED_FIFO, &first);
  timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  while (!stopping.load(std::memory_order_relaxed)) {
    next.tv_nsec += period_ns;
    if (next.tv_nsec >= 1'000'000'000) {
      next.tv_nsec -= 1'000'000'000;
      ++next.tv_sec;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
  }
}

CoreTicks::~CoreTicks() {
  stopping = true;
  for (auto &[core, thread] : threads)
    thread.join();
}
