//===- UcxTransport.h - one worker's transport over UCX -------------------===//
//
// One thread a worker makes all of UCX's calls; the others hand it requests
// through a queue. So compute threads never copy messages and UCX needs no
// locks. The thread sleeps on UCX's event descriptor after a short spin (a
// polling wait would take the core from emulated devices) and keeps the two
// clocks: a death that the supervisor reports ends every transfer at once, a
// peer whose command counter stands still for the stall timeout does too.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_COMM_UCX_UCXTRANSPORT_H
#define AUTOHET_RUNTIME_COMM_UCX_UCXTRANSPORT_H

#include "comm/Pacer.h"
#include "comm/ucx/Transfer.h"
#include "comm/ucx/UcxComm.h"
#include "comm/ucx/UcxWorker.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

/// What the public interface calls a transport.
struct ah_comm {
  explicit ah_comm(const autohet::runtime::UcxOptions &options)
      : options(options), pacer(options.links) {}
  ~ah_comm();

  ah_status open(std::string &address);
  void connect(std::vector<std::string> addresses);

  ah_status start(ah_request *request);
  ah_status test(ah_request *request);
  ah_status wait(ah_request *request);
  void cancel(const char *reason);

  const autohet::runtime::UcxOptions options;
  std::atomic<uint64_t> agreeRound{0}, barrierRound{0};

private:
  using Clock = std::chrono::steady_clock;
  using Transfer = autohet::runtime::Transfer;

  autohet::runtime::UcxWorker ucx;
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
  autohet::runtime::Pacer pacer;
  std::multimap<Clock::time_point, Transfer *> heldBack; // by the pacer
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
  void releaseHeldBack(Clock::time_point now);
  void endSend(Transfer *transfer);
  void post(Transfer *transfer, uint64_t tag,
            const autohet::runtime::Payload &payload,
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

#endif
