//===- UcxWorker.cpp - one UCX context, worker and its endpoints ----------===//

#include "comm/ucx/UcxWorker.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace autohet::runtime;

/// Shared memory, then TCP: what works everywhere. RDMA is UCX_TLS=all away.
static const char *transports() {
  const char *asked = std::getenv("UCX_TLS");
  return asked ? asked : "posix,sysv,tcp,self";
}

static bool usesSharedMemory() {
  std::string list = transports();
  for (const char *name : {"posix", "sysv", "shm", "sm", "mm", "all"})
    if (("," + list + ",").find("," + std::string(name) + ",") !=
        std::string::npos)
      return true;
  return false;
}

/// Equal in two processes that can share memory: one boot of one machine, one
/// container, and one network, through whose sockets UCX wakes a sleeper.
static std::string machineIdentity() {
  std::string identity;
  std::ifstream bootId("/proc/sys/kernel/random/boot_id");
  std::getline(bootId, identity);
  for (const char *space :
       {"/proc/self/ns/ipc", "/proc/self/ns/pid", "/proc/self/ns/net"}) {
    char target[64] = "";
    if (readlink(space, target, sizeof(target) - 1) > 0)
      identity += std::string(" ") + target;
  }
  return identity;
}

/// Larger messages wait for their receiver to be ready, which costs each side
/// two more wake-ups; smaller ones cost one more copy. Between CPUs a copy is
/// the cheaper of the two up to about here (four emulated workers, 64 KiB
/// messages: a step of 474 ms at 8 KiB, of 439 ms at this).
static constexpr const char *rendezvousThreshold = "256k";

ah_status UcxWorker::openContext(const std::string &netDevices) {
  ucp_config_t *config = nullptr;
  ucs_status_t status = ucx->ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK)
    return ah_fail(AH_ERROR_SYSTEM, "UCX cannot read its configuration: %s",
                   statusText(status));
  status = ucx->ucp_config_modify(config, "TLS", transports());
  if (status == UCS_OK && !netDevices.empty() &&
      !std::getenv("UCX_NET_DEVICES"))
    status = ucx->ucp_config_modify(config, "NET_DEVICES", netDevices.c_str());
  if (status == UCS_OK && !std::getenv("UCX_RNDV_THRESH"))
    status = ucx->ucp_config_modify(config, "RNDV_THRESH", rendezvousThreshold);
  ucp_params_t params;
  std::memset(&params, 0, sizeof(params));
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  if (status == UCS_OK)
    status = ucx->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params,
                                   config, &context);
  ucx->ucp_config_release(config);
  if (status == UCS_OK)
    return AH_OK;
  return ah_fail(AH_ERROR_SYSTEM,
                 "UCX %s cannot open a transport (UCX_TLS=%s, interfaces %s): "
                 "%s",
                 ucx->ucp_get_version_string(), transports(),
                 netDevices.empty() ? "all" : netDevices.c_str(),
                 statusText(status));
}

ah_status UcxWorker::open(const std::string &netDevices) {
  if (ah_status status = UcxLibrary::open(ucx))
    return status;
  if (ah_status status = openContext(netDevices))
    return status;
  ucp_worker_params_t params;
  std::memset(&params, 0, sizeof(params));
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Opened by one thread, then used by another.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucx->ucp_worker_create(context, &params, &worker);
  ucp_address_t *address = nullptr;
  size_t bytes = 0;
  if (status == UCS_OK)
    status = ucx->ucp_worker_get_efd(worker, &eventFd);
  if (status == UCS_OK)
    status = ucx->ucp_worker_get_address(worker, &address, &bytes);
  if (status != UCS_OK)
    return ah_fail(AH_ERROR_SYSTEM, "UCX cannot open a worker: %s%s",
                   statusText(status),
                   status == UCS_ERR_SHMEM_SEGMENT
                       ? " (is /dev/shm writable, and is room left in it?)"
                       : "");
  ownAddress = machineIdentity() + '\n' +
               std::string(reinterpret_cast<const char *>(address), bytes);
  ucx->ucp_worker_release_address(worker, address);
  return AH_OK;
}

