//===- Ranks.h - a few processes that talk over UCX -----------------------===//
//
// Runs a function in one forked process a rank. Memory shared by all of them
// stands in for the supervisor: addresses, command counters, and the word that
// somebody died.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_COMM_RANKS_H
#define AUTOHET_TEST_UNIT_COMM_RANKS_H

#include "comm/ucx/UcxComm.h"

#include <atomic>
#include <functional>
#include <vector>

namespace autohet::runtime::test {

constexpr uint32_t maxRanks = 8;

struct SharedJob {
  std::atomic<uint64_t> commands[maxRanks];
  std::atomic<uint32_t> died; ///< rank + 1
  struct {
    std::atomic<uint32_t> bytes;
    char text[4096];
  } addresses[maxRanks];
};

/// What a rank's function works with.
struct Rank {
  uint32_t rank;
  SharedJob *job;
  const ah_comm_table *table;
  ah_comm *comm;

  /// A transfer on channel 0; starts it.
  ah_request start(uint32_t peer, bool isSend, void *data, size_t bytes,
                   const char *what = "test");
  ah_status transfer(uint32_t peer, bool isSend, void *data, size_t bytes,
                     const char *what = "test");
};

struct RanksOptions {
  uint32_t worldSize = 2;
  double stall_timeout_s = 600;
  bool checkMessages = false;
  const char *transports = nullptr; ///< UCX_TLS
  autohet::runtime::PacedLink link; ///< between any two
};

/// The exit status of each rank: what `body` returned, or 128 + signal.
std::vector<int> runRanks(const RanksOptions &options,
                          const std::function<int(Rank &)> &body);

} // namespace autohet::runtime::test

#endif
