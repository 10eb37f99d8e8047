//===- JobPage.h - memory of a supervisor and its workers -----------------===//
//
// One shared page a node: the boards of its workers, the heartbeats of all
// ranks, and why the job has failed, if it has. Nobody locks it, so a stopped
// or killed process cannot hold anybody up.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_JOBPAGE_H
#define AUTOHET_RUNTIME_SUPERVISOR_JOBPAGE_H

#include "autohet/runtime/comm.h"

#include <atomic>
#include <cstddef>
#include <string>

namespace autohet::runtime {

/// A rank as its last heartbeat showed it.
struct RankState {
  std::atomic<uint64_t> commands, step, phase;
  char last[200]; ///< its last commands; the last byte stays 0
};

class JobPage {
public:
  JobPage() = default;
  JobPage(const JobPage &) = delete;
  JobPage &operator=(const JobPage &) = delete;
  ~JobPage();

  /// In the supervisor. The descriptor is for its workers.
  ah_status create(uint32_t worldSize, uint32_t firstRank, uint32_t localRanks);
  /// In a worker.
  ah_status attach(int fd);
  int fd() const { return memoryFd; }

  uint32_t worldSize() const { return header->worldSize; }
  uint32_t firstRank() const { return header->firstRank; }
  ah_board &board(uint32_t device) const { return boards[device]; }
  RankState &rank(uint32_t rank) const { return ranks[rank]; }

  /// Counts up while the supervisor lives.
  std::atomic<uint64_t> &beat() const { return header->beat; }

  /// Set once, by the supervisor.
  void setFailure(const std::string &reason);
  bool hasFailed(std::string &reason) const;

private:
  struct Header {
    uint32_t worldSize, firstRank, localRanks, reserved;
    std::atomic<uint64_t> beat;
    std::atomic<uint32_t> failed;
    char reason[2020];
  };

  int memoryFd = -1;
  size_t bytes = 0;
  Header *header = nullptr;
  ah_board *boards = nullptr;
  RankState *ranks = nullptr;

  ah_status map(uint32_t worldSize, uint32_t localRanks);
};

} // namespace autohet::runtime

#endif
