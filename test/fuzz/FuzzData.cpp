//===- FuzzData.cpp - any bytes as what a run reads -----------------------===//
//
// Tensors, token data, the weights index and a checkpoint's manifest. Readers
// map files: every byte that a header claims is touched, so that a wrong bound
// is a crash here and not a wrong number there.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"

#include "checkpoint/Checkpoint.h"
#include "core/Error.h"
#include "data/Safetensors.h"
#include "data/Tokens.h"
#include "data/Weights.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace autohet::runtime;

/// The reader's own errors are answers; any other exception is a fault.
template <typename Read>
static void attempt(Read read) {
  try {
    read();
  } catch (const Error &error) {
    if (!*error.what())
      abort();
  }
}

/// Megatron's index beside a file of a few tokens, in a folder of this process.
static std::string asMegatronIndex(const uint8_t *data, size_t size) {
  static const std::string stem = [] {
    static char folder[] = "/tmp/autohet-fuzz-XXXXXX";
    if (!mkdtemp(folder))
      abort();
    std::atexit([] { std::filesystem::remove_all(folder); });
    std::ofstream(std::string(folder) + "/text.bin") << std::string(256, '\1');
    return std::string(folder) + "/text";
  }();
  std::ofstream(stem + ".idx", std::ios::binary)
      .write(reinterpret_cast<const char *>(data), size);
  return stem;
}

static void readTokens(const std::string &path, const char *dtype) {
  TokenFile tokens(path, dtype);
  std::vector<int64_t> ids(std::min<uint64_t>(tokens.size(), 1 << 16));
  tokens.read(tokens.size() - ids.size(), ids.size(), ids.data());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzFile file(data, size);
  volatile char sum = 0;
  attempt([&] {
    SafetensorsFile tensors(file.path());
    for (const TensorInfo &tensor : tensors.tensors())
      for (uint64_t i = 0; i < tensor.bytes; ++i)
        sum = sum + tensors.data(tensor)[i];
  });
  attempt([&] { readTokens(file.path(), "uint16"); });
  attempt([&] { readTokens(asMegatronIndex(data, size), ""); });
  attempt([&] { WeightsIndex index(file.path()); });
  attempt([&] { CheckpointManifest::read(file.path()); });
  return 0;
}
