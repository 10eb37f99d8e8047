//===- Walker.cpp - walks a device's command streams ------------------------===//

#include "core/Walker.h"

#include "core/Error.h"

#include <optional>

namespace autohet::runtime {

// Thrown in a stream when another has failed; carries nothing of its own.
namespace {
struct StoppedElsewhere {};
} // namespace

Walker::Walker(Memory &memory, StepClient &client, const ah_worker_link &link,
               Trace *trace)
    : memory(memory), program(memory.program), client(client), link(link),
      pace(link.share), trace(trace), events(new Event[program.events.size()]),
      finished(program.streams.size(), 0) {
  if (program.communicates() && !link.table)
    fail(AH_ERROR_MISMATCH,
         "device %s has transfers in its program but no transport",
         program.deviceName().c_str());
  operands.reserve(program.operands.size());
  for (uint32_t index : program.operands) {
    const ah_buffer &buffer = program.buffers[index];
    operands.push_back(
        {memory.address(index), buffer.slot_stride, buffer.slots});
  }
  if (link.table)
    transfers = std::make_unique<Transfers>(
        link, program.events.size(),
        [this](uint32_t event, uint64_t value) { setEvent(event, value); },
        [this](ah_status status, const char *error) { stop(status, error); },
        [this](const ah_request &r, uint64_t startedNs) {
          if (this->trace)
            this->trace->transfer(r.what, r.is_send, r.peer, r.bytes, r.step,
                                  r.microbatch, startedNs, monotonicNs());
        });
  for (uint32_t stream = 1; stream < program.streams.size(); ++stream)
    threads.emplace_back([this, stream] { streamThread(stream); });
}

Walker::~Walker() {
  bool walking = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    leaving = true;
    for (uint64_t ended : finished)
      walking |= ended < begun;
  }
  // Left by an exception of the client: no stream may wait for ever.
  if (walking)
    stop(AH_ERROR_INTERNAL, "the walker was left in the middle of a step");
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
  transfers.reset();
}

void Walker::publish(const Pass &pass) {
  std::lock_guard<std::mutex> lock(mutex);
  slot(begun) = pass;
  slot(begun).firstMicrobatch = begun * program.header().microbatches;
  ++begun;
}

void Walker::run(const Pass &pass, const Pass *next) {
  uint64_t number = walked++;
  {
    // Every stream has ended the pass before the last: the ring has room.
    Pace::Wait wait(pace);
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] {
      if (stopped)
        return true;
      for (uint32_t stream = 1; stream < finished.size(); ++stream)
        if (finished[stream] + 1 < number)
          return false;
      return true;
    });
  }
  throwIfStopped();
  memory.zeroGradients();
  memory.scalar64(AH_SCALAR_LOSS) = 0;
  memory.scalar64(AH_SCALAR_SQUARED_NORM) = 0;
  memory.scalar32(AH_SCALAR_CLIP) = 1;
  memory.scalar32(AH_SCALAR_INVERSE_LABEL_COUNT) =
      pass.labelCount ? static_cast<float>(1.0 / double(pass.labelCount))
                      : 1.0f;
  __atomic_store_n(&link.board->step, pass.step, __ATOMIC_RELAXED);
  if (begun == number)
    publish(pass);
  if (next)
    publish(*next);
  if (finished.size() > 1)
    changed.notify_all();
  walk(0, number);
  throwIfStopped();
}

void Walker::drain() {
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] {
      if (stopped)
        return true;
      for (uint64_t ended : finished)
        if (ended < walked)
          return false;
      return true;
    });
  }
  throwIfStopped();
  if (transfers)
    transfers->waitForAll();
  throwIfStopped();
}

void Walker::streamThread(uint32_t stream) {
  for (uint64_t number = 0;; ++number) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return begun > number || stopped || leaving; });
      if (stopped || begun <= number)
        return;
    }
    walk(stream, number);
  }
}

