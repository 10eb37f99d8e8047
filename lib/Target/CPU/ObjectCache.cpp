//===- ObjectCache.cpp - compiled kernels by content hash -----------------===//
//
// A file of the cache is a magic word, the symbol, the scratch size, the
// object, and a checksum: a torn or foreign file is a miss, not a crash.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/ObjectCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace autohet::cpu;

namespace {

constexpr StringLiteral kMagic = "AHKC0001";

void append64(std::string &out, uint64_t value) {
  char bytes[8];
  support::endian::write64le(bytes, value);
  out.append(bytes, sizeof(bytes));
}

bool take64(StringRef &in, uint64_t &value) {
  if (in.size() < 8)
    return false;
  value = support::endian::read64le(in.data());
  in = in.drop_front(8);
  return true;
}

bool takeString(StringRef &in, std::string &value) {
  uint64_t size;
  if (!take64(in, size) || in.size() < size)
    return false;
  value = in.take_front(size).str();
  in = in.drop_front(size);
  return true;
}

std::string serialize(const KernelObject &kernel) {
  std::string payload;
  append64(payload, kernel.scratchBytes);
  append64(payload, kernel.symbol.size());
  payload += kernel.symbol;
  append64(payload, kernel.object.size());
  payload += kernel.object;
  std::string file = kMagic.str();
  append64(file, xxh3_64bits(StringRef(payload)));
  return file + payload;
}

std::optional<KernelObject> deserialize(StringRef file) {
  uint64_t checksum, scratch;
  if (!file.consume_front(kMagic) || !take64(file, checksum) ||
      checksum != xxh3_64bits(file))
    return std::nullopt;
  KernelObject kernel;
  if (!take64(file, scratch) || !takeString(file, kernel.symbol) ||
      !takeString(file, kernel.object))
    return std::nullopt;
  kernel.scratchBytes = scratch;
  return kernel;
}

SmallString<128> pathOf(StringRef folder, StringRef key) {
  SmallString<128> path(folder);
  sys::path::append(path, key + ".kernel");
  return path;
}

} // namespace

std::optional<KernelObject> ObjectCache::lookup(StringRef key) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = entries.find(key);
    if (found != entries.end())
      return found->second;
  }
  if (folder.empty())
    return std::nullopt;
  auto file = MemoryBuffer::getFile(pathOf(folder, key), /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  std::optional<KernelObject> kernel = deserialize((*file)->getBuffer());
  if (kernel) {
    std::lock_guard<std::mutex> lock(mutex);
    entries[key] = *kernel;
  }
  return kernel;
}

void ObjectCache::insert(StringRef key, const KernelObject &kernel) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    entries[key] = kernel;
  }
  if (folder.empty() || sys::fs::create_directories(folder))
    return;
  // Written under another name and renamed: readers see all of it or nothing.
  SmallString<128> path = pathOf(folder, key), temporary;
  int descriptor;
  if (sys::fs::createUniqueFile(path + ".%%%%%%%%", descriptor, temporary))
    return;
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << serialize(kernel);
  stream.close();
  bool failed = stream.has_error();
  stream.clear_error();
  if (failed || sys::fs::rename(temporary, path))
    sys::fs::remove(temporary);
}
