//===- WorkerLink.cpp - a worker's side of its supervisor -----------------===//
//
// Joining a job: find the supervisor, open the transport, exchange addresses.
// Leaving it: say how it went, and wait for the others before the transport is
// closed, since they may still be reading what was sent last.
//
//===----------------------------------------------------------------------===//

#include "autohet/runtime/comm.h"
#include "comm/ucx/UcxComm.h"
#include "supervisor/Calibration.h"
#include "supervisor/JobPage.h"
#include "supervisor/Manifest.h"
#include "supervisor/WorkerProcess.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace autohet::runtime;

namespace {

/// The handle that the supervisor left in the environment, read once.
const WorkerHandle *findHandle() {
  static WorkerHandle handle;
  static const bool found = [] {
    const char *text = std::getenv(WorkerHandle::variable);
    return text && WorkerHandle::parse(text, handle) &&
           handle.supervisor == getppid();
  }();
  return found ? &handle : nullptr;
}

class PageWatch : public JobWatch {
public:
  PageWatch(const JobPage &page, const Manifest &manifest, int failureFd,
            double death_timeout_s)
      : page(page), manifest(manifest), failureFd(failureFd),
        death_timeout_s(death_timeout_s) {}

  uint64_t commandsOf(uint32_t rank) const override {
    return page.rank(rank).commands;
  }
  std::string describeRank(uint32_t rank) const override {
    return manifest.describeRank(rank);
  }
  std::string lastCommands() const override {
    std::string text;
    for (uint32_t rank = 0; rank < page.worldSize(); ++rank)
      text += std::string(rank ? "\n" : "") + "  " + describeRank(rank) + ": " +
              page.rank(rank).last;
    return text;
  }
  int eventFd() const override { return failureFd; }

