//===- InputFile.cpp - any file that a user names, in bounds --------------===//

#include "autohet/Support/InputFile.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace autohet {
namespace {

// A pipe of `<(command)` has its writer before it is opened; a named one may
// wait for it a moment.
constexpr int waitForWriter_ms = 2000;

llvm::Error systemError() {
  return llvm::createStringError("cannot read: " +
                                 llvm::Twine(strerror(errno)));
}

/// Reads what comes until its end.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readStream(int descriptor, llvm::StringRef path, uint64_t mostBytes) {
  constexpr int patience_ms = 50;
  std::vector<char> bytes;
  for (int waited_ms = 0;;) {
    constexpr size_t pieceBytes = 1 << 16;
    size_t done = bytes.size();
    if (done > mostBytes)
      return llvm::createStringError(
          "cannot read: it does not end within " +
          formatQuantity(double(mostBytes), Dimension::Bytes));
    bytes.resize(done + pieceBytes);
    ssize_t count = read(descriptor, bytes.data() + done, pieceBytes);
    bytes.resize(done + (count > 0 ? count : 0));
    if (count > 0 || (count < 0 && errno == EINTR))
      continue;
    pollfd ready = {descriptor, POLLIN, 0};
    if (count < 0 && errno == EAGAIN) {
      poll(&ready, 1, -1); // somebody is about to write
      continue;
    }
    if (count < 0)
      return systemError();
    struct stat about;
    bool isPipe = fstat(descriptor, &about) == 0 && S_ISFIFO(about.st_mode);
    if (!bytes.empty() || !isPipe)
      break;
    if (waited_ms >= waitForWriter_ms)
      return llvm::createStringError(
          "cannot read: it is a pipe, and nobody writes to it");
    poll(nullptr, 0, patience_ms);
    waited_ms += patience_ms;
  }
  return llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(bytes.data(), bytes.size()), path);
}

} // namespace

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInputFile(llvm::StringRef path, uint64_t mostBytes) {
  int descriptor = open(path.str().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return systemError();
  auto closed = llvm::scope_exit([&] { close(descriptor); });
  struct stat about;
  if (fstat(descriptor, &about) != 0)
    return systemError();
  if (S_ISDIR(about.st_mode))
    return llvm::createStringError("cannot read: it is a folder");
  // Those of /proc say that they are empty.
  if (!S_ISREG(about.st_mode) || about.st_size == 0)
    return readStream(descriptor, path,
                      S_ISFIFO(about.st_mode)
                          ? mostBytes
                          : std::min(mostBytes, kMostTextBytes));
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      descriptor, path, about.st_size, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return llvm::createStringError("cannot read: " +
                                   buffer.getError().message());
  return std::move(*buffer);
}

} // namespace autohet
