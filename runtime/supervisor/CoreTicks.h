//===- CoreTicks.h - makes the kernel look at quotas more often -----------===//
//
// The kernel notices that a running thread has used up its quota only at a
// scheduler tick, every 4 ms in common configurations. With a quota of 1 ms a
// worker then runs four times as long as it may and stands still for the
// periods that this cost: right on average, but in lumps of 20 ms that no
// pipeline of short stages survives. A thread on each core that does nothing
// but wake up makes the scheduler look, and lumps as short as a period.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_CORETICKS_H
#define AUTOHET_RUNTIME_SUPERVISOR_CORETICKS_H

#include <atomic>
#include <cstdint>
#include <map>
#include <thread>

namespace autohet::runtime {

class CoreTicks {
public:
  ~CoreTicks();

  /// Ticks on a core, once however often it is asked for; `core` as pinToCore
  /// counts.
  void start(uint32_t core);

private:
  std::atomic<bool> stopping{false};
  std::map<uint32_t, std::thread> threads; // by core

  void run(uint32_t core);
};

} // namespace autohet::runtime

#endif
