//===- Emulation.h - unequal devices made of one machine ------------------===//
//
// Gives each worker its share of the cores, in proportion to the relative
// speeds of the cluster file. How much is a function of the manifest and the
// machine, so that several supervisors on one machine agree without talking.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_EMULATION_H
#define AUTOHET_RUNTIME_SUPERVISOR_EMULATION_H

#include "supervisor/CoreLoad.h"
#include "supervisor/Manifest.h"

#include <memory>
#include <string>
#include <vector>

namespace autohet::runtime {

struct Shares {
  double coresPerSpeed = 0;  ///< what one unit of relative speed gets
  std::vector<double> cores; ///< by rank
};

/// Shares that sum to at most 90 % of `cores` over all devices of the cluster,
/// so that two plans of one cluster, which may use different devices, are
/// emulated alike. A rank never gets more than its threads can use.
Shares divideCores(const Manifest &manifest, double cores);

/// Where in a period of the duty cycle a rank runs, and on which core.
struct Slot {
  uint32_t core = 0;
  double begin = 0, end = 0; ///< fractions of a period
};

/// Packs the shares onto whole cores, side by side; scales all of them down
/// until they fit.
std::vector<Slot> packSlots(Shares &shares, uint32_t cores);

/// Holds one worker back; undone when it is destroyed.
class SpeedLimit {
public:
  virtual ~SpeedLimit() = default;
  /// In the worker's process, between fork and exec.
  virtual void enter() const = 0;
  /// In the supervisor, when the worker runs.
  virtual void started(int pid) = 0;
};

/// All of a supervisor's limits, and a load of all cores (CoreLoad.h) while it
/// lives.
class Emulation {
public:
  virtual ~Emulation() = default;
  virtual std::unique_ptr<SpeedLimit> limit(uint32_t rank) = 0;
  /// "0.225 cores a unit of speed, by quotas of cgroup v1, period 4 ms"
  virtual std::string describe() const = 0;

private:
  CoreLoad load;
};

/// Quotas of control groups where this process may make some, else duty cycles.
/// Null and `error` on failure.
std::unique_ptr<Emulation> makeEmulation(const Manifest &manifest,
                                         std::string &error);

// The two ways, for makeEmulation. The first gives null where it cannot, and
// `why`.
std::unique_ptr<Emulation> makeQuotas(const Manifest &manifest,
                                      std::string &why);
std::unique_ptr<Emulation> makeDutyCycles(const Manifest &manifest);

/// Cores that this process may use, and the calling process to the n-th of
/// them.
uint32_t usableCores();
void pinToCore(uint32_t n);

} // namespace autohet::runtime

#endif
