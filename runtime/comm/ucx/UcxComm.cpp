//===- UcxComm.cpp - the communication table over UCX ---------------------===//
//
// One thread a worker makes all of UCX's calls; the others hand it requests
// through a queue. So compute threads never copy messages and UCX needs no
// locks. The thread sleeps on UCX's event descriptor after a short spin (a
// polling wait would burn the quota of an emulated device) and keeps the two
// clocks: a death that the supervisor reports ends every transfer at once, a
// peer whose command counter stands still for the stall timeout does too.
//
//===----------------------------------------------------------------------===//

#include "comm/ucx/UcxComm.h"
#include "comm/Agreement.h"
#include "comm/ucx/Transfer.h"
#include "comm/ucx/UcxWorker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>

using namespace autohet::runtime;
using Clock = std::chrono::steady_clock;

/// How long the thread polls after the last message before it sleeps.
static constexpr auto spinTime = std::chrono::microseconds(20);
/// After a broken connection, how long the supervisor may take to say who died.
static constexpr double causeTime_s = 2;

static double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

struct ah_comm {
  explicit ah_comm(const UcxOptions &options) : options(options) {}
  ~ah_comm();

  ah_status open(std::string &address);
  void connect(std::vector<std::string> addresses);

  ah_status start(ah_request *request);
  ah_status test(ah_request *request);
  ah_status wait(ah_request *request);
  void cancel(const char *reason);

  const UcxOptions options;
  std::atomic<uint64_t> agreeRound{0}, barrierRound{0};

private:
  UcxWorker ucx;
  int wakeFd = -1;
  std::thread thread;
  std::atomic<bool> sleeping{false}, stopping{false};

  // Shared with callers, under `mutex`.
  std::mutex mutex;
  std::condition_variable ended;
  std::vector<std::unique_ptr<Transfer>> queue;
  std::unordered_map<ah_request *, std::string> errors; // until asked for
  std::string failure; // why nothing works any more; "" while all is well

  // The thread's own.
  std::vector<std::unique_ptr<Transfer>> active;
  bool broken = false; // all transfers have failed; UCX is not called any more
  std::string lostText;
  Clock::time_point lostAt, lastTick;

  void run();
  void sleep();
  void wake();
  bool startQueued();
  void tick();
  void advanceStallClocks(double elapsed_s);
  void begin(std::unique_ptr<Transfer> owned);
  uint64_t tagOf(const ah_request &request) const;
  void beginSend(Transfer *transfer);
  void endSend(Transfer *transfer);
  void post(Transfer *transfer, uint64_t tag, void *data, size_t bytes,
            ucp_tag_recv_nbx_callback_t callback);
  void finish(Transfer *transfer, ah_status status, const std::string &text);
  void endReceive(Transfer *transfer, ucs_status_t status, size_t length);
  void breakOff(Transfer *transfer, const std::string &why);
  void failAll(const std::string &reason);
  std::string describe(const ah_request &request) const;

  static void sent(void *, ucs_status_t status, void *user);
  static void receivedHeader(void *, ucs_status_t status,
                             const ucp_tag_recv_info_t *info, void *user);
  static void received(void *, ucs_status_t status,
                       const ucp_tag_recv_info_t *info, void *user);
};

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
// The thread
//===----------------------------------------------------------------------===//

void ah_comm::run() {
  lastTick = Clock::now();
  auto idleSince = lastTick;
  while (!stopping) {
    bool busy = startQueued();
    while (!broken && ucx.progress())
      busy = true;
    auto now = Clock::now();
    if (busy)
      idleSince = now;
    if (now - lastTick > std::chrono::milliseconds(500))
      tick();
    if (now - idleSince >= spinTime)
      sleep();
  }
  // What is on its way out is delivered, unless the other side is dead anyway.
  std::lock_guard<std::mutex> lock(mutex);
  if (broken || !failure.empty() || !active.empty())
    ucx.abandon();
  else
    ucx.close(/*seconds=*/5);
}

