//===- Ranks.cpp - a few processes that talk over UCX ---------------------===//

#include "Ranks.h"

#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace autohet::runtime;
using namespace autohet::runtime::test;

namespace {

class SharedWatch : public JobWatch {
public:
  explicit SharedWatch(SharedJob &job) : job(job) {}
  uint64_t commandsOf(uint32_t rank) const override {
    return job.commands[rank];
  }
  std::string describeRank(uint32_t rank) const override {
    return "rank " + std::to_string(rank);
  }
  std::string lastCommands() const override { return "last commands"; }
  bool hasFailed(std::string &reason) override {
    if (uint32_t died = job.died)
      reason = describeRank(died - 1) + " died";
    return job.died != 0;
  }

private:
  SharedJob &job;
};

} // namespace

ah_request Rank::start(uint32_t peer, bool isSend, void *data, size_t bytes,
                       const char *what) {
  ah_request request = {};
  request.peer = peer;
  request.is_send = isSend;
  request.tag = ah_tag(AH_TAG_DATA, 0, 0);
  request.data = data;
  request.bytes = bytes;
  request.what = what;
  request.microbatch = -1;
  return request;
}

ah_status Rank::transfer(uint32_t peer, bool isSend, void *data, size_t bytes,
                         const char *what) {
  ah_request request = start(peer, isSend, data, bytes, what);
  ah_status status = table->start(comm, &request);
  return status == AH_IN_PROGRESS ? table->wait(comm, &request) : status;
}

static int runRank(const RanksOptions &options, uint32_t rank, SharedJob &job,
                   const std::function<int(Rank &)> &body) {
  if (options.transports)
    setenv("UCX_TLS", options.transports, 1);
  SharedWatch watch(job);
  UcxOptions ucx;
  ucx.rank = rank;
  ucx.worldSize = options.worldSize;
  ucx.stall_timeout_s = options.stall_timeout_s;
  ucx.checkMessages = options.checkMessages;
  ucx.watch = &watch;
  if (options.link.latency_s > 0)
    ucx.links.assign(options.worldSize, options.link);
  ah_comm *comm = nullptr;
  std::string address;
  if (openUcx(ucx, comm, address) != AH_OK ||
      address.size() > sizeof(job.addresses[0].text)) {
    fprintf(stderr, "%s\n", ah_last_error());
    return 99;
  }
  std::memcpy(job.addresses[rank].text, address.data(), address.size());
  job.addresses[rank].bytes = address.size();
  std::vector<std::string> all(options.worldSize);
  for (uint32_t i = 0; i < options.worldSize; ++i) {
    while (!job.addresses[i].bytes)
      usleep(1000);
    all[i].assign(job.addresses[i].text, job.addresses[i].bytes);
  }
  connectUcx(comm, std::move(all));
  Rank self{rank, &job, &ucxTable(), comm};
  int status = body(self);
  ucxTable().destroy(comm);
  return status;
}

std::vector<int> test::runRanks(const RanksOptions &options,
                                const std::function<int(Rank &)> &body) {
  void *memory = mmap(nullptr, sizeof(SharedJob), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto *job = new (memory) SharedJob();
  std::vector<pid_t> pids;
  for (uint32_t rank = 0; rank < options.worldSize; ++rank) {
    pids.push_back(fork());
    if (pids.back() == 0)
      _exit(runRank(options, rank, *job, body));
  }
  std::vector<int> statuses(options.worldSize);
  for (uint32_t left = options.worldSize; left; --left) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, 0);
    for (uint32_t rank = 0; rank < options.worldSize; ++rank)
      if (pids[rank] == pid) {
        statuses[rank] =
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (WIFSIGNALED(status))
          job->died = rank + 1;
      }
  }
  munmap(memory, sizeof(SharedJob));
  return statuses;
}
