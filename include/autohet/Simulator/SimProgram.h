//===- SimProgram.h - programs as the simulator sees them -------*- C++ -*-===//
//
// What remains of the devices' programs when data is left out: streams of
// commands with durations, messages with sizes, and events. It mirrors the
// runtime's program (streams, one loop over microbatches, counters as events),
// so that converting is one row a command and the simulated program is the one
// that runs.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SIMULATOR_SIMPROGRAM_H
#define AUTOHET_SIMULATOR_SIMPROGRAM_H

#include "autohet/Cluster/Cluster.h"
#include <cstdint>
#include <string>
#include <vector>

namespace autohet {

enum class SimCommandKind {
  Compute, ///< keeps the device busy for `seconds`
  Send,    ///< starts a message; `event` when its buffer is free again
  Receive, ///< is ready for a message; `event` when it is there
  Record,  ///< sets `event` for the command's microbatch
  Wait,    ///< until `event` is set for the command's microbatch
  Loop,    ///< commands up to EndLoop for index `first` to `end` - 1
  EndLoop,
  Agree, ///< until all devices have come here in this step
};

struct SimCommand {
  SimCommandKind kind = SimCommandKind::Compute;
  std::string name;
  /// In a loop relative to its index, else absolute. A negative one waits for
  /// the step before.
  int64_t microbatch = 0;
  bool in_loop = false;
  double seconds = 0;
  Work work;         ///< what `seconds` are for
  unsigned peer = 0; ///< device
  int64_t channel = 0;
  double bytes = 0;
  unsigned event = 0; ///< into the device's events
  /// Into the device's buffers: those that it reads or writes.
  std::vector<unsigned> buffers;
  int64_t first = 0, end = 0;
};

struct SimEvent {
  std::string name;
  /// Set once a step instead of once a microbatch.
  bool once_a_step = false;
};

/// Memory that a microbatch takes from its first command that touches it to its
/// last one.
struct SimBuffer {
  std::string name;
  double bytes = 0; ///< of one microbatch
};

struct SimStream {
  std::string name;
  std::vector<SimCommand> commands;
};

struct SimDevice {
  std::string name; ///< "node/index"
  int64_t microbatches = 1;
  std::vector<SimEvent> events;
  std::vector<SimStream> streams;
  std::vector<SimBuffer> buffers = {};
};

struct SimProgram {
  std::vector<SimDevice> devices;
  /// From device i to device j at [i · devices + j].
  std::vector<Link> links;
  /// Of each device; empty: no device shares anything with another.
  std::vector<unsigned> nodes;
  /// Of each node: what all its devices together send to other nodes, and
  /// receive from them; 0: no limit but the links'.
  std::vector<double> nic_bytes_per_s;
  /// From the last device's arrival at the agreement to its end.
  double agreement_s = 0;

  const Link &link(unsigned from, unsigned to) const {
    return links[from * devices.size() + to];
  }
};

} // namespace autohet

#endif
