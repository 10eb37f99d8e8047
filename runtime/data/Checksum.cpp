//===- Checksum.cpp - XXH64 -------------------------------------------------===//
//
// The published XXH64 algorithm (xxhash.com, specification of XXH64): four
// lanes of 8 bytes, merged, then the tail. 10 GB/s, so every byte can be
// checked.
//
//===----------------------------------------------------------------------===//

#include "data/Checksum.h"

#include "core/Error.h"

#include <algorithm>
#include <cstring>

namespace autohet::runtime {

static constexpr uint64_t prime1 = 0x9E3779B185EBCA87ull;
static constexpr uint64_t prime2 = 0xC2B2AE3D27D4EB4Full;
static constexpr uint64_t prime3 = 0x165667B19E3779F9ull;
static constexpr uint64_t prime4 = 0x85EBCA77C2B2AE63ull;
static constexpr uint64_t prime5 = 0x27D4EB2F165667C5ull;

static uint64_t rotate(uint64_t value, int bits) {
  return (value << bits) | (value >> (64 - bits));
}

template <typename T>
static T read(const unsigned char *from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

static uint64_t mixLane(uint64_t lane, uint64_t input) {
  return rotate(lane + input * prime2, 31) * prime1;
}

static uint64_t mergeLane(uint64_t hash, uint64_t lane) {
  return (hash ^ mixLane(0, lane)) * prime1 + prime4;
}

Checksum::Checksum() : lanes{prime1 + prime2, prime2, 0, 0 - prime1} {}

void Checksum::mix(const unsigned char *block) {
  for (int lane = 0; lane < 4; ++lane)
    lanes[lane] = mixLane(lanes[lane], read<uint64_t>(block + 8 * lane));
}

void Checksum::add(const void *data, uint64_t bytes) {
  auto *at = static_cast<const unsigned char *>(data);
  const unsigned char *end = at + bytes;
  uint64_t held = total % kBlock;
  total += bytes;
  if (held + bytes < kBlock) {
    std::copy(at, end, rest + held);
    return;
  }
  if (held) {
    std::copy(at, at + (kBlock - held), rest + held);
    at += kBlock - held;
    mix(rest);
  }
  for (; end - at >= int64_t(kBlock); at += kBlock)
    mix(at);
  std::copy(at, end, rest);
}

uint64_t Checksum::get() const {
  const unsigned char *at = rest, *end = rest + total % kBlock;
  uint64_t hash = prime5;
  if (total >= kBlock) {
    hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) +
           rotate(lanes[3], 18);
    for (uint64_t lane : lanes)
      hash = mergeLane(hash, lane);
  }
  hash += total;
  for (; end - at >= 8; at += 8)
    hash = rotate(hash ^ mixLane(0, read<uint64_t>(at)), 27) * prime1 + prime4;
  if (end - at >= 4) {
    hash = rotate(hash ^ read<uint32_t>(at) * prime1, 23) * prime2 + prime3;
    at += 4;
  }
  for (; at != end; ++at)
    hash = rotate(hash ^ *at * prime5, 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

uint64_t checksum64(const void *data, uint64_t bytes) {
  Checksum checksum;
  checksum.add(data, bytes);
  return checksum.get();
}

std::string checksumText(uint64_t checksum) {
  return format("xxh64:%016llx", (unsigned long long)checksum);
}

} // namespace autohet::runtime
