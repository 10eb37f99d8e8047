//===- Simulate.cpp - runs programs without computing ---------------------===//
//
// A queue of (time, stream) resumptions. A resumed stream runs commands that
// take no time until one takes some or must wait; what sets an event or
// completes a message resumes who waited for it. Entries of equal time keep
// their order of insertion, so that a program has one timeline.
//
//===----------------------------------------------------------------------===//

#include "autohet/Simulator/Simulate.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cassert>
#include <optional>
#include <queue>
#include <tuple>

namespace autohet {
namespace {

/// One end of a message that has come to it.
struct Posted {
  unsigned event = 0;
  int64_t value = 0;
  const SimCommand *command = nullptr;
  int64_t microbatch = 0, step = 0;
  /// Of a send: when it departs, which a small message does unasked.
  std::optional<double> start_s = std::nullopt;
  double arrival_s = 0;
};

/// Messages of a channel match in their order, so that only one end of some is
/// ever there.
struct Channel {
  bool are_sends = false;
  llvm::SmallVector<Posted, 1> posted;
};

/// Where a stream is.
struct Cursor {
  unsigned device = 0, stream = 0;
  int64_t step = 0;
  size_t next = 0;
  size_t loop_begin = 0; ///< of the loop it is in
  int64_t loop_index = 0;
  bool is_done = false;
  /// An advance() of it is in the queue: another one would overtake it.
  bool is_queued = false;
  // While it waits:
  bool is_waiting = false;
  double waiting_since = 0;
};

class Simulation {
public:
  Simulation(const SimProgram &program, const SimOptions &options)
      : program(program), options(options) {
    unsigned count = program.devices.size();
    assert(program.links.size() == size_t(count) * count && "a link a pair");
    device_free_s.resize(count);
    sender_free_s.resize(count);
    receiver_free_s.resize(count);
    nic_free_s.resize(2 * program.nic_bytes_per_s.size());
    arrived.resize(options.steps);
    stepEnds.resize(options.steps);
    result.busy_s.resize(count);
    for (auto [index, device] : llvm::enumerate(program.devices)) {
      eventValues.emplace_back(device.events.size());
      result.stream_busy_s.emplace_back(device.streams.size());
      result.stream_waiting_s.emplace_back(device.streams.size());
      firstCursor.push_back(cursors.size());
      for (unsigned stream = 0; stream < device.streams.size(); ++stream) {
        cursors.push_back({static_cast<unsigned>(index), stream});
        resume(cursors.size() - 1, 0);
      }
    }
  }

  llvm::Expected<SimResult> run() {
    // Milliseconds of events between two questions.
    constexpr uint64_t askedEvents = 1 << 14;
    for (uint64_t events = 0; !queue.empty(); ++events) {
      if (events % askedEvents == 0 && options.deadline.isOver()) {
        SimResult late;
        late.is_cut_short = true;
        return late;
      }
      Entry entry = queue.top();
      queue.pop();
      now = entry.time;
      run(entry);
    }
    if (llvm::Error error = explainDeadlock())
      return error;
    double before = 0;
    for (double end : stepEnds) {
      result.step_s.push_back(end - before);
      before = end;
    }
    result.end_s = before;
    return std::move(result);
  }

private:
  enum class Action {
    Advance,     ///< cursor `index`
    SetEvent,    ///< `event` of device `index` to `value`
    EndAgreement ///< of step `index`
  };
  struct Entry {
    double time;
    uint64_t order;
    Action action;
    unsigned index, event = 0;
    int64_t value = 0;