void Walker::walk(uint32_t stream, uint64_t number) {
  const ah_stream &s = program.streams[stream];
  Pass &pass = slot(number);
  const ah_command *first = program.commands.begin() + s.first_command;
  const ah_command *end = first + s.command_count;
  const ah_command *loopBegin = nullptr;
  const ah_command *command = first;
  int64_t index = 0, loopEnd = 0, microbatch = 0;
  auto *mark =
      stream < AH_BOARD_STREAMS ? &link.board->streams[stream] : nullptr;
  try {
    for (; command != end; ++command) {
      if (command->kind == AH_LOOP) {
        index = command->args[0];
        loopEnd = command->args[1];
        loopBegin = command;
        if (index >= loopEnd)
          while (command->kind != AH_END_LOOP)
            ++command;
        continue;
      }
      if (command->kind == AH_END_LOOP) {
        if (++index < loopEnd)
          command = loopBegin;
        continue;
      }
      if (stopped.load(std::memory_order_relaxed))
        throw StoppedElsewhere{};
      microbatch =
          command->in_loop ? index + command->microbatch : command->microbatch;
      if (mark) {
        __atomic_store_n(&mark->position,
                         uint64_t(command - program.commands.begin()),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&mark->microbatch, microbatch, __ATOMIC_RELAXED);
      }
      if (trace) {
        uint64_t begin = monotonicNs();
        execute(stream, *command, microbatch, number, pass);
        if (command->kind != AH_RECORD)
          trace->command(stream, *command, pass.step, microbatch, begin,
                         monotonicNs());
      } else {
        execute(stream, *command, microbatch, number, pass);
      }
      __atomic_fetch_add(&link.board->commands, 1, __ATOMIC_RELAXED);
    }
    check(memory.table.finish(memory.device, stream));
  } catch (const StoppedElsewhere &) {
  } catch (const Error &error) {
    stop(error.status,
         format("%s, step %llu, microbatch %lld, %s: %s",
                program.deviceName().c_str(), (unsigned long long)pass.step,
                (long long)microbatch, program.describe(*command).c_str(),
                error.what()));
  } catch (const std::exception &error) {
    stop(AH_ERROR_INTERNAL, error.what());
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    finished[stream] = number + 1;
  }
  if (finished.size() > 1)
    changed.notify_all();
}

/// Whether a command is work of the device itself, which takes it as long as it
/// is slow: the rest is messages, which links say the time of, and order.
static bool isWork(uint32_t kind) {
  switch (kind) {
  case AH_SEND:
  case AH_RECV:
  case AH_RECORD:
  case AH_WAIT:
  case AH_AGREE:
  case AH_HOOK:
    return false;
  default:
    return true;
  }
}

