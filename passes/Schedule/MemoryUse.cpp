//===- MemoryUse.cpp - what a program's memory is for ---------------------===//
//
// For people who ask where it went, and for the planner, whose estimates are
// corrected by it.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Schedule/MemoryUse.h"
#include "Liveness.h"
#include "autohet/Passes/Schedule/Passes.h"
#include "autohet/Support/Quantity.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace autohet;

namespace {

enum class Use { Activation, Message, Scratch };

Use useOf(exec::BufferOp buffer) {
  if (buffer.getName() == kScratchBuffer)
    return Use::Scratch;
  // A receive touches only what it receives into.
  bool isReceived = llvm::any_of(buffer->getUsers(), [](Operation *user) {
    return isa<exec::RecvOp>(user);
  });
  return isReceived ? Use::Message : Use::Activation;
}

/// Bytes of each use.
using Bytes = std::array<int64_t, 3>;
int64_t sumOf(const Bytes &bytes) { return bytes[0] + bytes[1] + bytes[2]; }

/// What is alive while most is, and when that is.
struct Peak {
  Bytes bytes = {};
  int64_t command = 0; ///< of the computing stream
};

int64_t sizeOf(exec::BufferOp buffer) {
  return buffer.getSlotStride() * int64_t(buffer.getSlots());
}

Peak peakOf(exec::ProgramOp program, Liveness &lives) {
  // What begins with each command, and what has ended with the one before.
  std::vector<Bytes> changes(lives.commandCount() + 1);
  for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
    if (buffer.getSpace() != exec::Space::arena)
      continue;
    const Life &life = lives[buffer];
    int64_t bytes = sizeOf(buffer);
    auto use = unsigned(useOf(buffer));
    if (life.always) {
      changes.front()[use] += bytes;
      continue;
    }
    for (const Interval &interval : life.intervals) {
      changes[interval.first][use] += bytes;
      changes[interval.last + 1][use] -= bytes;
    }
  }
  Bytes alive = {};
  Peak peak;
  for (auto [command, change] : llvm::enumerate(changes)) {
    for (auto [bytes, more] : llvm::zip_equal(alive, change))
      bytes += more;
    if (sumOf(alive) > sumOf(peak.bytes))
      peak = {alive, int64_t(command)};
  }
  return peak;
}

} // namespace

MemoryUse autohet::memoryUse(exec::ProgramOp program) {
  ArrayRef<int64_t> spaces = *program.getSpaceBytes();
  auto bytesOf = [&](exec::Space space) { return spaces[unsigned(space)]; };
  MemoryUse use;
  use.parameters = bytesOf(exec::Space::parameter);
  use.gradients = bytesOf(exec::Space::gradient);
  use.states = bytesOf(exec::Space::state);
  use.constants = bytesOf(exec::Space::constant) + bytesOf(exec::Space::scalar);
  Liveness lives(program);
  Bytes peak = peakOf(program, lives).bytes;
  use.activations = peak[unsigned(Use::Activation)];
  use.messages = peak[unsigned(Use::Message)];
  use.scratch = peak[unsigned(Use::Scratch)];
  use.gaps = bytesOf(exec::Space::arena) - sumOf(peak);
  return use;
}

std::vector<HeldTensor> autohet::tensorsAtPeak(exec::ProgramOp program) {
  Liveness lives(program);
  int64_t command = peakOf(program, lives).command;
  std::vector<HeldTensor> held;
  for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
    if (buffer.getWhole())
      continue; // counted there
    StringRef what = exec::stringifySpace(buffer.getSpace());
    if (buffer.getSpace() == exec::Space::arena) {
      const Life &life = lives[buffer];
      if (!life.always &&
          llvm::none_of(life.intervals, [&](const Interval &interval) {
            return interval.first <= command && command <= interval.last;
          }))
        continue;
      Use use = useOf(buffer);
      what = use == Use::Activation ? "activation"
             : use == Use::Message  ? "message"
                                    : "scratch";
    }
    held.push_back({buffer.getName().str(), what.str(), sizeOf(buffer)});
  }
  llvm::sort(held, [](const HeldTensor &a, const HeldTensor &b) {
    return a.bytes != b.bytes
               ? a.bytes > b.bytes
               : std::tie(a.name, a.what) < std::tie(b.name, b.what);
  });
  return held;
}

std::string
autohet::formatMemoryUse(ModuleOp programs,
                         llvm::function_ref<double(StringRef)> limit) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto row = [&](auto &&...cells) {
    os << llvm::formatv("{0,-12}{1,12}{2,12}{3,12}{4,12}{5,12}{6,12}{7,12}"
                        "{8,12}{9,12}  {10}\n",
                        cells...);
  };
  row("memory", "parameters", "gradients", "state", "constants", "activations",
      "messages", "scratch", "gaps", "total", "");
  SmallVector<exec::ProgramOp> byRank(programs.getOps<exec::ProgramOp>());
  llvm::sort(byRank, [](exec::ProgramOp a, exec::ProgramOp b) {
    return a.getRank() < b.getRank();
  });
  auto bytes = [](int64_t count) {
    return formatQuantity(double(count), Dimension::Bytes);
  };
  for (exec::ProgramOp program : byRank) {
    MemoryUse use = memoryUse(program);
    std::string ofLimit;
    if (double all = limit(program.getSymName()))
      ofLimit = llvm::formatv("{0:P0} of {1}", double(use.total()) / all,
                              formatQuantity(all, Dimension::Bytes));
    row(program.getSymName(), bytes(use.parameters), bytes(use.gradients),
        bytes(use.states), bytes(use.constants), bytes(use.activations),
        bytes(use.messages), bytes(use.scratch), bytes(use.gaps),
        bytes(use.total()), ofLimit);
  }
  return text;
}
