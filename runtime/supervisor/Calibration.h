//===- Calibration.h - do emulated speeds hold? ---------------------------===//
//
// An emulated cluster is believed only after all of its workers have computed
// at the same time and their speeds came out as asked.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_CALIBRATION_H
#define AUTOHET_RUNTIME_SUPERVISOR_CALIBRATION_H

#include "supervisor/Manifest.h"

#include <string>
#include <vector>

namespace autohet::runtime {

/// Within this the speeds are as asked.
constexpr double calibrationTolerance = 0.05;
/// A disturbance passes; what stays is the machine.
constexpr unsigned calibrationTries = 3;

/// In a worker: arithmetic for about a second, by `threads` threads with
/// `share` cores together; units of work a second.
double measureSpeed(unsigned threads, double share);

struct Calibration {
  double worstDeviation = 0; ///< 0.01: one rank is 1 % off its share
  std::string text;          ///< one line
};

/// Compares measured rates, by rank, with the manifest's relative speeds.
Calibration judgeSpeeds(const Manifest &manifest,
                        const std::vector<double> &rates);

} // namespace autohet::runtime

#endif
