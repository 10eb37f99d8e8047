//===- Fit.h - rates of a device from measured commands --------*- C++ -*-===//
//
// The cost model (DeviceKind::seconds) is linear in a command's work. Given
// seconds of many commands, the rates that explain them best.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_AUTOHET_PROFILE_FIT_H
#define AUTOHET_TOOLS_AUTOHET_PROFILE_FIT_H

#include "autohet/Cluster/Cluster.h"

#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace autohet {

struct Observation {
  Work work;
  double seconds = 0;
  double weight = 1; ///< of its error
};

/// Sets the kind's rates and overhead to those of the least weighted squares of
/// which none is negative. What explains nothing is 0: arithmetic that is then
/// as fast as products, traffic that is not counted. Needs an observation with
/// products.
void fitRates(llvm::ArrayRef<Observation> observations, DeviceKind &kind);

/// The figures that no machine of today has, "memory_bandwidth: 23 PB/s": they
/// explain the times, and nothing else.
std::vector<std::string> findImplausible(const DeviceKind &kind);

} // namespace autohet

#endif
