//===- Mapped.cpp - files, read whole and written whole ---------------------===//

#include "data/Mapped.h"

#include "core/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace autohet::runtime {

MappedFile::MappedFile(const std::string &path) : name(path) {
  // What is no file is refused: a pipe without a writer would be waited for.
  int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    fail(errno == ENOENT ? AH_ERROR_NOT_FOUND : AH_ERROR_SYSTEM,
         "cannot open '%s': %s", path.c_str(), strerror(errno));
  struct stat status;
  bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (regular && status.st_size > 0) {
    void *mapped =
        mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped != MAP_FAILED) {
      memory = static_cast<const char *>(mapped);
      bytes = status.st_size;
    }
  }
  int error = errno;
  close(descriptor);
  if (!regular)
    fail(AH_ERROR_INPUT, "'%s' is not a regular file", path.c_str());
  if (status.st_size > 0 && !memory)
    fail(AH_ERROR_SYSTEM, "cannot map '%s': %s", path.c_str(), strerror(error));
}

MappedFile::~MappedFile() {
  if (memory)
    munmap(const_cast<char *>(memory), bytes);
}

void MappedFile::release(uint64_t offset, uint64_t count) const {
  uint64_t page = sysconf(_SC_PAGESIZE);
  uint64_t begin = offset / page * page;
  // That the kernel does not want to is no error: memory stays as it is.
  madvise(const_cast<char *>(memory) + begin, offset + count - begin,
          MADV_DONTNEED);
}

void MappedFile::swap(MappedFile &other) noexcept {
  std::swap(name, other.name);
  std::swap(memory, other.memory);
  std::swap(bytes, other.bytes);
}

/// Where the bytes of `path` belong: a link stays, what it points to is
/// replaced. Renaming over anything but a file (a device, a pipe) would destroy
/// it.
static std::string placeOf(const std::string &path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return path;
  if (!S_ISREG(about.st_mode))
    fail(AH_ERROR_INPUT, "cannot write '%s': it is there and no regular file",
         path.c_str());
  std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr),
                                              free);
  return real ? real.get() : path;
}

AtomicFile::AtomicFile(const std::string &path)
    : path(placeOf(path)),
      temporary(this->path + ".tmp." + std::to_string(getpid())) {
  descriptor =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    fail(AH_ERROR_SYSTEM, "cannot create '%s': %s", path.c_str(),
         strerror(errno));
}

void checkWritable(const std::string &path) { AtomicFile attempt(path); }

void checkOpens(const std::string &path) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0)
    return checkWritable(path);
  // Where nobody reads from a pipe, a run would wait for that when it writes.
  if (S_ISFIFO(about.st_mode)) {
    int pipe = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (pipe < 0)
      fail(AH_ERROR_SYSTEM, "cannot write '%s': %s", path.c_str(),
           errno == ENXIO ? "it is a pipe, and nobody reads from it"
                          : strerror(errno));
    close(pipe);
    return;
  }
  if (S_ISDIR(about.st_mode))
    errno = EISDIR;
  else if (access(path.c_str(), W_OK) == 0)
    return;
  fail(AH_ERROR_SYSTEM, "cannot write '%s': %s", path.c_str(), strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) {
    close(descriptor);
    unlink(temporary.c_str());
  }
}

void AtomicFile::failed(const char *what) {
  ah_status status =
      errno == ENOSPC || errno == EDQUOT ? AH_ERROR_NO_SPACE : AH_ERROR_SYSTEM;
  fail(status, "cannot %s '%s': %s", what, path.c_str(), strerror(errno));
}

void AtomicFile::write(const void *data, uint64_t size) {
  const char *from = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t written =
        ::write(descriptor, from, size < (1u << 30) ? size : (1u << 30));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      failed("write");
    from += written;
    size -= written;
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor) != 0)
    failed("write");
  int closing = std::exchange(descriptor, -1);
  if (close(closing) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    int error = errno;
    unlink(temporary.c_str());
    errno = error;
    failed("finish");
  }
  // The name, too, has to survive a power cut.
  size_t slash = path.rfind('/');
  std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    fsync(directory);
    close(directory);
  }
}

} // namespace autohet::runtime