    bool operator<(const Entry &other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  void run(const Entry &entry) {
    switch (entry.action) {
    case Action::Advance:
      return advance(entry.index);
    case Action::SetEvent:
      return setEvent(entry.index, entry.event, entry.value);
    case Action::EndAgreement:
      arrived[entry.index].is_done = true;
      for (size_t index = 0; index < cursors.size(); ++index)
        if (isAt(cursors[index], SimCommandKind::Agree))
          resume(index, now);
    }
  }

  void resume(size_t cursor, double time) {
    if (cursors[cursor].is_queued)
      return;
    cursors[cursor].is_queued = true;
    queue.push({time, order++, Action::Advance, unsigned(cursor)});
  }
  void setEventAt(double time, unsigned device, const Posted &posted) {
    queue.push(
        {time, order++, Action::SetEvent, device, posted.event, posted.value});
  }

  const SimStream &streamOf(const Cursor &cursor) const {
    return program.devices[cursor.device].streams[cursor.stream];
  }

  int64_t microbatchOf(const Cursor &cursor, const SimCommand &command) const {
    return command.microbatch + (command.in_loop ? cursor.loop_index : 0);
  }

  int64_t eventValue(const Cursor &cursor, const SimCommand &command,
                     int64_t microbatch) const {
    const SimDevice &device = program.devices[cursor.device];
    if (device.events[command.event].once_a_step)
      return cursor.step + (command.microbatch < 0 ? 0 : 1);
    return cursor.step * device.microbatches + microbatch + 1;
  }

  // Runs commands until one takes time or has to wait.
  void advance(size_t index) {
    Cursor &cursor = cursors[index];
    cursor.is_queued = false;
    const std::vector<SimCommand> &commands = streamOf(cursor).commands;
    while (true) {
      if (cursor.next == commands.size()) {
        stepEnds[cursor.step] = std::max(stepEnds[cursor.step], now);
        cursor.next = 0;
        if (++cursor.step == options.steps) {
          cursor.is_done = true;
          return;
        }
        continue;
      }
      if (!execute(index, cursor, commands[cursor.next]))
        return;
    }
  }

  /// False where the stream goes on later.
  bool execute(size_t index, Cursor &cursor, const SimCommand &command) {
    int64_t microbatch = microbatchOf(cursor, command);
    switch (command.kind) {
    case SimCommandKind::Compute: {
      double &free = device_free_s[cursor.device];
      double start = std::max(now, free);
      free = start + command.seconds;
      addSpan(cursor, microbatch, false, start, free);
      ++cursor.next;
      resume(index, free);
      return false;
    }
    case SimCommandKind::Send:
    case SimCommandKind::Receive:
      post(cursor, command, microbatch);
      break;
    case SimCommandKind::Record:
      setEvent(cursor.device, command.event,
               eventValue(cursor, command, microbatch));
      break;
    case SimCommandKind::Wait:
      if (eventValues[cursor.device][command.event] <
          eventValue(cursor, command, microbatch))
        return hold(cursor);
      endHold(cursor, microbatch);
      break;
    case SimCommandKind::Loop:
      cursor.loop_begin = cursor.next;
      cursor.loop_index = command.first;
      if (command.first >= command.end) {
        const std::vector<SimCommand> &commands = streamOf(cursor).commands;
        while (commands[cursor.next].kind != SimCommandKind::EndLoop)
          ++cursor.next;
      }
      break;
    case SimCommandKind::EndLoop:
      if (++cursor.loop_index <
          streamOf(cursor).commands[cursor.loop_begin].end)
        cursor.next = cursor.loop_begin;
      break;
    case SimCommandKind::Agree:
      if (!agree(cursor))
        return hold(cursor);
      endHold(cursor, microbatch);
      break;
    }
    ++cursor.next;
    return true;
  }

  //===-- Waiting ----------------------------------------------------------===//

  bool hold(Cursor &cursor) {
    if (!cursor.is_waiting) {
      cursor.is_waiting = true;
      cursor.waiting_since = now;
    }
    return false;
  }

  void endHold(Cursor &cursor, int64_t microbatch) {
    if (cursor.is_waiting && now > cursor.waiting_since)
      addSpan(cursor, microbatch, true, cursor.waiting_since, now);
    cursor.is_waiting = false;
  }

  /// Whether it waits at a command of this kind.
  bool isAt(const Cursor &cursor, SimCommandKind kind) const {
    return cursor.is_waiting &&
           streamOf(cursor).commands[cursor.next].kind == kind;
  }

  void setEvent(unsigned device, unsigned event, int64_t value) {
    int64_t &current = eventValues[device][event];
    if (value <= current)
      return;
    current = value;
    // Woken for nothing, a stream would only wait again.
    for (unsigned stream = 0; stream < program.devices[device].streams.size();
         ++stream) {
      size_t index = firstCursor[device] + stream;
      const Cursor &cursor = cursors[index];
      if (!isAt(cursor, SimCommandKind::Wait))
        continue;
      const SimCommand &command = streamOf(cursor).commands[cursor.next];
      if (command.event == event &&
          eventValue(cursor, command, microbatchOf(cursor, command)) <= value)
        resume(index, now);
    }
  }

  // A step's agreement ends agreement_s after the last device has come.
  bool agree(Cursor &cursor) {
    Agreement &agreement = arrived[cursor.step];
    if (agreement.is_done)
      return true;
    if (cursor.is_waiting)
      return false;
    if (++agreement.count == program.devices.size())
      queue.push({now + program.agreement_s, order++, Action::EndAgreement,
                  unsigned(cursor.step)});
    return false;
  }

  //===-- Messages ---------------------------------------------------------===//

  void post(const Cursor &cursor, const SimCommand &command,
            int64_t microbatch) {
    bool isSend = command.kind == SimCommandKind::Send;
    unsigned from = isSend ? cursor.device : command.peer;
    unsigned to = isSend ? command.peer : cursor.device;
    Channel &channel = channels[{from, to, command.channel}];
    Posted posted = {command.event, eventValue(cursor, command, microbatch),
                     &command, microbatch, cursor.step};
    if (isSend && command.bytes <= options.eager_bytes)
      depart(from, to, posted);
    if (channel.posted.empty() || channel.are_sends == isSend) {
      channel.are_sends = isSend;
      channel.posted.push_back(posted);
      return;
    }
    Posted send = isSend ? posted : channel.posted.front();
    const Posted &receive = isSend ? channel.posted.front() : posted;
    if (!send.start_s)
      depart(from, to, send);
    double arrival = std::max(now, send.arrival_s);
    if (options.keep_timeline)
      result.transfers.push_back({from, to, send.command->name, send.microbatch,
                                  send.command->bytes, *send.start_s, arrival,
                                  endOf(send), endOf(receive)});
    setEventAt(arrival, to, receive);
    channel.posted.erase(channel.posted.begin());
  }

  /// A device sends one message after the other, and receives one after the
  /// other: all pass its one port, or the one thread that copies them. The
  /// message's buffer is free when it has left.
  void depart(unsigned from, unsigned to, Posted &send) {
    const Link &link = program.link(from, to);
    double start = passNics(from, to, std::max(now, sender_free_s[from]),
                            send.command->bytes);
    double seconds = send.command->bytes / link.bandwidth_bytes_per_s;
    double free = sender_free_s[from] = start + seconds;
    // Whoever waits for a busy receiver holds up nobody else.
    double &received = receiver_free_s[to];
    received = std::max(start, received) + seconds;
    send.start_s = start;
    send.arrival_s = received + link.latency_s;
    setEventAt(free, from, send);
  }

  static SimTransfer::End endOf(const Posted &posted) {
    return {posted.command->buffers, posted.step, posted.microbatch};
  }

  /// When a message may start that also takes its turn at the nodes' network
  /// cards, on the way out and on the way in.
  double passNics(unsigned from, unsigned to, double start, double bytes) {
    if (program.nodes.empty() || program.nodes[from] == program.nodes[to])
      return start;
    size_t ways[] = {size_t(program.nodes[from]) * 2,
                     size_t(program.nodes[to]) * 2 + 1};
    for (size_t way : ways)
      if (program.nic_bytes_per_s[way / 2] > 0)
        start = std::max(start, nic_free_s[way]);
    for (size_t way : ways)
      if (double rate = program.nic_bytes_per_s[way / 2]; rate > 0)
        nic_free_s[way] = start + bytes / rate;
    return start;
  }

  //===-- Results ----------------------------------------------------------===//

  void addSpan(const Cursor &cursor, int64_t microbatch, bool isWaiting,
               double start, double end) {
    if (options.keep_timeline)
      result.spans.push_back({cursor.device, cursor.stream,
                              static_cast<unsigned>(cursor.next), cursor.step,
                              microbatch, isWaiting, start, end});
    (isWaiting ? result.stream_waiting_s
               : result.stream_busy_s)[cursor.device][cursor.stream] +=
        end - start;
    if (!isWaiting)
      result.busy_s[cursor.device] += end - start;
  }

  std::string describeWait(const Cursor &cursor) const {
    const SimDevice &device = program.devices[cursor.device];
    const SimCommand &command = streamOf(cursor).commands[cursor.next];
    std::string text = device.name + ", stream '" + streamOf(cursor).name +
                       "', command " + std::to_string(cursor.next) + " '" +
                       command.name + "' of step " +
                       std::to_string(cursor.step) + ": ";
    if (command.kind == SimCommandKind::Agree)
      return text + "waits for the other devices' agreement";
    text += "waits for event '" + device.events[command.event].name +
            "' of microbatch " + std::to_string(microbatchOf(cursor, command));
    // What would set it is most often a message that is only half there.
    for (const auto &[key, channel] : channels) {
      auto [from, to, number] = key;
      auto [poster, other] =
          channel.are_sends ? std::pair(from, to) : std::pair(to, from);
      if (poster == cursor.device &&
          llvm::any_of(channel.posted, [&](const Posted &posted) {
            return posted.event == command.event;
          }))
        text += (channel.are_sends ? ", set by sending to "
                                   : ", set by receiving from ") +
                program.devices[other].name + " on channel " +
                std::to_string(number);
    }
    return text;
  }

  llvm::Error explainDeadlock() const {
    std::vector<std::string> waits;
    for (const Cursor &cursor : cursors)
      if (!cursor.is_done)
        waits.push_back(describeWait(cursor));
    if (waits.empty())
      return llvm::Error::success();
    return llvm::createStringError("deadlock after " +
                                   formatQuantity(now, Dimension::Seconds) +
                                   ":\n  " + llvm::join(waits, "\n  "));
  }

  struct Agreement {
    unsigned count = 0;
    bool is_done = false;
  };

  const SimProgram &program;
  const SimOptions &options;
  double now = 0;
  uint64_t order = 0;
  std::priority_queue<Entry> queue;
  std::vector<Cursor> cursors;
  std::vector<size_t> firstCursor; ///< of each device
  std::vector<std::vector<int64_t>> eventValues;
  llvm::MapVector<std::tuple<unsigned, unsigned, int64_t>, Channel> channels;
  std::vector<double> device_free_s, sender_free_s, receiver_free_s, stepEnds;
  std::vector<double> nic_free_s; ///< of each node: out, in
  std::vector<Agreement> arrived; ///< of each step
  SimResult result;
};

} // namespace

llvm::Expected<SimResult> simulate(const SimProgram &program,
                                   const SimOptions &options) {
  return Simulation(program, options).run();
}

} // namespace autohet
