//===- Tokens.h - tokenised text and the order of its samples ----*- C++ -*-===//

#ifndef AUTOHET_RUNTIME_DATA_TOKENS_H
#define AUTOHET_RUNTIME_DATA_TOKENS_H

#include "data/Mapped.h"

#include <string>
#include <vector>

namespace autohet::runtime {

/// A stream of token ids: a raw file of one dtype, or Megatron's .idx and .bin,
/// whose sequences follow one another in the order of the index.
class TokenFile {
public:
  /// `dtype` as dtypeName spells it; empty for Megatron's, whose index says it.
  TokenFile(const std::string &path, const std::string &dtype);

  uint64_t size() const { return count; }
  /// Tokens [begin, begin + number), widened.
  void read(uint64_t begin, uint64_t number, int64_t *to) const;
  const std::string &path() const { return bin.path(); }
  const char *dtypeText() const;
  /// The largest id that the dtype can hold.
  uint64_t largestId() const;

private:
  void openMegatron(const std::string &stem);
  void openRaw(const std::string &path, const std::string &dtypeText);
  void convert(uint64_t byte, uint64_t number, int64_t *to) const;

  MappedFile bin;
  uint8_t dtype = 0;
  uint64_t count = 0;
  // Of Megatron's sequences: first token number and first byte of each.
  std::vector<uint64_t> firstToken, firstByte;
};

/// Which window of the data a sample is: a function of (seed, number of the
/// sample since the start of training) alone, so that neither the number of
/// workers nor a restart changes it.
class SampleOrder {
public:
  SampleOrder(uint64_t windows, uint64_t seed, bool shuffled)
      : windows(windows), seed(seed), shuffled(shuffled) {}
  uint64_t window(uint64_t sample) const;

private:
  uint64_t windows, seed;
  bool shuffled;
};

} // namespace autohet::runtime

#endif
