//===- FolderLock.cpp - one run at a time saves into a folder ---------------===//
//
// flock() and not a file that is there or not: nothing is left to clean up
// after a crash. On NFS Linux turns it into a lock of the server, so that nodes
// see each other's; it wants the file open for writing there. A file system
// without locks (some FUSE and parallel ones) is said, not refused.
//
//===----------------------------------------------------------------------===//

#include "checkpoint/FolderLock.h"

#include "core/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace autohet::runtime {

/// " (process 17 on host a)", as its holder has written it; empty where it has
/// not yet.
static std::string holder(int descriptor) {
  char text[256];
  ssize_t length = pread(descriptor, text, sizeof text, 0);
  if (length <= 0)
    return "";
  std::string line(text, length);
  return " (" + line.substr(0, line.find('\n')) + ")";
}

FolderLock::FolderLock(const std::string &folder, std::string &warning) {
  std::string path = folder + "/lock";
  descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  // Another user's file in a shared folder can be locked all the same.
  if (descriptor < 0 && errno == EACCES)
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(AH_ERROR_SYSTEM, "cannot open '%s': %s", path.c_str(),
         strerror(errno));
  int status;
  do
    status = flock(descriptor, LOCK_EX | LOCK_NB);
  while (status != 0 && errno == EINTR);
  if (status != 0) {
    int error = errno;
    std::string by = error == EWOULDBLOCK ? holder(descriptor) : "";
    close(descriptor);
    if (error == EWOULDBLOCK)
      fail(AH_ERROR_INPUT,
           "another run%s saves its checkpoints in '%s': wait for its end, or "
           "give another folder",
           by.c_str(), folder.c_str());
    descriptor = -1;
    warning = format("cannot lock '%s' (%s): make sure that no other run saves "
                     "its checkpoints there",
                     path.c_str(), strerror(error));
    return;
  }
  char host[128] = "";
  gethostname(host, sizeof host - 1);
  std::string line = format("process %d on host %s\n", int(getpid()), host);
  // For the message above only: a full disk is not this line's matter.
  [[maybe_unused]] bool isWritten =
      ftruncate(descriptor, 0) == 0 &&
      pwrite(descriptor, line.data(), line.size(), 0) > 0;
}

bool FolderLock::isHeld(const std::string &folder) {
  int found = open((folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (found < 0)
    return false;
  bool isHeld = flock(found, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(found);
  return isHeld;
}

FolderLock::~FolderLock() {
  if (descriptor >= 0)
    close(descriptor);
}

} // namespace autohet::runtime
