//===- FuzzConfig.cpp - any text as a config.json -------------------------===//
//
// A config either becomes a model that can be trained or is refused by a
// diagnostic. Changes of bytes seldom leave JSON, and nearly every key that
// they make is unknown: so most changes are of whole values.
//
//===----------------------------------------------------------------------===//

#include "FuzzFile.h"

#include "autohet/Frontend/Config.h"
#include "autohet/Passes/Model/Pipeline.h"
#include "autohet/Support/Tree.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
namespace json = llvm::json;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t largest);

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

namespace {

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void change(json::Object &mapping) {
    if (mapping.empty())
      return;
    auto one = std::next(mapping.begin(), below(mapping.size()));
    if (json::Object *inner = one->second.getAsObject(); inner && below(4))
      return change(*inner);
    switch (below(8)) {
    case 0:
      mapping.erase(one);
      break;
    case 1: { // another's value, which is of another kind or does not fit
      json::Value other =
          std::next(mapping.begin(), below(mapping.size()))->second;
      one->second = std::move(other);
      break;
    }
    default:
      one->second = changed(one->second);
    }
  }

private:
  unsigned below(size_t count) { return random() % std::max<size_t>(count, 1); }

  json::Value changed(const json::Value &value) {
    if (std::optional<bool> flag = value.getAsBoolean(); flag && below(4))
      return !*flag;
    if (std::optional<double> number = value.getAsNumber();
        number && below(4)) {
      // LLVM's own limit for whole numbers is one that int64_t does not hold.
      bool mayBeCount = std::abs(*number) < 0x1p62;
      if (auto count = mayBeCount ? value.getAsInteger() : std::nullopt)
        return nearby(*count);
      return *number * (double(below(9)) - 1) / 4;
    }
    if (const json::Array *list = value.getAsArray(); list && below(4)) {
      json::Array shorter(*list);
      if (!shorter.empty())
        shorter.erase(shorter.begin() + below(shorter.size()));
      return shorter;
    }
    const json::Value others[] = {nullptr,
                                  true,
                                  0,
                                  -1,
                                  0.5,
                                  1e308,
                                  1e-308,
                                  INT64_MAX,
                                  "",
                                  "silu",
                                  "linear",
                                  json::Array({1, 2}),
                                  json::Object({{"factor", 2}})};
    return others[below(std::size(others))];
  }

  /// Mostly what still fits something: small models build in no time.
  int64_t nearby(int64_t count) {
    switch (below(8)) {
    case 0:
      return int64_t(1) << below(63);
    case 1: // may wrap around
      return int64_t(uint64_t(count) * 2);
    case 2:
      return count / 2;
    case 3:
      return int64_t(uint64_t(count) + 1);
    case 4:
      return int64_t(uint64_t(count) - 1);
    default:
      return below(17);
    }
  }

  std::mt19937 random;
};

} // namespace

/// Mostly changes of values, sometimes of bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t largest, unsigned seed) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (seed % 8 == 0 || autohet::findDeepJson(text))
    return LLVMFuzzerMutate(data, size, largest);
  llvm::Expected<json::Value> config = json::parse(text);
  json::Object *keys = config ? config->getAsObject() : nullptr;
  if (!keys) {
    llvm::consumeError(config.takeError());
    return LLVMFuzzerMutate(data, size, largest);
  }
  Mutator mutator(seed);
  for (unsigned changes = 1 + seed % 3; changes; --changes)
    mutator.change(*keys);
  std::string written;
  llvm::raw_string_ostream(written) << *config;
  if (written.size() > largest)
    return size;
  memcpy(data, written.data(), written.size());
  return written.size();
}

//===----------------------------------------------------------------------===//
// One input
//===----------------------------------------------------------------------===//

// Differentiating thousands of layers, which a config of one line may ask for,
// would say nothing new.
static constexpr unsigned kMostOps = 2000;

static void build(const std::string &path,
                  const autohet::ConfigOptions &options) {
  // A context of its own: attributes live as long as it, and would pile up.
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bool isRefused = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    isRefused |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  OwningOpRef<ModuleOp> model =
      autohet::importConfigFile(path, options, context);
  if (bool(model) == isRefused)
    abort(); // refused without a word, or taken with an error
  if (!model)
    return;
  if (failed(verify(*model)))
    abort();
  unsigned ops = 0;
  model->walk([&](Operation *) { ++ops; });
  if (ops > kMostOps)
    return;
  PassManager passes(&context);
  autohet::buildTrainingPipeline(passes, {});
  if (failed(passes.run(*model)) && !isRefused)
    abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzFile file(data, size);
  autohet::ConfigOptions options;
  options.sequence_length = 8;
  options.list_ignored = true;
  build(file.path(), options);
  // As long as the config allows, which other sizes depend on. The tables of a
  // million positions, 2^26 angles, take ten seconds with sanitizers.
  options.sequence_length = 0;
  options.shapes_only = true;
  options.padding_mask = true;
  options.dropout = false;
  build(file.path(), options);
  return 0;
}
