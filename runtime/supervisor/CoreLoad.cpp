//===- CoreLoad.cpp - emulated speeds that do not depend on who works -----===//

#include "supervisor/CoreLoad.h"

#include "supervisor/Emulation.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

using namespace autohet::runtime;

/// Values of 8 KiB: what workers mostly do is arithmetic in the nearest cache.
static constexpr int valueCount = 2048, roundsPerLook = 64;

CoreLoad::CoreLoad() {
  for (uint32_t core = 0; core < usableCores(); ++core)
    threads.emplace_back([this, core] { run(core); });
}

CoreLoad::~CoreLoad() {
  stopping = true;
  for (std::thread &thread : threads)
    thread.join();
}

void CoreLoad::run(uint32_t core) {
  // Signals of the supervisor are for its main thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pinToCore(core);
  // Without it this thread would take time that workers need.
  sched_param least = {};
  if (sched_setscheduler(0, SCHED_IDLE, &least) != 0)
    return;
  alignas(64) float values[valueCount] = {};
  while (!stopping.load(std::memory_order_relaxed))
    for (int round = 0; round < roundsPerLook; ++round) {
      for (float &value : values)
        value = value * 0.999f + 1e-3f;
      // Keeps the compiler from leaving all of it out.
      asm volatile("" : : "r"(values) : "memory");
    }
}
