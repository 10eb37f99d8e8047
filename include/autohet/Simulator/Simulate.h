//===- Simulate.h - runs programs without computing -------------*- C++ -*-===//
//
// An event simulation: streams advance in the order of time, compute commands
// of a device exclude each other, the messages that it sends queue behind one
// another, and so do those that it receives. What never ends is a deadlock,
// told with what everybody waits for.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SIMULATOR_SIMULATE_H
#define AUTOHET_SIMULATOR_SIMULATE_H

#include "autohet/Simulator/SimProgram.h"
#include "autohet/Support/Deadline.h"
#include "llvm/Support/Error.h"

namespace autohet {

/// A command that took time: computing, or being held up.
struct SimSpan {
  unsigned device = 0, stream = 0, command = 0;
  int64_t step = 0, microbatch = 0;
  bool is_waiting = false;
  double start_s = 0, end_s = 0;
};

struct SimTransfer {
  unsigned from = 0, to = 0;
  std::string name;
  int64_t microbatch = 0;
  double bytes = 0;
  double start_s = 0, end_s = 0; ///< end: the data is there
  /// The buffers at both ends, of a step and a microbatch there.
  struct End {
    std::vector<unsigned> buffers;
    int64_t step = 0, microbatch = 0;
  };
  End sent, received;
};

struct SimResult {
  double end_s = 0;
  /// Each step's end minus the one before's: the last is the steady state.
  std::vector<double> step_s;
  std::vector<SimSpan> spans; ///< in the order of their ends
  std::vector<SimTransfer> transfers;
  /// Of each device, all steps: computing.
  std::vector<double> busy_s;
  /// Of each device and stream, all steps: computing, and waiting.
  std::vector<std::vector<double>> stream_busy_s, stream_waiting_s;
  bool is_cut_short = false; ///< by the deadline: nothing else is known
};

struct SimOptions {
  int64_t steps = 1;
  /// Smaller messages start when sent, larger ones when both ends are ready:
  /// the threshold that the runtime gives to UCX.
  double eager_bytes = 256 * 1024;
  /// Whether the result has spans and transfers, for who asks for more than
  /// times.
  bool keep_timeline = true;
  /// When to stop without a result.
  Deadline deadline;
};

/// The error names, for each stream that never ends, what it waits for.
llvm::Expected<SimResult> simulate(const SimProgram &program,
                                   const SimOptions &options = {});

/// A timeline that Perfetto and chrome://tracing show, laid out as the traces
/// of real runs are: one process a device, one thread a stream.
std::string formatChromeTrace(const SimProgram &program,
                              const SimResult &result);

} // namespace autohet

#endif