void Walker::execute(uint32_t stream, const ah_command &command,
                     int64_t microbatch, uint64_t number, Pass &pass) {
  const ah_device_table &device = memory.table;
  auto at = [&](unsigned index) {
    return operand(command, index, pass.firstMicrobatch + microbatch);
  };
  int64_t argument = command.args[0];
  std::optional<Pace::Work> work;
  if (isWork(command.kind))
    work.emplace(pace);
  switch (command.kind) {
  case AH_LAUNCH: {
    // Kernels of more operands than this are not written; see lower-kernels.
    constexpr unsigned inlineOperands = 64;
    void *few[inlineOperands];
    std::vector<void *> many;
    void **addresses = few;
    if (command.operand_count > inlineOperands) {
      many.resize(command.operand_count);
      addresses = many.data();
    }
    for (unsigned index = 0; index < command.operand_count; ++index)
      addresses[index] = at(index);
    ah_kernel_context context = {};
    context.seed = pass.seed;
    context.step = pass.step;
    context.evaluates = pass.evaluates;
    context.first_sample =
        program.header().first_sample +
        uint64_t(microbatch) * program.header().microbatch_size;
    check(device.launch(memory.device, stream, program.kernel(argument),
                        addresses, &context));
    break;
  }
  case AH_GEMM:
    check(device.gemm(memory.device, stream, &program.gemms[argument],
                      static_cast<float *>(at(0)), static_cast<float *>(at(1)),
                      static_cast<float *>(at(2))));
    break;
  case AH_COPY:
    check(device.copy(memory.device, stream, at(0), at(1), argument));
    break;
  case AH_ZERO:
    check(device.zero(memory.device, stream, at(0), argument));
    break;
  case AH_REDUCE: {
    std::vector<const float *> from;
    for (unsigned index = 1; index < command.operand_count; ++index)
      from.push_back(static_cast<float *>(at(index)));
    check(device.reduce(memory.device, stream, static_cast<float *>(at(0)),
                        from.data(), from.size(), argument));
    break;
  }
  case AH_SEND:
  case AH_RECV: {
    check(device.finish(memory.device, stream));
    ah_request request = {};
    request.peer = argument;
    request.is_send = command.kind == AH_SEND;
    // The microbatch is no part of it: replicas number theirs differently, and
    // a channel keeps its order.
    request.tag = ah_tag(AH_TAG_DATA, command.args[1], number);
    request.bytes = command.args[2];
    request.what = program.name(command);
    request.step = pass.step;
    request.microbatch = microbatch;
    std::vector<ah_piece> pieces;
    for (unsigned index = 0; index < command.operand_count; ++index)
      pieces.push_back(
          {at(index),
           program.buffers[program.operands[command.first_operand + index]]
               .bytes});
    transfers->start(request, std::move(pieces), command.args[3],
                     eventValue(command.args[3], number, microbatch, command));
    break;
  }
  case AH_RECORD:
    check(device.finish(memory.device, stream));
    setEvent(argument, eventValue(argument, number, microbatch, command));
    break;
  case AH_WAIT:
    waitEvent(command, eventValue(argument, number, microbatch, command));
    break;
  case AH_FEED:
    client.feed(pass, argument, microbatch, at(0));
    break;
  case AH_LOSS: {
    float loss;
    check(device.read(memory.device, &loss, at(0), sizeof loss));
    memory.scalar64(AH_SCALAR_LOSS) += loss;
    break;
  }
  case AH_OUTPUT:
    client.output(pass, argument, microbatch, at(0));
    break;
  case AH_NORM: {
    const ah_parameter &parameter = program.parameters[argument];
    check(device.add_squares(memory.device, stream, static_cast<float *>(at(0)),
                             elementCount(parameter.box_size, parameter.rank),
                             &memory.scalar64(AH_SCALAR_SQUARED_NORM)));
    break;
  }
  case AH_AGREE: {
    Pace::Wait wait(pace);
    client.agree(pass);
  }
    memory.scalar32(AH_SCALAR_CLIP) = pass.update.clip;
    break;
  case AH_UPDATE: {
    if (!pass.gateOpen)
      break;
    const ah_parameter &parameter = program.parameters[argument];
    ah_update update = pass.update;
    update.weight_decay = client.weightDecay(argument);
    float *states[2] = {};
    for (unsigned index = 2; index < command.operand_count; ++index)
      states[index - 2] = static_cast<float *>(at(index));
    check(device.update(memory.device, stream, &update,
                        static_cast<float *>(at(0)),
                        static_cast<float *>(at(1)), states,
                        elementCount(parameter.box_size, parameter.rank)));
    break;
  }
  case AH_HOOK:
    client.hook(pass, argument);
    break;
  }
  if (pass.scans)
    client.scan(pass, command, microbatch);
}

uint64_t Walker::eventValue(int64_t event, uint64_t number, int64_t microbatch,
                            const ah_command &command) const {
  if (program.events[event].once_a_step)
    return number + 1 + std::min<int64_t>(command.microbatch, 0);
  return slot(number).firstMicrobatch + microbatch + 1;
}

void Walker::setEvent(uint32_t event, uint64_t value) {
  events[event].value.store(value);
  if (sleepers.load() == 0)
    return;
  // A sleeper that has looked before the store sleeps before the lock is free.
  {
    std::lock_guard<std::mutex> lock(mutex);
  }
  changed.notify_all();
}

void Walker::waitEvent(const ah_command &command, uint64_t value) {
  Event &event = events[command.args[0]];
  // In the first pass a look back is below zero: nothing has to be waited for.
  if (int64_t(value) <= 0 ||
      event.value.load(std::memory_order_acquire) >= value)
    return;
  if (program.streams.size() == 1 && !transfers)
    fail(AH_ERROR_MISMATCH,
         "waits for event '%s', which nothing can set any more",
         program.string(program.events[command.args[0]].name));
  Pace::Wait wait(pace);
  std::unique_lock<std::mutex> lock(mutex);
  ++sleepers;
  changed.wait(lock, [&] { return stopped || event.value.load() >= value; });
  --sleepers;
  if (stopped)
    throw StoppedElsewhere{};
}

void Walker::stop(ah_status status, const std::string &text) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (stopped)
      return;
    failureStatus = status;
    failureText = text;
    stopped = true;
  }
  changed.notify_all();
  if (link.table)
    link.table->cancel(link.comm, text.c_str());
}

void Walker::throwIfStopped() {
  if (!stopped)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  throw Error(failureStatus, failureText);
}

} // namespace autohet::runtime
