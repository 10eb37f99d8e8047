//===- Checksum.h - XXH64 ----------------------------------------*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DATA_CHECKSUM_H
#define AUTOHET_RUNTIME_DATA_CHECKSUM_H

#include <cstdint>
#include <string>

namespace autohet::runtime {

/// XXH64 with seed 0, as llvm::xxHash64: what the compiler writes beside
/// weights and the runtime beside checkpoints.
uint64_t checksum64(const void *data, uint64_t bytes);

/// The same of bytes that come in parts, whatever their sizes.
class Checksum {
public:
  Checksum();

  void add(const void *data, uint64_t bytes);
  /// Of all so far.
  uint64_t get() const;

private:
  static constexpr uint64_t kBlock = 32;

  void mix(const unsigned char *block);

  uint64_t lanes[4];
  uint64_t total = 0;
  unsigned char rest[kBlock]; ///< the last total % kBlock bytes
};

/// "xxh64:0123456789abcdef", as files write it.
std::string checksumText(uint64_t checksum);

} // namespace autohet::runtime

#endif
