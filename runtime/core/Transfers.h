//===- Transfers.h - sends and receives on their way -------------*- C++ -*-===//
//
// SEND and RECV only start; their event is set when they end. A transport may
// end two transfers of one event in the other order, but an event counts
// microbatches, so each event's transfers are taken off in the order in which
// they were started.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_TRANSFERS_H
#define AUTOHET_RUNTIME_CORE_TRANSFERS_H

#include "autohet/runtime/comm.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace autohet::runtime {

class Transfers {
public:
  using SetEvent = std::function<void(uint32_t event, uint64_t value)>;
  using Stop = std::function<void(ah_status status, const char *error)>;
  /// Called when a transfer has ended: (what, is_send, microbatch, start in
  /// ns).
  using Ended =
      std::function<void(const ah_request &request, uint64_t startedNs)>;

  Transfers(const ah_worker_link &link, uint32_t events, SetEvent setEvent,
            Stop stop, Ended ended)
      : link(link), setEvent(std::move(setEvent)), stop(std::move(stop)),
        ended(std::move(ended)), queues(events) {}
  ~Transfers() { waitForAll(); }

  /// `request` has peer, is_send, tag, bytes, what, step and microbatch; its
  /// message is what `pieces` hold, one behind the other.
  void start(const ah_request &request, std::vector<ah_piece> pieces,
             uint32_t event, uint64_t value);
  /// Sleeps until none is on its way.
  void waitForAll();

private:
  struct Transfer {
    ah_request request;
    std::vector<ah_piece> pieces;
    Transfers *owner;
    uint32_t event;
    uint64_t value;
    uint64_t startedNs;
    bool done = false;
  };

  static void onDone(ah_request *request, ah_status status, const char *error);
  void end(Transfer &transfer, ah_status status, const char *error);

  const ah_worker_link link;
  SetEvent setEvent;
  Stop stop;
  Ended ended;
  std::mutex mutex;
  std::condition_variable idle;
  std::vector<std::deque<std::unique_ptr<Transfer>>> queues;
  uint64_t onTheWay = 0;
};

} // namespace autohet::runtime

#endif
