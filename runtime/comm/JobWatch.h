//===- JobWatch.h - what a transport asks about its job -------------------===//
//
// A transport sees bytes that do not come; whether their sender is dead, slow
// or waiting itself is known to the supervisor. The two meet here, so that each
// can be tested without the other.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_JOBWATCH_H
#define AUTOHET_RUNTIME_COMM_JOBWATCH_H

#include <cstdint>
#include <string>

namespace autohet::runtime {

class JobWatch {
public:
  virtual ~JobWatch() = default;

  /// Commands that `rank` has walked, as of its last heartbeat: the stall clock
  /// runs while this does not move.
  virtual uint64_t commandsOf(uint32_t rank) const = 0;

  /// "rank 2 (n0/1)"
  virtual std::string describeRank(uint32_t rank) const = 0;

  /// What each rank did last, a line a rank, for the message about a stall.
  virtual std::string lastCommands() const = 0;

  /// Whether the job is known to end in failure: some process died, or this
  /// node's supervisor fell silent. Sets `reason`.
  virtual bool hasFailed(std::string &reason) = 0;

  /// Readable when `hasFailed` may have changed; -1 where there is none.
  virtual int eventFd() const { return -1; }
};

} // namespace autohet::runtime

#endif
