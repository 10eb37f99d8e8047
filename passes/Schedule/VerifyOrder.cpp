//===- VerifyOrder.cpp - nothing is overwritten while it is still read -------===//
//
// Streams and messages run beside each other; only events, messages and the
// agreement of a step order them. All programs of a module are walked together
// for a few steps, and each stream has a clock of what it knows to be over: its
// own commands, and what those knew that it has waited for (a vector clock). A
// command may write bytes only where it knows that all who read or wrote them
// are done, and read them only where it knows so of who wrote them, for this
// microbatch and into this buffer. What holds here holds for any timing.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <deque>
#include <map>
#include <set>

namespace autohet {
#define GEN_PASS_DEF_VERIFYORDER
#include "autohet/Passes/Schedule/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// How far each part of the machine is known to have come.
using Clock = std::vector<int64_t>;

void join(Clock &clock, const Clock &other) {
  for (auto [mine, theirs] : llvm::zip_equal(clock, other))
    mine = std::max(mine, theirs);
}

/// Who touched some bytes: over once `part` has come to `count`.
struct Access {
  unsigned part = 0;
  int64_t count = 0;
  int64_t microbatch = 0; ///< of all steps
  Operation *command = nullptr;
  Value buffer;
};

/// Bytes that no buffer divides.
struct Segment {
  std::optional<Access> written;
  SmallVector<Access, 2> read;
};

/// What has set an event, by the values that it was set to.
struct Setting {
  int64_t value;
  Clock clock;
};

/// The buffers of a device as runs of segments.
class Bytes {
public:
  explicit Bytes(exec::ProgramOp program) {
    for (auto buffer : program.getBody().getOps<exec::BufferOp>())
      for (int64_t slot = 0; slot < int64_t(buffer.getSlots()); ++slot) {
        auto [begin, end] = rangeOf(buffer, slot);
        starts[buffer.getSpace()].insert(begin);
        starts[buffer.getSpace()].insert(end);
      }
  }

  template <typename Visit>
  void visit(exec::BufferOp buffer, int64_t slot, Visit visit) {
    auto [begin, end] = rangeOf(buffer, slot);
    exec::Space space = buffer.getSpace();
    for (auto it = starts[space].lower_bound(begin); *it < end; ++it)
      visit(segments[{space, *it}]);
  }

private:
  static std::pair<int64_t, int64_t> rangeOf(exec::BufferOp buffer,
                                             int64_t slot) {
    int64_t begin = *buffer.getOffset() + slot * buffer.getSlotStride();
    return {begin, begin + cast<exec::BufferType>(buffer.getResult().getType())
                               .getSizeInBytes()};
  }

  std::map<exec::Space, std::set<int64_t>> starts;
  std::map<std::pair<exec::Space, int64_t>, Segment> segments;
};

/// One stream on its way; its commands of a step, with loops unrolled.
struct Stream {
  unsigned device = 0, part = 0;
  std::vector<std::pair<exec::CommandOpInterface, int64_t>> commands;
  int64_t step = 0;
  size_t next = 0;
  Clock clock;
  bool hasAgreed = false; ///< and waits for the others
};

struct Device {
  Device(exec::ProgramOp program, unsigned firstStream)
      : program(program), bytes(program), zeroesIn(firstStream) {}

  exec::ProgramOp program;
  Bytes bytes;
  unsigned zeroesIn; ///< the stream before whose step gradients are zeroed
  llvm::MapVector<Value, std::vector<Setting>> events;
  llvm::DenseMap<Value, unsigned> transferParts; ///< by a transfer's event
};

/// One end of a message that is not yet matched.
struct Posted {
  Operation *command;
  unsigned device;
  int64_t microbatch, value;
  Clock clock;
  int64_t count = 0; ///< of its part, when it is done
};

class Walk {
public:
  Walk(ModuleOp module, int64_t steps) : steps(steps) {
    for (auto program : module.getOps<exec::ProgramOp>())
      byRank.insert({int64_t(program.getRank()), program});
    unsigned parts = 0;
    for (auto &[rank, program] : byRank) {
      Device &device = devices.emplace_back(program, streams.size());
      for (auto stream : program.getBody().getOps<exec::StreamOp>()) {
        streams.push_back(
            {unsigned(devices.size() - 1), parts++, {}, 0, 0, {}, false});
        unroll(stream.getBody().front(), 0, streams.back());
      }
      program.walk([&](exec::CommandOpInterface command) {
        if (Value event = eventOf(command))
          device.transferParts.insert({event, parts++});
      });
    }
    for (Stream &stream : streams)
      stream.clock.assign(parts, 0);
    agreement.assign(parts, 0);
    transfers.assign(parts, Clock(parts, 0));
  }

