//===- Nonfinite.h - finds where a NaN began ---------------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_CORE_NONFINITE_H
#define AUTOHET_RUNTIME_CORE_NONFINITE_H

#include "core/Memory.h"

#include <map>
#include <mutex>
#include <string>

namespace autohet::runtime {

/// Looks at the buffers of each command of a pass, after it, for the first NaN
/// or +infinity. (-infinity is what masks are made of; where it does harm a NaN
/// follows at once.) Tables are not looked at, for the same reason.
class NonfiniteSearch {
public:
  explicit NonfiniteSearch(Memory &memory);

  /// Parameters that were bad before the step.
  void lookAtParameters();
  /// `firstMicrobatch`: of the pass, among those of all passes.
  void look(const ah_command &command, int64_t microbatch,
            uint64_t firstMicrobatch);
  /// Empty, or "NaN in buffer 'x', element 3, made by LAUNCH 'y', microbatch
  /// 2".
  std::string finding();
  /// Whether it began on this rank: it was not received.
  bool beganHere();

private:
  bool lookAtBuffer(uint32_t buffer, int64_t microbatchOfAll,
                    const std::string &how);

  Memory &memory;
  const Program &program;
  std::map<int64_t, const ah_command *> receives; // by event
  std::mutex mutex;
  std::string found;
  bool isReceived = false; // what is found
};

} // namespace autohet::runtime

#endif
