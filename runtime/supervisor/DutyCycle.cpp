//===- DutyCycle.cpp - speeds by stopping and continuing ------------------===//
//
// Without the right to make control groups: each worker is pinned to a core and
// runs in its own slice of a period, stopped in the rest. Slices on one core
// lie side by side, and periods begin where the machine's monotonic clock is a
// multiple of one, so supervisors keep out of each other's way unasked.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Emulation.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <sys/prctl.h>
#include <thread>
#include <time.h>

using namespace autohet::runtime;

/// Longer than a quota's: every period costs a worker two signals.
static constexpr double period_s = 0.010;

static double monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

static void sleepUntil(double time_s) {
  timespec until = {static_cast<time_t>(time_s),
                    static_cast<long>((time_s - std::floor(time_s)) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr))
    ;
}

namespace {

class SliceLimit : public SpeedLimit {
public:
  explicit SliceLimit(Slot slot) : slot(slot) {}

  ~SliceLimit() override {
    stopping = true;
    if (thread.joinable())
      thread.join();
  }

  void enter() const override { pinToCore(slot.core); }

  void started(int pid) override {
    thread = std::thread([this, pid] { run(pid); });
  }

private:
  Slot slot;
  std::thread thread;
  std::atomic<bool> stopping{false};

  void run(int pid) {
    prctl(PR_SET_TIMERSLACK, 1000);
    // Signals of the supervisor are for its main thread.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    double begin = std::floor(monotonic() / period_s) * period_s;
    for (; !stopping; begin += period_s) {
      sleepUntil(begin + slot.begin * period_s);
      if (kill(pid, SIGCONT) != 0)
        return;
      sleepUntil(begin + slot.end * period_s);
      if (kill(pid, SIGSTOP) != 0)
        return;
      // After a long absence, not all missed periods at once.
      double now = monotonic();
      if (now > begin + 2 * period_s)
        begin = std::floor(now / period_s) * period_s;
    }
    kill(pid, SIGCONT);
  }
};

class DutyCycles : public Emulation {
public:
  explicit DutyCycles(const Manifest &manifest)
      : shares(divideCores(manifest, usableCores())),
        slots(packSlots(shares, usableCores())) {}

  std::unique_ptr<SpeedLimit> limit(uint32_t rank) override {
    return std::make_unique<SliceLimit>(slots[rank]);
  }

  std::string describe() const override {
    char text[160];
    snprintf(text, sizeof(text),
             "%.3f cores a unit of speed, by duty cycles of %.0f ms on pinned "
             "cores",
             shares.coresPerSpeed, period_s * 1e3);
    return text;
  }

private:
  Shares shares;
  std::vector<Slot> slots;
};

} // namespace

std::unique_ptr<Emulation>
autohet::runtime::makeDutyCycles(const Manifest &manifest) {
  return std::make_unique<DutyCycles>(manifest);
}
