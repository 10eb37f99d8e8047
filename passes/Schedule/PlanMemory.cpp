//===- PlanMemory.cpp - a place for every buffer ----------------------------===//
//
// Static memory planning: the arena is shared by liveness, everything else lies
// one after the other. Placement is greedy by size (largest first, lowest free
// place), which is within a few per cent of the peak of live bytes on
// transformer steps; memoryUse() tells both figures.
//
//===----------------------------------------------------------------------===//

#include "Liveness.h"
#include "autohet/Passes/Schedule/Passes.h"

namespace autohet {
#define GEN_PASS_DEF_PLANMEMORY
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

struct PlanMemory : autohet::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      plan(program);
  }

  void plan(exec::ProgramOp program) {
    SmallVector<int64_t> bytes(exec::getMaxEnumValForSpace() + 1, 0);
    SmallVector<exec::BufferOp> arena;
    for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
      if (buffer.getSpace() == exec::Space::arena) {
        arena.push_back(buffer);
        continue;
      }
      int64_t &end = bytes[unsigned(buffer.getSpace())];
      if (!buffer.getOffset()) // scalars have theirs from the start
        buffer.setOffset(end);
      end =
          std::max<int64_t>(end, *buffer.getOffset() + buffer.getSlotStride() *
                                                           buffer.getSlots());
    }
    bytes[unsigned(exec::Space::arena)] = placeArena(program, arena);
    program.setSpaceBytes(bytes);
  }

  /// Returns the arena's size.
  int64_t placeArena(exec::ProgramOp program,
                     ArrayRef<exec::BufferOp> buffers) {
    Liveness lives(program);
    struct Sized {
      int64_t size, number;
      exec::BufferOp buffer;
      bool always;
    };
    // What always lives leaves gaps to nobody, so it comes first. Equal sizes
    // in the order of declaration: the plan is a function of the program.
    std::vector<Sized> bySize;
    for (auto [number, buffer] : llvm::enumerate(buffers)) {
      exec::BufferOp op = buffer;
      bySize.push_back({op.getSlotStride() * int64_t(op.getSlots()),
                        int64_t(number), op, lives[op].always});
    }
    llvm::sort(bySize, [&](const Sized &a, const Sized &b) {
      if (a.always != b.always)
        return a.always;
      return a.size != b.size ? a.size > b.size : a.number < b.number;
    });

    struct Placed {
      int64_t begin, end;
      Life *life;
    };
    std::vector<Placed> placed; // by begin
    int64_t total = 0;
    for (auto [size, number, buffer, always] : bySize) {
      Life &life = lives[buffer];
      int64_t at = 0;
      // Placed buffers come in rising order: the first gap that is wide enough.
      for (const Placed &other : placed) {
        if (!life.overlaps(*other.life))
          continue;
        if (at + size <= other.begin)
          break;
        at = std::max(at, other.end);
      }
      buffer.setOffset(at);
      total = std::max(total, at + size);
      Placed entry{at, at + size, &life};
      placed.insert(llvm::upper_bound(placed, entry,
                                      [](const Placed &a, const Placed &b) {
                                        return a.begin < b.begin;
                                      }),
                    entry);
    }
    return total;
  }
};

} // namespace
