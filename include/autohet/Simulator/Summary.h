//===- Summary.h - where a simulated step's time goes -----------*- C++ -*-===//
//
// Of the last step, which begins with the state that steps have in the long
// run: what each device computes, waits for, and why.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SIMULATOR_SUMMARY_H
#define AUTOHET_SIMULATOR_SUMMARY_H

#include "autohet/Simulator/Simulate.h"

namespace autohet {

struct StreamSummary {
  std::string name;
  double busy_s = 0;    ///< computing
  double waiting_s = 0; ///< held up by an event
};

struct DeviceSummary {
  std::string name;
  double compute_s = 0;
  /// Nothing is computed while a message to or from the device is under way.
  double exposed_communication_s = 0;
  /// Neither: others are not ready.
  double waiting_s = 0;
  std::vector<StreamSummary> streams;
  /// Of activations, messages and temporaries, those of microbatches that are
  /// under way.
  double peak_bytes = 0, mean_bytes = 0;
};

/// Time of all devices in commands of one name.
struct CommandSummary {
  std::string name;
  double seconds = 0;
  uint64_t count = 0;
};

struct SimSummary {
  double step_s = 0;
  std::vector<DeviceSummary> devices;
  std::vector<CommandSummary> commands; ///< by falling time
};

SimSummary summarize(const SimProgram &program, const SimResult &result);

} // namespace autohet

#endif