void ah_comm::sleep() {
  sleeping = true;
  bool queued;
  {
    std::lock_guard<std::mutex> lock(mutex);
    queued = !queue.empty() || (!failure.empty() && !broken);
  }
  // From here a new request wakes us, and so does a message, once UCX is armed.
  if (!queued && !stopping && (broken || ucx.arm())) {
    pollfd fds[] = {{broken ? -1 : ucx.fd(), POLLIN, 0},
                    {wakeFd, POLLIN, 0},
                    {broken ? -1 : options.watch->eventFd(), POLLIN, 0}};
    poll(fds, 3, /*timeout_ms=*/500);
    uint64_t ignored;
    if (fds[1].revents)
      (void)!read(wakeFd, &ignored, sizeof(ignored));
    if (fds[2].revents)
      tick();
  }
  sleeping = false;
}

/// Takes new requests; after a failure ends all of them instead.
bool ah_comm::startQueued() {
  std::vector<std::unique_ptr<Transfer>> taken;
  std::string failed;
  {
    std::lock_guard<std::mutex> lock(mutex);
    taken.swap(queue);
    failed = failure;
  }
  if (!failed.empty()) {
    for (auto &transfer : taken) {
      transfer->index = active.size();
      active.push_back(std::move(transfer));
    }
    failAll(failed);
    return false;
  }
  for (auto &transfer : taken)
    begin(std::move(transfer));
  return !taken.empty();
}

void ah_comm::begin(std::unique_ptr<Transfer> owned) {
  Transfer *transfer = owned.get();
  transfer->index = active.size();
  active.push_back(std::move(owned));
  ah_request &request = *transfer->request;
  transfer->peerCommands = options.watch->commandsOf(request.peer);
  if (request.is_send)
    beginSend(transfer);
  else if (options.checkMessages)
    post(transfer, tagOf(request) | headerTagBit, &transfer->header,
         sizeof(MessageHeader), receivedHeader);
  else
    post(transfer, tagOf(request), request.data, request.bytes, received);
}

/// The upper bits of UCX's tag say who sends.
uint64_t ah_comm::tagOf(const ah_request &request) const {
  uint64_t sender = request.is_send ? options.rank : request.peer;
  return sender << AH_TAG_BITS | request.tag;
}

void ah_comm::beginSend(Transfer *transfer) {
  ah_request &request = *transfer->request;
  transfer->fillHeader();
  struct {
    uint64_t tag;
    const void *data;
    size_t bytes;
  } messages[] = {
      {tagOf(request) | headerTagBit, &transfer->header, sizeof(MessageHeader)},
      {tagOf(request), request.data, request.bytes}};
  transfer->pending = 1; // until all are on their way
  for (auto *message = messages + !options.checkMessages;
       message != std::end(messages); ++message) {
    ucs_status_ptr_t result =
        ucx.send(request.peer, message->tag, message->data, message->bytes,
                 sent, transfer);
    if (UCS_PTR_IS_PTR(result))
      ++transfer->pending; // `sent` will count it
    else if (ucs_status_t status = UCS_PTR_STATUS(result); status != UCS_OK)
      return breakOff(transfer, ucx.statusText(status));
  }
  endSend(transfer);
}

void ah_comm::endSend(Transfer *transfer) {
  if (--transfer->pending == 0)
    finish(transfer, AH_OK, "");
}

void ah_comm::sent(void *handle, ucs_status_t status, void *user) {
  auto *transfer = static_cast<Transfer *>(user);
  ah_comm *comm = transfer->owner;
  comm->ucx.release(handle);
  if (status == UCS_OK)
    comm->endSend(transfer);
  else
    comm->breakOff(transfer, comm->ucx.statusText(status));
}

void ah_comm::post(Transfer *transfer, uint64_t tag, void *data, size_t bytes,
                   ucp_tag_recv_nbx_callback_t callback) {
  ucs_status_ptr_t result = ucx.receive(tag, data, bytes, callback, transfer);
  if (UCS_PTR_IS_ERR(result))
    breakOff(transfer, ucx.statusText(UCS_PTR_STATUS(result)));
  // Else the callback ends it, or has: `transfer` may be gone.
}

