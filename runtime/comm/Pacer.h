//===- Pacer.h - links that are slower than this machine's ----------------===//
//
// For emulated clusters: a message of b bytes over a link takes latency + b /
// bandwidth, and those that a device sends follow each other. The sender holds
// a message back until it would have arrived.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_PACER_H
#define AUTOHET_RUNTIME_COMM_PACER_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace autohet::runtime {

struct PacedLink {
  double bandwidth_bytes_per_s = 0; ///< 0: not limited
  double latency_s = 0;
};

class Pacer {
public:
  using Clock = std::chrono::steady_clock;

  Pacer() = default;
  /// One link a peer; none: nothing is held back.
  explicit Pacer(std::vector<PacedLink> links) : links(std::move(links)) {}

  bool isOn() const { return !links.empty(); }

  /// When a message that is ready `now` would have arrived at `peer`.
  Clock::time_point arrival(uint32_t peer, uint64_t bytes,
                            Clock::time_point now) {
    const PacedLink &link = links[peer];
    double transfer_s = link.bandwidth_bytes_per_s > 0
                            ? double(bytes) / link.bandwidth_bytes_per_s
                            : 0;
    freeAt = std::max(now, freeAt) + duration(transfer_s);
    return freeAt + duration(link.latency_s);
  }

private:
  std::vector<PacedLink> links;
  Clock::time_point freeAt; ///< of the device, whoever it sends to

  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds));
  }
};

} // namespace autohet::runtime

#endif