void UcxWorker::setPeers(std::vector<std::string> addresses) {
  peers.clear();
  bool sharedMemory = usesSharedMemory();
  size_t ownEnd = ownAddress.find('\n');
  for (uint32_t rank = 0; rank < addresses.size(); ++rank) {
    std::string &address = addresses[rank];
    size_t end = address.find('\n');
    bool same = address.compare(0, end, ownAddress, 0, ownEnd) == 0;
    peers.push_back(
        {this, rank, address.substr(end + 1), sharedMemory && same, nullptr});
  }
}

void UcxWorker::lost(void *argument, ucp_ep_h, ucs_status_t status) {
  auto *peer = static_cast<Peer *>(argument);
  if (peer->owner->onPeerLost)
    peer->owner->onPeerLost(peer->rank, peer->owner->statusText(status));
}

/// Endpoints are made at the first send: most ranks talk to few others.
ucs_status_t UcxWorker::connect(Peer &peer) {
  ucp_ep_params_t params;
  std::memset(&params, 0, sizeof(params));
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t *>(peer.address.data());
  params.err_mode = peer.onThisMachine ? UCP_ERR_HANDLING_MODE_NONE
                                       : UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = lost;
  params.err_handler.arg = &peer;
  return ucx->ucp_ep_create(worker, &params, &peer.endpoint);
}

/// UCX takes pieces as an array of its own type, which ah_piece equals.
static const void *describe(const Payload &payload, size_t &count,
                            ucp_request_param_t &params) {
  static_assert(sizeof(ah_piece) == sizeof(ucp_dt_iov_t) &&
                offsetof(ah_piece, data) == offsetof(ucp_dt_iov_t, buffer) &&
                offsetof(ah_piece, bytes) == offsetof(ucp_dt_iov_t, length));
  if (!payload.pieceCount) {
    count = payload.bytes;
    return payload.data;
  }
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
  params.datatype = ucp_dt_make_iov();
  count = payload.pieceCount;
  return payload.pieces;
}

ucs_status_ptr_t UcxWorker::send(uint32_t rank, uint64_t tag,
                                 const Payload &payload,
                                 ucp_send_nbx_callback_t callback, void *user) {
  Peer &peer = peers[rank];
  if (!peer.endpoint)
    if (ucs_status_t status = connect(peer); status != UCS_OK)
      return reinterpret_cast<ucs_status_ptr_t>(static_cast<intptr_t>(status));
  ucp_request_param_t params;
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = callback;
  params.user_data = user;
  size_t count;
  const void *data = describe(payload, count, params);
  return ucx->ucp_tag_send_nbx(peer.endpoint, data, count, tag, &params);
}

ucs_status_ptr_t UcxWorker::receive(uint64_t tag, const Payload &payload,
                                    ucp_tag_recv_nbx_callback_t callback,
                                    void *user) {
  ucp_request_param_t params;
  // UCX 1.13 does not tell the length of a message that was there already
  // unless the callback is asked for in that case too.
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  params.cb.recv = callback;
  params.user_data = user;
  size_t count;
  const void *data = describe(payload, count, params);
  return ucx->ucp_tag_recv_nbx(worker, const_cast<void *>(data), count, tag,
                               ~0ull, &params);
}

void UcxWorker::close(double seconds) {
  auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (Peer &peer : peers) {
    if (!peer.endpoint)
      continue;
    ucp_request_param_t params;
    std::memset(&params, 0, sizeof(params));
    ucs_status_ptr_t request = ucx->ucp_ep_close_nbx(peer.endpoint, &params);
    peer.endpoint = nullptr;
    if (!UCS_PTR_IS_PTR(request))
      continue;
    while (ucx->ucp_request_check_status(request) == UCS_INPROGRESS &&
           std::chrono::steady_clock::now() < end)
      ucx->ucp_worker_progress(worker);
    ucx->ucp_request_free(request);
  }
}

UcxWorker::~UcxWorker() {
  if (worker)
    ucx->ucp_worker_destroy(worker);
  if (context)
    ucx->ucp_cleanup(context);
}