/// Headers of equal tags arrive in order, so their payloads are awaited in
/// order.
void ah_comm::receivedHeader(void *handle, ucs_status_t status,
                             const ucp_tag_recv_info_t *, void *user) {
  auto *transfer = static_cast<Transfer *>(user);
  ah_comm *comm = transfer->owner;
  ah_request &request = *transfer->request;
  comm->ucx.release(handle);
  if (status != UCS_OK)
    return comm->breakOff(transfer, comm->ucx.statusText(status));
  std::string difference = transfer->compareHeader();
  if (difference.empty())
    comm->post(transfer, comm->tagOf(request), request.data, request.bytes,
               received);
  else
    comm->finish(transfer, AH_ERROR_MISMATCH,
                 comm->describe(request) + ": " + difference);
}

void ah_comm::received(void *handle, ucs_status_t status,
                       const ucp_tag_recv_info_t *info, void *user) {
  auto *transfer = static_cast<Transfer *>(user);
  ah_comm *comm = transfer->owner;
  comm->endReceive(transfer, status, info->length);
  comm->ucx.release(handle);
}

void ah_comm::endReceive(Transfer *transfer, ucs_status_t status,
                         size_t length) {
  const ah_request &request = *transfer->request;
  if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED)
    return breakOff(transfer, ucx.statusText(status));
  std::string difference;
  if (status == UCS_ERR_MESSAGE_TRUNCATED)
    difference = "the message is longer than the " +
                 std::to_string(request.bytes) + " bytes expected";
  else if (length != request.bytes)
    difference = "the message has " + std::to_string(length) +
                 " bytes, expected were " + std::to_string(request.bytes);
  if (difference.empty())
    return finish(transfer, AH_OK, "");
  finish(transfer, AH_ERROR_MISMATCH, describe(request) + ": " + difference);
}

void ah_comm::finish(Transfer *transfer, ah_status status,
                     const std::string &text) {
  std::unique_ptr<Transfer> owned = std::move(active[transfer->index]);
  if (active.back()) { // else it was the last itself
    active.back()->index = transfer->index;
    active[transfer->index] = std::move(active.back());
  }
  active.pop_back();

  ah_request *request = transfer->request;
  if (request->done) {
    __atomic_store_n(&request->status, status, __ATOMIC_RELEASE);
    request->done(request, status, text.c_str());
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (status != AH_OK)
      errors[request] = text;
    // From here on the request may be gone.
    __atomic_store_n(&request->status, status, __ATOMIC_RELEASE);
  }
  ended.notify_all();
}

/// A connection broke. The transfer stays in progress for a moment, so that the
/// message can say who died rather than what UCX noticed.
void ah_comm::breakOff(Transfer *transfer, const std::string &why) {
  if (!lostText.empty())
    return;
  lostText = transfer ? describe(*transfer->request) + ": " + why : why;
  lostAt = Clock::now();
}

void ah_comm::failAll(const std::string &reason) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.empty())
      failure = reason;
  }
  broken = true;
  while (!active.empty()) {
    Transfer *transfer = active.back().get();
    finish(transfer, AH_ERROR_PEER,
           describe(*transfer->request) + ": " + reason);
  }
}

/// The clocks, about twice a second. A jump in time (this process was stopped)
/// counts as one second at most: silence is what we listened to.
void ah_comm::tick() {
  if (broken)
    return;
  auto now = Clock::now();
  double elapsed_s = std::min(seconds(now - lastTick), 1.0);
  lastTick = now;
  std::string reason;
  if (options.watch->hasFailed(reason))
    return failAll(reason);
  if (!lostText.empty() && seconds(now - lostAt) > causeTime_s)
    return failAll(lostText);
  advanceStallClocks(elapsed_s);
}

void ah_comm::advanceStallClocks(double elapsed_s) {
  for (auto &transfer : active) {
    uint64_t commands = options.watch->commandsOf(transfer->request->peer);
    transfer->silent_s += elapsed_s;
    if (commands != transfer->peerCommands)
      transfer->silent_s = 0;
    transfer->peerCommands = commands;
    if (transfer->silent_s < options.stall_timeout_s)
      continue;
    std::string peer = options.watch->describeRank(transfer->request->peer);
    return failAll(describe(*transfer->request) + ": " + peer +
                   " has not finished a command for " +
                   std::to_string(static_cast<int64_t>(transfer->silent_s)) +
                   " s (--stall-timeout)\n" + options.watch->lastCommands());
  }
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
