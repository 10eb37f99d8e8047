//===- Fit.h - rates of a device from measured units -----------*- C++ -*-===//
//
// The cost model says that a unit takes
//
//   seconds = overheads * overhead + flops / rate + bytes / bandwidth
//
// Given seconds of many units, the three numbers that explain them best.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_AUTOHET_PROFILE_FIT_H
#define AUTOHET_TOOLS_AUTOHET_PROFILE_FIT_H

#include "llvm/ADT/ArrayRef.h"

namespace autohet {

struct Observation {
  double overheads = 0, flops = 0, bytes = 0;
  double seconds = 0;
  double weight = 1; ///< of its error
};

struct FittedRates {
  double overhead_s = 0;
  double flops_per_s = 0;
  double bandwidth_bytes_per_s = 0; ///< 0: traffic explains nothing

  double seconds(const Observation &of) const;
};

/// Least weighted squares with no number below 0 and a finite rate. Needs an
/// observation with flops.
FittedRates fitRates(llvm::ArrayRef<Observation> observations);

} // namespace autohet

#endif
