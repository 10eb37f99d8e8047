//===- MemoryOverTime.h - what a simulated device holds --------*- C++ -*-===//
//
// The memory plan reserves room for all microbatches that may be under way; at
// any moment fewer are. A microbatch's buffer is in use from the start of the
// first command, or message, that touches it to the end of the last.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SIMULATOR_MEMORYOVERTIME_H
#define AUTOHET_SIMULATOR_MEMORYOVERTIME_H

#include "autohet/Simulator/Simulate.h"

namespace autohet {

struct MemoryPoint {
  double time_s = 0;
  double bytes = 0; ///< from this time to the next point's
};

/// Of each device, over all steps; begins and ends with 0 bytes.
std::vector<std::vector<MemoryPoint>> memoryOverTime(const SimProgram &program,
                                                     const SimResult &result);

/// Of one curve between two times.
double peakBytes(llvm::ArrayRef<MemoryPoint> curve, double from_s, double to_s);
double meanBytes(llvm::ArrayRef<MemoryPoint> curve, double from_s, double to_s);

} // namespace autohet

#endif
