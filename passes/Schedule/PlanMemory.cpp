//===- PlanMemory.cpp - a place for every buffer ----------------------------===//
//
// Static memory planning: the arena is shared by liveness, everything else lies
// one after the other. Placement is greedy by size (largest first, lowest free
// place), which is within a few per cent of the peak of live bytes on
// transformer steps; both figures are kept as attributes.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace autohet {
#define GEN_PASS_DEF_PLANMEMORY
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// Commands [first, last] of the computing stream, numbered in program order.
struct Interval {
  int64_t first, last;
};

/// When a buffer of one slot holds something worth keeping.
struct Life {
  bool always = false;
  SmallVector<Interval, 2> intervals;

  bool overlaps(const Life &other) const {
    if (always || other.always)
      return true;
    for (const Interval &a : intervals)
      for (const Interval &b : other.intervals)
        if (a.first <= b.last && b.first <= a.last)
          return true;
    return false;
  }
};

/// Walks the commands of the computing stream once. A write that is not also a
/// read begins a life, reads prolong it. Inside the loop the same holds for one
/// turn; a buffer whose first command in the loop is a read carries something
/// from turn to turn and lives throughout.
class Liveness {
public:
  explicit Liveness(exec::ProgramOp program) {
    for (auto stream : program.getBody().getOps<exec::StreamOp>()) {
      if (stream.getCommunication())
        stream.walk([&](exec::CommandOpInterface command) {
          for (Value v : touched(command))
            lives[v].always = true;
        });
      else
        walk(stream.getBody().front());
    }
    for (auto buffer : program.getBody().getOps<exec::BufferOp>())
      if (buffer.getSlots() > 1)
        lives[buffer].always = true;
  }

  Life &operator[](Value v) { return lives[v]; }

private:
  static SmallVector<Value> touched(exec::CommandOpInterface command) {
    SmallVector<Value> values = command.getReads();
    llvm::append_range(values, command.getWrites());
    return values;
  }

  void walk(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::LoopOp>(op)) {
        llvm::DenseSet<Value> seen;
        loopSeen = &seen;
        walk(loop.getBody().front());
        loopSeen = nullptr;
        continue;
      }
      auto command = cast<exec::CommandOpInterface>(op);
      int64_t now = time++;
      SmallVector<Value> reads = command.getReads();
      for (Value v : reads)
        touch(v, now, /*begins=*/false);
      for (Value v : command.getWrites())
        touch(v, now, /*begins=*/!llvm::is_contained(reads, v));
      // What is sent stays until the send is over; what is received is written
      // from the moment the receive starts.
      if (auto send = dyn_cast<exec::SendOp>(op))
        underWay[send.getEvent()] = send.getFrom();
      if (auto recv = dyn_cast<exec::RecvOp>(op))
        underWay[recv.getEvent()] = recv.getTo();
      if (auto wait = dyn_cast<exec::WaitOp>(op))
        if (Value v = underWay.lookup(wait.getEvent()))
          touch(v, now, false);
    }
  }

  void touch(Value v, int64_t now, bool begins) {
    Life &life = lives[v];
    bool firstInLoop = loopSeen && loopSeen->insert(v).second;
    if (firstInLoop && !begins)
      life.always = true;
    if (begins || life.intervals.empty())
      // A buffer that is written again while its value is still to be read
      // (several writers of parts) has overlapping lives; keep them apart only
      // where a read of the old value has happened.
      life.intervals.push_back({now, now});
    else
      life.intervals.back().last = now;
  }

  llvm::MapVector<Value, Life> lives;
  llvm::DenseMap<Value, Value> underWay;
  llvm::DenseSet<Value> *loopSeen = nullptr;
  int64_t time = 0;
};

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
    auto sizeOf = [](exec::BufferOp b) {
      return b.getSlotStride() * int64_t(b.getSlots());
    };
    // Equal sizes in the order of declaration: the plan is a function of the
    // program.
    SmallVector<std::pair<int64_t, exec::BufferOp>> bySize;
    for (auto [i, buffer] : llvm::enumerate(buffers))
      bySize.push_back({i, buffer});
    llvm::sort(bySize, [&](auto &a, auto &b) {
      int64_t sizeA = sizeOf(a.second), sizeB = sizeOf(b.second);
      return sizeA != sizeB ? sizeA > sizeB : a.first < b.first;
    });

    struct Placed {
      int64_t begin, end;
      Life *life;
    };
    std::vector<Placed> placed; // by begin
    int64_t total = 0;
    for (auto [number, buffer] : bySize) {
      Life &life = lives[buffer];
      int64_t size = sizeOf(buffer), at = 0;
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
