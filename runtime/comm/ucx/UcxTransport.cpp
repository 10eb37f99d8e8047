//===- UcxTransport.cpp - the thread that talks to UCX --------------------===//

#include "comm/ucx/UcxTransport.h"

#include <algorithm>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace autohet::runtime;

/// How long the thread polls after the last message before it sleeps.
static constexpr auto spinTime = std::chrono::microseconds(20);
/// After a broken connection, how long the supervisor may take to say who died.
static constexpr double causeTime_s = 2;
/// How long it sleeps at most: the clocks tick this often.
static constexpr auto tickTime = std::chrono::milliseconds(500);

static double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void ah_comm::run() {
  // Held-back messages are due to the microsecond, not to the 50 of the
  // default.
  prctl(PR_SET_TIMERSLACK, 1000);
  lastTick = Clock::now();
  auto idleSince = lastTick;
  while (!stopping) {
    bool busy = startQueued();
    if (!heldBack.empty())
      releaseHeldBack(Clock::now());
    while (!broken && ucx.progress())
      busy = true;
    auto now = Clock::now();
    if (busy)
      idleSince = now;
    if (now - lastTick > tickTime)
      tick();
    // On an emulated device's core others have work to do.
    if (pacer.isOn() ? !busy : now - idleSince >= spinTime)
      sleep();
  }
  // What is on its way out is delivered, unless the other side is dead anyway.
  bool failed;
  {
    std::lock_guard<std::mutex> lock(mutex);
    failed = !failure.empty();
  }
  if (failed || broken || !active.empty())
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
    Clock::duration patience = tickTime;
    if (!heldBack.empty())
      patience = std::clamp<Clock::duration>(
          heldBack.begin()->first - Clock::now(), Clock::duration(0), tickTime);
    timespec timeout = {0, patience.count()}; // steady_clock counts nanoseconds
    ppoll(fds, 3, &timeout, nullptr);
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
  bool isHeld = pacer.isOn() && request.is_send && request.peer != options.rank;
  if (isHeld)
    heldBack.emplace(pacer.arrival(request.peer, request.bytes, Clock::now()),
                     transfer);
  else if (request.is_send)
    beginSend(transfer);
  else if (options.checkMessages)
    post(transfer, tagOf(request) | headerTagBit,
         {&transfer->header, sizeof(MessageHeader)}, receivedHeader);
  else
    post(transfer, tagOf(request), Payload::of(request), received);
}

/// The upper bits of UCX's tag say who sends.
uint64_t ah_comm::tagOf(const ah_request &request) const {
  uint64_t sender = request.is_send ? options.rank : request.peer;
  return sender << AH_TAG_BITS | request.tag;
}

void ah_comm::releaseHeldBack(Clock::time_point now) {
  // Equal times keep their order, and so do messages to one peer.
  while (!heldBack.empty() && heldBack.begin()->first <= now) {
    Transfer *transfer = heldBack.begin()->second;
    heldBack.erase(heldBack.begin());
    beginSend(transfer);
  }
}

void ah_comm::beginSend(Transfer *transfer) {
  ah_request &request = *transfer->request;
  transfer->fillHeader();
  struct {
    uint64_t tag;
    Payload payload;
  } messages[] = {{tagOf(request) | headerTagBit,
                   {&transfer->header, sizeof(MessageHeader)}},
                  {tagOf(request), Payload::of(request)}};
  transfer->pending = 1; // until all are on their way
  for (auto *message = messages + !options.checkMessages;
       message != std::end(messages); ++message) {
    ucs_status_ptr_t result =
        ucx.send(request.peer, message->tag, message->payload, sent, transfer);
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

void ah_comm::post(Transfer *transfer, uint64_t tag, const Payload &payload,
                   ucp_tag_recv_nbx_callback_t callback) {
  ucs_status_ptr_t result = ucx.receive(tag, payload, callback, transfer);
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
    comm->post(transfer, comm->tagOf(request), Payload::of(request), received);
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
  heldBack.clear();
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
