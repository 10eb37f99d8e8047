//===- FuzzPlan.cpp - any text as a plan, a unit table, an assignment -----===//
//
// What is read is written and read again: the second text must equal the first.
//
//===----------------------------------------------------------------------===//

#include "autohet/Plan/Plan.h"

#include <cstdlib>

using namespace autohet;

template <typename Value, typename Parse, typename Format>
static void roundTrip(llvm::StringRef text, Parse parse, Format format) {
  llvm::Expected<Value> first = parse(text);
  if (!first) {
    if (llvm::toString(first.takeError()).empty())
      abort();
    return;
  }
  std::string written = format(*first);
  llvm::Expected<Value> second = parse(written);
  if (!second || format(*second) != written)
    abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  roundTrip<Plan>(
      text, [](llvm::StringRef text) { return parsePlan(text, "plan.json"); },
      formatPlan);
  roundTrip<UnitTable>(
      text,
      [](llvm::StringRef text) { return parseUnitTable(text, "units.json"); },
      formatUnitTable);
  roundTrip<std::vector<Replica>>(text, parseStageAssignment,
                                  formatStageAssignment);
  return 0;
}