  /// Also true when the supervisor has been silent while we were awake:
  /// stopped, it can neither tell us of a death nor be seen by the others.
  bool hasFailed(std::string &reason) override {
    using Seconds = std::chrono::duration<double>;
    std::lock_guard<std::mutex> lock(mutex);
    auto now = std::chrono::steady_clock::now();
    if (uint64_t beat = page.beat(); beat != lastBeat) {
      lastBeat = beat;
      silent_s = 0;
    }
    silent_s += std::min(Seconds(now - lastAsked).count(), death_timeout_s / 5);
    lastAsked = now;
    if (page.hasFailed(reason))
      return true;
    if (silent_s < death_timeout_s)
      return false;
    reason = "this node's supervisor has been silent for " +
             std::to_string(static_cast<int>(silent_s)) +
             " s (--death-timeout)";
    return true;
  }

private:
  std::mutex mutex; // the transport's thread asks, and the main one in the end
  const JobPage &page;
  const Manifest &manifest;
  int failureFd;
  double death_timeout_s, silent_s = 0;
  uint64_t lastBeat = 0;
  std::chrono::steady_clock::time_point lastAsked =
      std::chrono::steady_clock::now();
};

/// Everything of this process's job; one a process.
struct Worker {
  Manifest manifest;
  JobPage page;
  Channel channel;
  int failureFd = -1;
  std::unique_ptr<PageWatch> watch;
};
std::unique_ptr<Worker> worker;

/// The next frame of a type from the supervisor, or Begin; AH_ERROR_PEER when
/// the job has failed.
ah_status awaitFrame(FrameType type, Frame &frame) {
  for (;;) {
    std::string reason;
    if (worker->watch->hasFailed(reason))
      return ah_fail(AH_ERROR_PEER, "%s", reason.c_str());
    bool open = worker->channel.pump();
    while (worker->channel.next(frame))
      if (frame.type == type || frame.type == FrameType::Begin)
        return AH_OK;
    if (!open)
      return ah_fail(AH_ERROR_PEER, "this node's supervisor is gone");
    pollfd sockets[] = {{worker->channel.fd(), POLLIN, 0},
                        {worker->failureFd, POLLIN, 0}};
    poll(sockets, 2, /*timeout_ms=*/500);
  }
}

/// Emulation: measure when told to, until told to begin.
ah_status calibrate(uint32_t rank, double share) {
  for (;;) {
    Frame frame;
    if (ah_status status = awaitFrame(FrameType::Measure, frame))
      return status;
    if (frame.type == FrameType::Begin)
      return AH_OK;
    double rate = measureSpeed(worker->manifest.ranks[rank].threads, share);
    Packer packer;
    packer.number(static_cast<uint64_t>(rate) + 1);
    worker->channel.send(FrameType::Measured, packer.bytes);
  }
}

std::vector<PacedLink> pacedLinks(uint32_t rank) {
  std::vector<PacedLink> links;
  for (uint32_t peer = 0; peer < worker->page.worldSize(); ++peer) {
    ManifestLink link = worker->manifest.linkBetween(rank, peer);
    links.push_back({link.bandwidth_bytes_per_s, link.latency_s});
  }
  return links;
}

ah_status openTransport(const ah_supervisor_options &options, uint32_t rank,
                        ah_worker_link &link) {
  // Within one node there is shared memory; a port would be a port too many.
  if (worker->manifest.nodes.size() == 1)
    setenv("UCX_TLS", "posix,sysv,self", /*overwrite=*/0);
  UcxOptions ucx;
  ucx.rank = rank;
  ucx.worldSize = worker->page.worldSize();
  if (options.stall_timeout_s > 0)
    ucx.stall_timeout_s = options.stall_timeout_s;
  ucx.checkMessages = options.check_messages != 0;
  ucx.watch = worker->watch.get();
  if (options.emulate)
    ucx.links = pacedLinks(rank);
  std::string address;
  if (ah_status status = openUcx(ucx, link.comm, address))
    return status;
  worker->channel.send(FrameType::Ready, Packer().text(address).bytes);
  Frame frame;
  if (ah_status status = awaitFrame(FrameType::Peers, frame))
    return status;
  std::vector<std::string> addresses(ucx.worldSize);
  Unpacker unpacker(frame.bytes);
  for (std::string &one : addresses)
    one = unpacker.text();
  connectUcx(link.comm, std::move(addresses));
  link.table = &ucxTable();
  return AH_OK;
}

ah_status join(const ah_node_image &image, uint32_t device,
               const ah_supervisor_options &options, ah_worker_link &link) {
  const WorkerHandle *handle = findHandle();
  if (!handle) {
    static ah_board privateBoard;
    link.board = &privateBoard;
    return AH_OK;
  }
  // Neither these nor the variable are for processes that we may start.
  unsetenv(WorkerHandle::variable);
  for (int fd : {handle->pageFd, handle->channelFd, handle->failureFd})
    fcntl(fd, F_SETFD, FD_CLOEXEC);

  worker = std::make_unique<Worker>();
  std::string error;
  if (!parseManifest(image.manifest, worker->manifest, error))
    return ah_fail(AH_ERROR_INTERNAL, "%s", error.c_str());
  if (ah_status status = worker->page.attach(handle->pageFd))
    return status;
  worker->channel = Channel(handle->channelFd);
  worker->failureFd = handle->failureFd;
  double death_timeout_s =
      options.death_timeout_s > 0 ? options.death_timeout_s : 10;
  worker->watch = std::make_unique<PageWatch>(
      worker->page, worker->manifest, worker->failureFd, death_timeout_s);
  link.board = &worker->page.board(device);
  link.share = handle->share;
  uint32_t rank = worker->page.firstRank() + device;
  // What ps shows: which worker this is.
  prctl(PR_SET_NAME, ("autohet-" + std::to_string(rank)).c_str());
  if (worker->page.worldSize() > 1) {
    if (ah_status status = openTransport(options, rank, link))
      return status;
  } else {
    worker->channel.send(FrameType::Ready, Packer().text("").bytes);
    Frame frame;
    if (ah_status status = awaitFrame(FrameType::Peers, frame))
      return status;
  }
  return options.emulate ? calibrate(rank, handle->share) : AH_OK;
}

} // namespace

extern "C" int64_t ah_worker_device(void) {
  const WorkerHandle *handle = findHandle();
  return handle ? static_cast<int64_t>(handle->device) : -1;
}

extern "C" ah_status ah_worker_join(const ah_node_image *image, uint32_t device,
                                    const ah_supervisor_options *options,
                                    ah_worker_link *link) {
  ah_supervisor_options own = {};
  std::memcpy(&own, options,
              std::min<size_t>(options->struct_bytes, sizeof(own)));
  link->table = nullptr;
  link->comm = nullptr;
  link->board = nullptr;
  link->share = 0;
  return join(*image, device, own, *link);
}

extern "C" void ah_worker_leave(ah_worker_link *link, ah_status status,
                                const char *error) {
  if (worker) {
    Packer packer;
    packer.number(static_cast<uint64_t>(static_cast<int64_t>(status)));
    packer.text(error ? error : "");
    worker->channel.send(FrameType::WorkerEnded, packer.bytes);
    worker->channel.flush(/*seconds=*/2);
    Frame frame;
    if (status == AH_OK)
      status = awaitFrame(FrameType::AllEnded, frame);
  }
  if (link->comm && status != AH_OK && link->table)
    link->table->cancel(link->comm, "this worker leaves");
  if (link->comm)
    ucxTable().destroy(link->comm); // also one whose joining failed
  link->table = nullptr;
  link->comm = nullptr;
}
