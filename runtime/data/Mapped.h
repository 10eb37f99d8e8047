//===- Mapped.h - a file mapped for reading ----------------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DATA_MAPPED_H
#define AUTOHET_RUNTIME_DATA_MAPPED_H

#include <cstdint>
#include <string>

namespace autohet::runtime {

/// Read-only memory of a whole file. Its size is taken once: a file that
/// shrinks while it is mapped is beyond help.
class MappedFile {
public:
  MappedFile() = default;
  /// Throws AH_ERROR_NOT_FOUND or AH_ERROR_SYSTEM with the path.
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept { swap(other); }
  MappedFile &operator=(MappedFile &&other) noexcept {
    swap(other);
    return *this;
  }

  const std::string &path() const { return name; }
  const char *data() const { return memory; }
  uint64_t size() const { return bytes; }
  /// Gives the memory of some bytes back; they are read again when asked for.
  void release(uint64_t offset, uint64_t count) const;

private:
  void swap(MappedFile &other) noexcept;

  std::string name;
  const char *memory = nullptr;
  uint64_t bytes = 0;
};

/// Writes a file under a temporary name and gives it its own name only when all
/// of it is on disk: nobody ever sees half a file.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(const void *data, uint64_t size);
  void commit();

private:
  [[noreturn]] void failed(const char *what);

  std::string path, temporary;
  int descriptor = -1;
};

/// Throws what an AtomicFile of that path would, and leaves nothing behind.
void checkWritable(const std::string &path);
/// The same for a file that is opened and written to; its content stays.
void checkOpens(const std::string &path);

} // namespace autohet::runtime

#endif
