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
#include <optional>
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

/// The core of each rank, so that no core holds more than it has; empty where
/// they do not fit.
std::vector<uint32_t> packCores(const Shares &shares, uint32_t cores);

/// How large a part of the cluster's largest share each rank's is.
std::vector<double> partsOfLargest(const Shares &shares);

/// One worker's claim to its share, whatever the other workers on its core do.
/// What holds it back is its own Pace. Given up when it is destroyed.
class ShareClaim {
public:
  /// Of so many cores, and on which, if it stays there.
  ShareClaim(double cores, std::optional<uint32_t> core)
      : cores(cores), core(core) {}
  virtual ~ShareClaim() = default;

  const double cores;

  /// In the worker's process, between fork and exec.
  void enter() const;

protected:
  virtual void enterWeight() const = 0;

private:
  std::optional<uint32_t> core;
};

/// All of a supervisor's claims, and a load of all cores (CoreLoad.h) while it
/// lives.
class Emulation {
public:
  explicit Emulation(const Manifest &manifest);
  virtual ~Emulation() = default;
  /// Null, with errno, on failure.
  virtual std::unique_ptr<ShareClaim> claim(uint32_t rank) = 0;
  /// "0.225 cores a unit of speed, by weights of cgroup v1"
  virtual std::string describe() const = 0;

protected:
  Shares shares;
  std::vector<double> parts; ///< of the largest share, by rank
  /// Where whole cores can be filled, workers stay on them: no migrations, and
  /// a large share has no neighbour. Where they cannot (empty), the kernel
  /// balances.
  std::vector<uint32_t> cores;

  std::optional<uint32_t> coreOf(uint32_t rank) const {
    return cores.empty() ? std::nullopt : std::optional(cores[rank]);
  }

private:
  CoreLoad load;
};

/// Weights of control groups where this process may make some, else
/// niceness. Null and `error` on failure.
std::unique_ptr<Emulation> makeEmulation(const Manifest &manifest,
                                         std::string &error);

// The two ways, for makeEmulation. The first gives null where it cannot, and
// `why`.
std::unique_ptr<Emulation> makeWeights(const Manifest &manifest,
                                       std::string &why);
std::unique_ptr<Emulation> makeNiceness(const Manifest &manifest);

/// Cores that this process may use, and the calling process to the n-th of
/// them.
uint32_t usableCores();
void pinToCore(uint32_t n);

} // namespace autohet::runtime

#endif