  LogicalResult run() {
    bool moves = true;
    while (moves) {
      moves = false;
      for (Stream &stream : streams)
        while (stream.step < steps) {
          FailureOr<bool> went = advance(stream);
          if (failed(went))
            return failure();
          if (!*went)
            break;
          moves = true;
        }
    }
    for (Stream &stream : streams)
      if (stream.step < steps)
        return stream.commands[stream.next].first->emitError(
                   "is waited at for ever in step ")
               << stream.step;
    return success();
  }

private:
  static Value eventOf(Operation *command) {
    if (auto send = dyn_cast<exec::SendOp>(command))
      return send.getEvent();
    if (auto recv = dyn_cast<exec::RecvOp>(command))
      return recv.getEvent();
    return {};
  }

  static void unroll(Block &block, int64_t index, Stream &stream) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::LoopOp>(op)) {
        for (int64_t i = loop.getFirst(); i < int64_t(loop.getEnd()); ++i)
          unroll(loop.getBody().front(), i, stream);
        continue;
      }
      auto command = cast<exec::CommandOpInterface>(op);
      stream.commands.push_back(
          {command, index + command.getMicrobatchNumber()});
    }
  }

  /// As the runtime counts: program.h.
  int64_t valueOf(const Stream &stream, Value event, int64_t microbatch,
                  exec::CommandOpInterface command) {
    if (event.getDefiningOp<exec::EventOp>().getOnce())
      return stream.step + 1 +
             std::min<int64_t>(command.getMicrobatchNumber(), 0);
    return ofAll(stream, microbatch) + 1;
  }
  int64_t ofAll(const Stream &stream, int64_t microbatch) {
    return stream.step *
               int64_t(devices[stream.device].program.getMicrobatches()) +
           microbatch;
  }

  /// False where the stream has to wait.
  FailureOr<bool> advance(Stream &stream) {
    Device &device = devices[stream.device];
    if (stream.next == stream.commands.size()) {
      stream.next = 0;
      ++stream.step;
      return true;
    }
    auto [command, microbatch] = stream.commands[stream.next];
    if (stream.next == 0 && &stream == &streams[device.zeroesIn] &&
        failed(zeroGradients(stream, command)))
      return failure();
    if (auto wait = dyn_cast<exec::WaitOp>(command.getOperation())) {
      if (!waitFor(stream, wait.getEvent(),
                   valueOf(stream, wait.getEvent(), microbatch, command)))
        return false;
    } else if (isa<exec::AgreeOp>(command)) {
      if (!agree(stream))
        return false;
    } else {
      ++stream.clock[stream.part];
      if (auto record = dyn_cast<exec::RecordOp>(command.getOperation()))
        device.events[record.getEvent()].push_back(
            {valueOf(stream, record.getEvent(), microbatch, command),
             stream.clock});
      else if (isa<exec::SendOp, exec::RecvOp>(command)) {
        if (failed(post(stream, command, microbatch)))
          return failure();
      } else if (failed(touchAll(stream.device, command,
                                 ofAll(stream, microbatch), stream.part,
                                 stream.clock[stream.part], stream.clock)))
        return failure();
    }
    ++stream.next;
    return true;
  }

  bool waitFor(Stream &stream, Value event, int64_t value) {
    if (value <= 0)
      return true;
    auto &settings = devices[stream.device].events[event];
    auto it = llvm::lower_bound(settings, value,
                                [](const Setting &setting, int64_t value) {
                                  return setting.value < value;
                                });
    if (it == settings.end())
      return false;
    join(stream.clock, it->clock);
    return true;
  }

  bool agree(Stream &stream) {
    if (!stream.hasAgreed) {
      ++stream.clock[stream.part];
      join(agreement, stream.clock);
      stream.hasAgreed = true;
      if (++agreed == devices.size() * size_t(stream.step + 1))
        agreements.push_back(agreement);
    }
    if (agreements.size() <= size_t(stream.step))
      return false;
    join(stream.clock, agreements[stream.step]);
    stream.hasAgreed = false;
    return true;
  }

  //===-- Messages ---------------------------------------------------------===//

  LogicalResult post(Stream &stream, exec::CommandOpInterface command,
                     int64_t microbatch) {
    Posted posted = {command,
                     stream.device,
                     ofAll(stream, microbatch),
                     valueOf(stream, eventOf(command), microbatch, command),
                     stream.clock,
                     0};
    int64_t own = devices[stream.device].program.getRank();
    if (auto send = dyn_cast<exec::SendOp>(command.getOperation())) {
      // It may leave at any time from now on, whether or not it is received.
      if (failed(complete(posted, stream.clock, stream.clock)))
        return failure();
      auto &channel =
          channels[{own, int64_t(send.getPeer()), int64_t(send.getChannel())}];
      channel.first.push_back(std::move(posted));
      return match(channel);
    }
    auto recv = cast<exec::RecvOp>(command.getOperation());
    auto &channel =
        channels[{int64_t(recv.getPeer()), own, int64_t(recv.getChannel())}];
    channel.second.push_back(std::move(posted));
    return match(channel);
  }

  using Channel = std::pair<std::deque<Posted>, std::deque<Posted>>;

  LogicalResult match(Channel &channel) {
    auto &[sends, receives] = channel;
    while (!sends.empty() && !receives.empty()) {
      // Bytes arrive after both ends have begun; once all are there, the
      // sender's are not read any more.
      Clock begin = receives.front().clock, end = sends.front().clock;
      join(begin, sends.front().clock);
      unsigned part = partOf(sends.front());
      end[part] = std::max(end[part], sends.front().count);
      if (failed(complete(receives.front(), begin, end)))
        return failure();
      sends.pop_front();
      receives.pop_front();
    }
    return success();
  }

  unsigned partOf(const Posted &posted) {
    return devices[posted.device].transferParts.lookup(eventOf(posted.command));
  }

  /// It reads or writes from `begin` on, and who waits for it knows `end`.
  LogicalResult complete(Posted &posted, const Clock &begin, const Clock &end) {
    unsigned part = partOf(posted);
    // Transfers that set one event end in their order.
    Clock &done = transfers[part];
    join(done, begin);
    join(done, end);
    posted.count = ++done[part];
    devices[posted.device].events[eventOf(posted.command)].push_back(
        {posted.value, done});
    return touchAll(posted.device,
                    cast<exec::CommandOpInterface>(posted.command),
                    posted.microbatch, part, posted.count, begin);
  }

  //===-- Bytes ------------------------------------------------------------===//

  LogicalResult zeroGradients(Stream &stream,
                              exec::CommandOpInterface command) {
    ++stream.clock[stream.part];
    for (auto buffer :
         devices[stream.device].program.getBody().getOps<exec::BufferOp>())
      if (buffer.getSpace() == exec::Space::gradient &&
          failed(touch(stream.device, buffer, /*writes=*/true,
                       {stream.part, stream.clock[stream.part],
                        ofAll(stream, 0), command, buffer},
                       stream.clock)))
        return failure();
    return success();
  }

  LogicalResult touchAll(unsigned device, exec::CommandOpInterface command,
                         int64_t microbatch, unsigned part, int64_t count,
                         const Clock &begin) {
    for (bool writes : {false, true}) {
      SmallVector<Value> buffers =
          writes ? command.getWrites() : command.getReads();
      for (Value buffer : buffers)
        if (failed(touch(device, buffer.getDefiningOp<exec::BufferOp>(), writes,
                         {part, count, microbatch, command, buffer}, begin)))
          return failure();
    }
    return success();
  }

  LogicalResult touch(unsigned device, exec::BufferOp buffer, bool writes,
                      const Access &access, const Clock &begin) {
    if (buffer.getSpace() == exec::Space::scalar)
      return success(); // the runtime's own numbers
    bool isArena = buffer.getSpace() == exec::Space::arena;
    auto isOver = [&](const Access &other) {
      return begin[other.part] >= other.count;
    };
    LogicalResult result = success();
    auto complain = [&](const Twine &text, const Access *other) {
      if (failed(result))
        return;
      result = failure();
      InFlightDiagnostic diagnostic =
          access.command->emitError(writes ? "writes '" : "reads '")
          << buffer.getName() << "' for microbatch " << access.microbatch
          << " of all steps, " << text;
      if (other)
        diagnostic.attachNote(other->command->getLoc())
            << "this is for microbatch " << other->microbatch << ", in '"
            << other->buffer.getDefiningOp<exec::BufferOp>().getName() << "'";
    };
    int64_t slot = access.microbatch % int64_t(buffer.getSlots());
    devices[device].bytes.visit(buffer, slot, [&](Segment &segment) {
      const Access *written = segment.written ? &*segment.written : nullptr;
      if (written && !isOver(*written))
        complain("which another command may be writing", written);
      if (!writes) {
        if (isArena && !written)
          complain("which nothing has written", nullptr);
        else if (isArena && (written->buffer != access.buffer ||
                             written->microbatch != access.microbatch))
          complain("which holds another value", written);
        segment.read.push_back(access);
        return;
      }
      for (const Access &reader : segment.read)
        if (!isOver(reader))
          complain("which another command may be reading", &reader);
      segment.written = access;
      segment.read.clear();
    });
    return result;
  }

  int64_t steps;
  std::map<int64_t, exec::ProgramOp> byRank;
  std::vector<Device> devices;
  std::vector<Stream> streams;
  std::map<std::tuple<int64_t, int64_t, int64_t>, Channel> channels;
  std::vector<Clock> transfers; ///< of each part: its last transfer's end
  Clock agreement;              ///< what those who came to it knew
  std::vector<Clock> agreements;
  size_t agreed = 0;
};

struct VerifyOrder : autohet::impl::VerifyOrderBase<VerifyOrder> {
  using VerifyOrderBase::VerifyOrderBase;

  void runOnOperation() override {
    auto unplaced = getOperation().walk([](exec::BufferOp buffer) {
      if (buffer.getOffset())
        return WalkResult::advance();
      buffer.emitError("has no place: run exec-plan-memory first");
      return WalkResult::interrupt();
    });
    if (unplaced.wasInterrupted() || failed(Walk(getOperation(), steps).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
