//===- Walker.h - walks a device's command streams ---------------*- C++ -*-===//
//
// One thread walks each stream; the caller's thread walks the first, so a
// program of one stream starts no thread. A *pass* is one walk over all
// streams: a training step, an evaluation, or a second look at a step. Streams
// may run one pass apart (new parameters travel under the next forward, what
// the next batch computes with arrives under this one), which is why a pass's
// numbers live in a small ring.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_CORE_WALKER_H
#define AUTOHET_RUNTIME_CORE_WALKER_H

#include "autohet/runtime/comm.h"
#include "core/Memory.h"
#include "core/Pace.h"
#include "core/Transfers.h"
#include "trace/Trace.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace autohet::runtime {

/// What a pass computes with.
struct Pass {
  uint64_t step = 0;
  uint64_t seed = 0;
  /// Counted labels of the global batch; 0: this program reads none.
  uint64_t labelCount = 0;
  /// Parameters change if the agreement, too, lets them.
  bool updates = true;
  /// Not a training step: no dropout.
  bool evaluates = false;
  /// Look at every result for NaN and infinity.
  bool scans = false;
  /// Set by the walker: microbatches of all passes before.
  uint64_t firstMicrobatch = 0;
  /// Set by the agreement.
  bool gateOpen = false;
  /// The numbers of this step's UPDATE commands; `clip` set by the agreement.
  ah_update update = {};
};

/// What the walker leaves to whoever trains: data, files, agreement.
class StepClient {
public:
  virtual ~StepClient() = default;
  virtual void feed(const Pass &pass, uint32_t input, uint64_t microbatch,
                    void *to) = 0;
  virtual void output(const Pass &pass, uint32_t output, uint64_t microbatch,
                      const void *from) = 0;
  /// Decides pass.gateOpen and pass.update.clip.
  virtual void agree(Pass &pass) = 0;
  /// The weight decay of a parameter (0 for excluded ones).
  virtual double weightDecay(uint32_t parameter) const = 0;
  virtual void hook(const Pass &pass, int64_t which) {}
  /// After each command of a scanning pass.
  virtual void scan(const Pass &pass, const ah_command &command,
                    int64_t microbatch) {}
};

class Walker {
public:
  Walker(Memory &memory, StepClient &client, const ah_worker_link &link,
         Trace *trace);
  ~Walker();

  /// Walks the first stream through one pass; others may still be walking it
  /// when this returns, or already the `next` one, where that is known. Throws
  /// the first failure of any stream.
  void run(const Pass &pass, const Pass *next = nullptr);
  /// Waits until all streams have ended all passes.
  void drain();
  /// The pass that `run` has walked last, with what was agreed.
  const Pass &lastPass() const { return slot(walked - 1); }

private:
  struct Event {
    std::atomic<uint64_t> value{0};
  };
  struct Operand {
    char *base;
    uint64_t slotStride;
    uint32_t slots;
  };

  void walk(uint32_t stream, uint64_t number);
  void execute(uint32_t stream, const ah_command &command, int64_t microbatch,
               uint64_t number, Pass &pass);
  void streamThread(uint32_t stream);
  /// Slots go round over all microbatches of all passes, as events count: what
  /// had a slot before is the microbatch that the wait for it names.
  void *operand(const ah_command &command, unsigned index,
                uint64_t microbatchOfAll) const {
    const Operand &o = operands[command.first_operand + index];
    return o.slots == 1 ? o.base
                        : o.base + microbatchOfAll % o.slots * o.slotStride;
  }
  uint64_t eventValue(int64_t event, uint64_t number, int64_t microbatch,
                      const ah_command &command) const;
  void setEvent(uint32_t event, uint64_t value);
  void waitEvent(const ah_command &command, uint64_t value);
  void stop(ah_status status, const std::string &text);
  void throwIfStopped();
  void publish(const Pass &pass);
  // The pass that streams are behind in, the first stream's, and the next.
  static constexpr unsigned ringSize = 3;
  Pass &slot(uint64_t number) { return passes[number % ringSize]; }
  const Pass &slot(uint64_t number) const { return passes[number % ringSize]; }

  Memory &memory;
  const Program &program;
  StepClient &client;
  ah_worker_link link;
  Pace pace;
  Trace *trace;
  std::vector<Operand> operands;
  std::unique_ptr<Event[]> events;
  std::unique_ptr<Transfers> transfers;

  // Guards what follows; `changed` is signalled for events, passes and failure.
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> sleepers{0};
  Pass passes[ringSize];
  uint64_t walked = 0;            // passes of the first stream
  uint64_t begun = 0;             // passes released to the other streams
  std::vector<uint64_t> finished; // passes ended, a stream
  bool leaving = false;
  std::atomic<bool> stopped{false};
  ah_status failureStatus = AH_OK;
  std::string failureText;
  std::vector<std::thread> threads;
};

} // namespace autohet::runtime

#endif
