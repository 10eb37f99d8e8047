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

#include "mlir/IR/Threading.h"

namespace autohet {
#define GEN_PASS_DEF_PLANMEMORY
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// From the first to the last command of some intervals, which rise.
Interval hullOf(ArrayRef<Interval> intervals) {
  if (intervals.empty())
    return {1, 0}; // overlaps nothing
  return {intervals.front().first, intervals.back().last};
}

/// The memory of an arena that has been given away so far. Equal buffers mostly
/// follow one another, so that there are far fewer places than buffers.
class Places {
public:
  /// The lowest place from `bottom` on that is free throughout a life.
  int64_t findRoom(int64_t bottom, int64_t size, const Life &life) const {
    Interval hull = hullOf(life.intervals);
    int64_t at = bottom;
    // Places come in rising order: the first gap that is wide enough.
    for (const Place &other : places) {
      if (other.end <= at || !other.hull.overlaps(hull) ||
          !isTaken(other, life))
        continue;
      if (at + size <= other.begin)
        break;
      at = other.end;
    }
    return at;
  }

  void add(int64_t begin, int64_t end, const Life &life) {
    auto it = llvm::partition_point(places, [&](const Place &place) {
      return std::tie(place.begin, place.end) < std::tie(begin, end);
    });
    if (it == places.end() || it->begin != begin || it->end != end) {
      it = places.insert(it, {begin, end, {}, lives.size()});
      lives.emplace_back();
    }
    SmallVectorImpl<Interval> &intervals = lives[it->number];
    for (const Interval &interval : life.intervals)
      intervals.insert(
          intervals.begin() +
              (firstEndingFrom(intervals, interval.first) - intervals.begin()),
          interval);
    it->hull = hullOf(intervals);
  }

private:
  /// Memory that several buffers have one after the other.
  struct Place {
    int64_t begin, end;
    Interval hull; ///< of its lives
    size_t number;
  };

  static const Interval *firstEndingFrom(ArrayRef<Interval> intervals,
                                         int64_t command) {
    return llvm::partition_point(intervals, [&](const Interval &interval) {
      return interval.last < command;
    });
  }

  /// Of a life whose hull overlaps the place's.
  bool isTaken(const Place &place, const Life &life) const {
    ArrayRef<Interval> taken = lives[place.number];
    if (taken.size() == 1 && life.intervals.size() == 1)
      return true;
    return llvm::any_of(life.intervals, [&](const Interval &interval) {
      const Interval *next = firstEndingFrom(taken, interval.first);
      return next != taken.end() && next->overlaps(interval);
    });
  }

  std::vector<Place> places; // by begin
  /// Of each place, rising, and apart. Places move as others come between.
  std::vector<SmallVector<Interval, 4>> lives;
};

struct PlanMemory : autohet::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    SmallVector<exec::ProgramOp> programs(
        getOperation().getOps<exec::ProgramOp>());
    parallelForEach(&getContext(), programs,
                    [this](exec::ProgramOp program) { plan(program); });
  }

  void plan(exec::ProgramOp program) {
    SmallVector<int64_t> bytes(exec::getMaxEnumValForSpace() + 1, 0);
    SmallVector<exec::BufferOp> arena;
    for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
      if (buffer.getSpace() == exec::Space::arena) {
        arena.push_back(buffer);
        continue;
      }
      if (buffer.getWhole()) {
        auto whole = buffer.getWhole().getDefiningOp<exec::BufferOp>();
        buffer.setOffset(*whole.getOffset() + *buffer.getWithin());
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

    Places places;
    int64_t bottom = 0, total = 0;
    for (auto [size, number, buffer, always] : bySize) {
      if (always) {
        buffer.setOffset(bottom);
        total = bottom += size;
        continue;
      }
      const Life &life = lives[buffer];
      int64_t at = places.findRoom(bottom, size, life);
      buffer.setOffset(at);
      total = std::max(total, at + size);
      places.add(at, at + size, life);
    }
    return total;
  }
};

} // namespace
