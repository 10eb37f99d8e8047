//===- JobPage.cpp - memory of a supervisor and its workers ---------------===//

#include "supervisor/JobPage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace autohet::runtime;

JobPage::~JobPage() {
  if (header)
    munmap(header, bytes);
  if (memoryFd >= 0)
    close(memoryFd);
}

ah_status JobPage::map(uint32_t worldSize, uint32_t localRanks) {
  static_assert(sizeof(Header) % 8 == 0 && sizeof(ah_board) % 8 == 0 &&
                    sizeof(RankState) % 8 == 0,
                "the parts follow each other without gaps");
  bytes = sizeof(Header) + localRanks * sizeof(ah_board) +
          worldSize * sizeof(RankState);
  // All zero is the right beginning of every part.
  if (memoryFd < 0) {
    memoryFd = memfd_create("autohet-job", MFD_CLOEXEC);
    if (memoryFd < 0 || ftruncate(memoryFd, bytes) != 0)
      return ah_fail(AH_ERROR_SYSTEM, "cannot make shared memory: %s",
                     strerror(errno));
  }
  void *memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memoryFd, 0);
  if (memory == MAP_FAILED)
    return ah_fail(AH_ERROR_SYSTEM, "cannot map shared memory: %s",
                   strerror(errno));
  header = static_cast<Header *>(memory);
  boards = reinterpret_cast<ah_board *>(header + 1);
  ranks = reinterpret_cast<RankState *>(boards + localRanks);
  return AH_OK;
}

ah_status JobPage::create(uint32_t worldSize, uint32_t firstRank,
                          uint32_t localRanks) {
  if (ah_status status = map(worldSize, localRanks))
    return status;
  header->worldSize = worldSize;
  header->firstRank = firstRank;
  header->localRanks = localRanks;
  return AH_OK;
}

ah_status JobPage::attach(int fd) {
  memoryFd = fd;
  Header start;
  if (pread(fd, static_cast<void *>(&start), sizeof(start), 0) !=
      static_cast<ssize_t>(sizeof(start)))
    return ah_fail(AH_ERROR_SYSTEM, "the supervisor's memory is gone: %s",
                   strerror(errno));
  return map(start.worldSize, start.localRanks);
}

void JobPage::setFailure(const std::string &reason) {
  size_t length = std::min(reason.size(), sizeof(header->reason) - 1);
  std::memcpy(header->reason, reason.data(), length);
  header->failed = 1;
}

bool JobPage::hasFailed(std::string &reason) const {
  if (!header->failed)
    return false;
  reason = header->reason;
  return true;
}
