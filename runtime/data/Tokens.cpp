//===- Tokens.cpp - tokenised text and the order of its samples -------------===//

#include "data/Tokens.h"

#include "autohet/runtime/random.h"
#include "core/Error.h"
#include "core/Program.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace autohet::runtime {

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

TokenFile::TokenFile(const std::string &path, const std::string &dtypeText) {
  bool isBin = endsWith(path, ".bin");
  std::string stem =
      isBin || endsWith(path, ".idx") ? path.substr(0, path.size() - 4) : path;
  // A .bin beside its .idx is Megatron's, whose index knows the dtype.
  if (access((stem + ".idx").c_str(), R_OK) != 0) {
    openRaw(path, dtypeText);
    return;
  }
  openMegatron(stem);
  if (!dtypeText.empty() && dtypeText != dtypeName(dtype))
    fail(AH_ERROR_INPUT,
         "'%s.idx' says that its tokens are %s, --data-dtype says %s",
         stem.c_str(), dtypeName(dtype), dtypeText.c_str());
}

const char *TokenFile::dtypeText() const { return dtypeName(dtype); }

void TokenFile::openRaw(const std::string &path, const std::string &dtypeText) {
  bin = MappedFile(path);
  if (dtypeText.empty())
    fail(AH_ERROR_INPUT,
         "'%s' is raw data: say --data-dtype=uint8|uint16|int32|int64 "
         "(a dtype is never guessed)",
         path.c_str());
  for (dtype = 0; dtype <= AH_BOOL; ++dtype)
    if (dtypeText == dtypeName(dtype))
      break;
  bool isInteger = dtype >= AH_I8 && dtype <= AH_I64;
  if (!isInteger)
    fail(AH_ERROR_INPUT,
         "--data-dtype='%s'; known: int8, uint8, int16, uint16, int32, int64",
         dtypeText.c_str());
  if (bin.size() % dtypeBytes(dtype) != 0)
    fail(AH_ERROR_INPUT,
         "'%s' has %llu bytes, which are no whole number of %s tokens",
         path.c_str(), (unsigned long long)bin.size(), dtypeText.c_str());
  count = bin.size() / dtypeBytes(dtype);
  firstToken = {0, count};
  firstByte = {0};
}

// MMIDIDX\0\0, u64 version 1, u8 dtype, u64 sequences, u64 documents, then i32
// lengths, i64 byte pointers, i64 documents.
void TokenFile::openMegatron(const std::string &stem) {
  MappedFile index(stem + ".idx");
  auto wrong = [&](const std::string &what) {
    fail(AH_ERROR_INPUT, "'%s': %s", index.path().c_str(), what.c_str());
  };
  constexpr uint64_t headerBytes = 9 + 8 + 1 + 8 + 8;
  if (index.size() < headerBytes || memcmp(index.data(), "MMIDIDX\0\0", 9) != 0)
    wrong("not a Megatron index (MMIDIDX)");
  auto read64 = [&](uint64_t offset) {
    uint64_t value;
    memcpy(&value, index.data() + offset, 8);
    return value;
  };
  if (read64(9) != 1)
    wrong(format("version %llu, wanted 1", (unsigned long long)read64(9)));
  static const uint8_t dtypes[] = {0,      AH_U8, AH_I8, AH_I16, AH_I32,
                                   AH_I64, 0,     0,     AH_U16};
  uint8_t code = index.data()[17];
  if (code == 0 || code > 8 || code == 6 || code == 7)
    wrong(format("dtype code %u is none of integers (1 to 5, 8)", code));
  dtype = dtypes[code];
  uint64_t sequences = read64(18), documents = read64(26);
  uint64_t left = index.size() - headerBytes;
  if (sequences > left / 12 || documents > left / 8 ||
      sequences * 12 + documents * 8 != left)
    wrong(format("%llu sequences and %llu documents do not make %llu bytes",
                 (unsigned long long)sequences, (unsigned long long)documents,
                 (unsigned long long)index.size()));
  bin = MappedFile(stem + ".bin");
  firstToken.push_back(0);
  for (uint64_t sequence = 0; sequence < sequences; ++sequence) {
    int32_t length;
    memcpy(&length, index.data() + headerBytes + 4 * sequence, 4);
    uint64_t byte = read64(headerBytes + 4 * sequences + 8 * sequence);
    if (length < 0 || byte > bin.size() ||
        uint64_t(length) * dtypeBytes(dtype) > bin.size() - byte)
      wrong(format("sequence %llu (%d tokens from byte %llu) is outside '%s' "
                   "of %llu bytes",
                   (unsigned long long)sequence, length,
                   (unsigned long long)byte, bin.path().c_str(),
                   (unsigned long long)bin.size()));
    firstByte.push_back(byte);
    firstToken.push_back(firstToken.back() + length);
  }
  count = firstToken.back();
}

uint64_t TokenFile::largestId() const {
  switch (dtype) {
  case AH_I8:
    return INT8_MAX;
  case AH_U8:
    return UINT8_MAX;
  case AH_I16:
    return INT16_MAX;
  case AH_U16:
    return UINT16_MAX;
  case AH_I32:
    return INT32_MAX;
  default:
    return INT64_MAX;
  }
}

template <typename T>
static void widen(const char *from, uint64_t number, int64_t *to) {
  for (uint64_t i = 0; i < number; ++i) {
    T value;
    memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = value;
  }
}

void TokenFile::convert(uint64_t byte, uint64_t number, int64_t *to) const {
  const char *from = bin.data() + byte;
  switch (dtype) {
  case AH_I8:
    return widen<int8_t>(from, number, to);
  case AH_U8:
    return widen<uint8_t>(from, number, to);
  case AH_I16:
    return widen<int16_t>(from, number, to);
  case AH_U16:
    return widen<uint16_t>(from, number, to);
  case AH_I32:
    return widen<int32_t>(from, number, to);
  default:
    return widen<int64_t>(from, number, to);
  }
}

void TokenFile::read(uint64_t begin, uint64_t number, int64_t *to) const {
  size_t sequence =
      std::upper_bound(firstToken.begin(), firstToken.end(), begin) -
      firstToken.begin() - 1;
  while (number > 0) {
    uint64_t skip = begin - firstToken[sequence];
    uint64_t here = std::min(number, firstToken[sequence + 1] - begin);
    convert(firstByte[sequence] + skip * dtypeBytes(dtype), here, to);
    begin += here;
    to += here;
    number -= here;
    ++sequence;
  }
}

// A permutation of [0, windows) without a table: a Feistel network of four
// rounds permutes the next power of four, and what falls outside walks on until
// inside.
uint64_t SampleOrder::window(uint64_t sample) const {
  uint64_t epoch = sample / windows, position = sample % windows;
  if (!shuffled || windows < 2)
    return position;
  unsigned halfBits = 1;
  while ((uint64_t(1) << (2 * halfBits)) < windows)
    ++halfBits;
  uint64_t mask = (uint64_t(1) << halfBits) - 1;
  do {
    uint64_t left = position >> halfBits, right = position & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      ah_random draw = ah_philox(seed ^ (epoch * 0x9E3779B97F4A7C15ull), right,
                                 AH_RANDOM_ORDER, round);
      uint64_t next =
          left ^ ((uint64_t(draw.word[1]) << 32 | draw.word[0]) & mask);
      left = right;
      right = next;
    }
    position = left << halfBits | right;
  } while (position >= windows);
  return position;
}

} // namespace autohet::runtime
