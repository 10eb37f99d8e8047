//===- UcxWorker.h - one UCX context, worker and its endpoints ------------===//
//
// The thin layer over UCX's calls: opening, addresses, one endpoint a peer, tag
// sends and receives, and sleeping until something happens. It knows nothing of
// steps or commands; UcxComm does. Not thread safe: one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_UCX_UCXWORKER_H
#define AUTOHET_RUNTIME_COMM_UCX_UCXWORKER_H

#include "autohet/runtime/comm.h"
#include "comm/ucx/UcxLibrary.h"

#include <functional>
#include <string>
#include <vector>

namespace autohet::runtime {

/// A message in memory: bytes in a row, or pieces (then `data` is unused).
struct Payload {
  void *data = nullptr;
  size_t bytes = 0;
  const ah_piece *pieces = nullptr;
  size_t pieceCount = 0;

  static Payload of(const ah_request &request) {
    return {request.data, request.bytes, request.pieces, request.piece_count};
  }
};

class UcxWorker {
public:
  ~UcxWorker();
  UcxWorker() = default;
  UcxWorker(const UcxWorker &) = delete;
  UcxWorker &operator=(const UcxWorker &) = delete;

  /// `netDevices`: interfaces for TCP, as UCX_NET_DEVICES ("" for all);
  /// variables that the user sets win over the defaults.
  ah_status open(const std::string &netDevices);

  /// What the others need to reach this worker: a line that identifies the
  /// machine, and UCX's own address.
  const std::string &address() const { return ownAddress; }
  void setPeers(std::vector<std::string> addresses);

  /// Called by progress() when the connection to a peer broke.
  std::function<void(uint32_t peer, const char *error)> onPeerLost;

  /// Returns UCX's request, null when a send has ended already, or an error
  /// (UCS_PTR_IS_ERR); `user` is given to the callback, which a receive may
  /// call before it returns.
  ucs_status_ptr_t send(uint32_t peer, uint64_t tag, const Payload &payload,
                        ucp_send_nbx_callback_t callback, void *user);
  ucs_status_ptr_t receive(uint64_t tag, const Payload &payload,
                           ucp_tag_recv_nbx_callback_t callback, void *user);
  void release(void *request) { ucx->ucp_request_free(request); }

  /// Whether anything happened.
  bool progress() { return ucx->ucp_worker_progress(worker) != 0; }

  /// True: it is safe to sleep until fd() is readable. False: progress first.
  bool arm() { return ucx->ucp_worker_arm(worker) == UCS_OK; }
  int fd() const { return eventFd; }

  const char *statusText(ucs_status_t status) const {
    return ucx->ucs_status_string(status);
  }

  /// Flushes and closes every endpoint, for at most `seconds`.
  void close(double seconds);

  /// After a failure: leaves UCX's memory alone, since requests that never end
  /// still point into it. The process is about to end.
  void abandon() {
    worker = nullptr;
    context = nullptr;
  }

private:
  struct Peer {
    UcxWorker *owner;
    uint32_t rank;
    std::string address;
    /// UCX's shared memory cannot tell that its peer is dead, and is not used
    /// where that is asked for; between machines it must be, since UCX
    /// otherwise ends the process when a connection breaks.
    bool onThisMachine;
    ucp_ep_h endpoint;
  };

  const UcxLibrary *ucx = nullptr;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  int eventFd = -1;
  std::string ownAddress;
  std::vector<Peer> peers;

  ah_status openContext(const std::string &netDevices);
  ucs_status_t connect(Peer &peer);
  static void lost(void *peer, ucp_ep_h endpoint, ucs_status_t status);
};

} // namespace autohet::runtime

#endif
