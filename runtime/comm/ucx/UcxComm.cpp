//===- UcxComm.cpp - the communication table over UCX ---------------------===//
//
// The callers' side of the transport: whatever thread, it only queues, waits
// and asks. UcxTransport.h says why.
//
//===----------------------------------------------------------------------===//

#include "comm/Agreement.h"
#include "comm/ucx/UcxTransport.h"

#include <sys/eventfd.h>
#include <unistd.h>

using namespace autohet::runtime;

//===----------------------------------------------------------------------===//
// Opening and closing
//===----------------------------------------------------------------------===//

ah_status ah_comm::open(std::string &address) {
  if (ah_status status = ucx.open(options.netDevices))
    return status;
  ucx.onPeerLost = [this](uint32_t peer, const char *error) {
    breakOff(nullptr, "the connection to " + options.watch->describeRank(peer) +
                          " broke: " + error);
  };
  wakeFd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakeFd < 0)
    return ah_fail(AH_ERROR_SYSTEM, "no event descriptor is left");
  address = ucx.address();
  return AH_OK;
}

void ah_comm::connect(std::vector<std::string> addresses) {
  ucx.setPeers(std::move(addresses));
  thread = std::thread([this] { run(); });
}

ah_comm::~ah_comm() {
  stopping = true;
  if (thread.joinable()) {
    wake();
    thread.join();
  }
  if (wakeFd >= 0)
    ::close(wakeFd);
}

//===----------------------------------------------------------------------===//
// The callers' side
//===----------------------------------------------------------------------===//

void ah_comm::wake() {
  uint64_t one = 1;
  // The counter cannot overflow into an error that matters: it is only ever
  // "something is there".
  (void)!write(wakeFd, &one, sizeof(one));
}

ah_status ah_comm::start(ah_request *request) {
  auto transfer = std::make_unique<Transfer>();
  transfer->owner = this;
  transfer->request = request;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failure.empty())
      return ah_fail(AH_ERROR_PEER, "%s: %s", describe(*request).c_str(),
                     failure.c_str());
    __atomic_store_n(&request->status, AH_IN_PROGRESS, __ATOMIC_RELEASE);
    queue.push_back(std::move(transfer));
  }
  if (sleeping)
    wake();
  return AH_IN_PROGRESS;
}

ah_status ah_comm::test(ah_request *request) {
  ah_status status = __atomic_load_n(&request->status, __ATOMIC_ACQUIRE);
  if (status == AH_OK || status == AH_IN_PROGRESS)
    return status;
  std::lock_guard<std::mutex> lock(mutex);
  auto error = errors.find(request);
  if (error != errors.end()) {
    ah_fail(status, "%s", error->second.c_str());
    errors.erase(error);
  }
  return status;
}

ah_status ah_comm::wait(ah_request *request) {
  {
    std::unique_lock<std::mutex> lock(mutex);
    ended.wait(lock, [&] {
      return __atomic_load_n(&request->status, __ATOMIC_ACQUIRE) !=
             AH_IN_PROGRESS;
    });
  }
  return test(request);
}

void ah_comm::cancel(const char *reason) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.empty())
      failure = reason;
  }
  wake();
}

/// "rank 1 (n0/1): 'recv block3.x' from rank 0 (n0/0), step 12, microbatch 3"
std::string ah_comm::describe(const ah_request &request) const {
  std::string text = options.watch->describeRank(options.rank) + ": '" +
                     (request.what ? request.what : "?") + "' " +
                     (request.is_send ? "to " : "from ") +
                     options.watch->describeRank(request.peer) + ", step " +
                     std::to_string(request.step);
  if (request.microbatch >= 0)
    text += ", microbatch " + std::to_string(request.microbatch);
  return text;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static ah_status agree(ah_comm *comm, ah_agreement *agreement) {
  return agreeOverTransfers(ucxTable(), comm, comm->options.rank,
                            comm->options.worldSize, comm->agreeRound++,
                            /*channel=*/0, "agree", *agreement);
}

static ah_status barrier(ah_comm *comm, const char *what) {
  ah_agreement nothing = {};
  nothing.struct_bytes = sizeof(nothing);
  return agreeOverTransfers(ucxTable(), comm, comm->options.rank,
                            comm->options.worldSize, comm->barrierRound++,
                            /*channel=*/1, what, nothing);
}

const ah_comm_table &autohet::runtime::ucxTable() {
  static const ah_comm_table table = {
      sizeof(ah_comm_table),
      AH_COMM_VERSION,
      "ucx",
      [](ah_comm *comm, ah_request *request) { return comm->start(request); },
      [](ah_comm *comm, ah_request *request) { return comm->test(request); },
      [](ah_comm *comm, ah_request *request) { return comm->wait(request); },
      agree,
      barrier,
      [](ah_comm *comm, const char *reason) { comm->cancel(reason); },
      [](ah_comm *comm) { delete comm; }};
  return table;
}

ah_status autohet::runtime::openUcx(const UcxOptions &options, ah_comm *&comm,
                                    std::string &address) {
  auto owned = std::make_unique<ah_comm>(options);
  if (ah_status status = owned->open(address))
    return status;
  comm = owned.release();
  return AH_OK;
}

void autohet::runtime::connectUcx(ah_comm *comm,
                                  std::vector<std::string> addresses) {
  comm->connect(std::move(addresses));
}
