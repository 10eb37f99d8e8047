//===- Liveness.h - when a buffer holds something worth keeping -*- C++ -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE_LIVENESS_H
#define AUTOHET_PASSES_SCHEDULE_LIVENESS_H

#include "autohet/Dialect/Exec/Exec.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace autohet {

/// Commands [first, last] of the computing stream, numbered in program order.
struct Interval {
  int64_t first, last;

  bool overlaps(const Interval &other) const {
    return first <= other.last && other.first <= last;
  }
};

/// When a buffer of one slot holds something worth keeping.
struct Life {
  bool always = false;
  llvm::SmallVector<Interval, 2> intervals; // rising
};

/// Walks the commands of the computing stream once. A write that is not also a
/// read begins a life, reads prolong it. Inside the loop the same holds for one
/// turn; a buffer whose first command in the loop is a read carries something
/// from turn to turn and lives throughout.
class Liveness {
public:
  explicit Liveness(exec::ProgramOp program) {
    auto buffers = program.getBody().getOps<exec::BufferOp>();
    lives.reserve(std::distance(buffers.begin(), buffers.end()));
    for (auto stream : program.getBody().getOps<exec::StreamOp>()) {
      if (stream.getCommunication())
        stream.walk([&](exec::CommandOpInterface command) {
          for (mlir::Value v : touched(command))
            lives[v].always = true;
        });
      else
        walk(stream.getBody().front());
    }
    for (exec::BufferOp buffer : buffers)
      if (buffer.getSlots() > 1)
        lives[buffer].always = true;
  }

  Life &operator[](mlir::Value v) { return lives[v]; }
  /// Of the computing stream: what intervals are numbered by.
  int64_t commandCount() const { return time; }

private:
  static llvm::SmallVector<mlir::Value>
  touched(exec::CommandOpInterface command) {
    llvm::SmallVector<mlir::Value> values = command.getReads();
    llvm::append_range(values, command.getWrites());
    return values;
  }

  void walk(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      if (auto loop = llvm::dyn_cast<exec::LoopOp>(op)) {
        llvm::DenseSet<mlir::Value> seen;
        loopSeen = &seen;
        walk(loop.getBody().front());
        loopSeen = nullptr;
        continue;
      }
      auto command = llvm::cast<exec::CommandOpInterface>(op);
      int64_t now = time++;
      llvm::SmallVector<mlir::Value> reads = command.getReads();
      for (mlir::Value v : reads)
        touch(v, now, /*begins=*/false);
      for (mlir::Value v : command.getWrites())
        touch(v, now, /*begins=*/!llvm::is_contained(reads, v));
      // What is sent stays until the send is over; what is received is written
      // from the moment the receive starts.
      if (auto send = llvm::dyn_cast<exec::SendOp>(op))
        underWay[send.getEvent()] = send.getFrom();
      if (auto recv = llvm::dyn_cast<exec::RecvOp>(op))
        underWay[recv.getEvent()] = recv.getTo();
      if (auto wait = llvm::dyn_cast<exec::WaitOp>(op))
        for (mlir::Value v : underWay.lookup(wait.getEvent()))
          touch(v, now, false);
    }
  }

  void touch(mlir::Value v, int64_t now, bool begins) {
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

  llvm::MapVector<mlir::Value, Life> lives;
  llvm::DenseMap<mlir::Value, mlir::ValueRange> underWay;
  llvm::DenseSet<mlir::Value> *loopSeen = nullptr;
  int64_t time = 0;
};

} // namespace autohet

#endif
