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
#include <set>
#include <thread>
#include <vector>

namespace autohet::runtime {

class CoreTicks {
public:
  /// `cores`: numbers as pinToCore counts them.
  explicit CoreTicks(const std::set<uint32_t> &cores);
  ~CoreTicks();

private:
  std::atomic<bool> stopping{false};
  std::vector<std::thread> threads;
};

} // namespace autohet::runtime

#endif
