//===- Transfers.cpp - sends and receives on their way ----------------------===//

#include "core/Transfers.h"

#include "core/Error.h"
#include "trace/Trace.h"

namespace autohet::runtime {

void Transfers::start(const ah_request &request, std::vector<ah_piece> pieces,
                      uint32_t event, uint64_t value) {
  auto owned = std::make_unique<Transfer>();
  Transfer *transfer = owned.get();
  transfer->request = request;
  transfer->pieces = std::move(pieces);
  if (transfer->pieces.size() == 1) {
    transfer->request.data = transfer->pieces[0].data;
  } else {
    transfer->request.pieces = transfer->pieces.data();
    transfer->request.piece_count = transfer->pieces.size();
  }
  transfer->request.done = onDone;
  transfer->request.user = transfer;
  transfer->owner = this;
  transfer->event = event;
  transfer->value = value;
  transfer->startedNs = monotonicNs();
  {
    std::lock_guard<std::mutex> lock(mutex);
    queues[event].push_back(std::move(owned));
    ++onTheWay;
  }
  ah_status status = link.table->start(link.comm, &transfer->request);
  if (status == AH_OK || status == AH_IN_PROGRESS)
    return;
  // `done` is not called for what did not start.
  std::string text = ah_last_error();
  end(*transfer, status, text.c_str());
  throw Error(status, text);
}

void Transfers::onDone(ah_request *request, ah_status status,
                       const char *error) {
  auto *transfer = static_cast<Transfer *>(request->user);
  transfer->owner->end(*transfer, status, error);
}

void Transfers::end(Transfer &transfer, ah_status status, const char *error) {
  uint32_t event = transfer.event;
  if (status == AH_OK)
    ended(transfer.request, transfer.startedNs);
  else
    stop(status, error ? error : "transfer failed");
  std::lock_guard<std::mutex> lock(mutex);
  transfer.done = true;
  auto &queue = queues[event];
  while (!queue.empty() && queue.front()->done) {
    uint64_t value = queue.front()->value;
    queue.pop_front();
    if (status == AH_OK)
      setEvent(event, value);
  }
  if (--onTheWay == 0)
    idle.notify_all();
}

void Transfers::waitForAll() {
  std::unique_lock<std::mutex> lock(mutex);
  idle.wait(lock, [&] { return onTheWay == 0; });
}

} // namespace autohet::runtime
