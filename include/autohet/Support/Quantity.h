//===- Quantity.h - numbers with units, as people write them ----*- C++ -*-===//
//
// `80 GiB`, `25 GB/s`, `100 Gbit/s`, `5 us`, `312 TFLOP/s`. A unit is never
// guessed: bandwidths in Gbit/s taken for GB/s are the classic wrong plan.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_QUANTITY_H
#define AUTOHET_SUPPORT_QUANTITY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace autohet {

/// What a number counts, in its base unit.
enum class Dimension {
  None,
  Bytes,
  BytesPerSecond,
  FlopsPerSecond,
  Seconds,
  DollarsPerHour
};

/// Finite and not negative, in the base unit. The error says what was found
/// and which units there are; it has no location.
llvm::Expected<double> parseQuantity(llvm::StringRef text, Dimension dimension);

/// A reading for people: "80 GiB", "1.25 GB/s", "50 us".
std::string formatQuantity(double value, Dimension dimension);

} // namespace autohet

#endif
