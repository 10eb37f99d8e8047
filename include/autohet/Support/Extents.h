//===- Extents.h - how many elements a shape has ----------------*- C++ -*-===//

#ifndef AUTOHET_SUPPORT_EXTENTS_H
#define AUTOHET_SUPPORT_EXTENTS_H

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cstdint>
#include <optional>

namespace autohet {

/// The most elements that a tensor may have: 4 TiB of f32, more than a device
/// holds, and few enough that no sum of sizes or costs overflows.
inline constexpr int64_t kMaxElements = int64_t(1) << 40;

/// The product of the extents; nothing where one is negative (or not known), or
/// where there would be more than kMaxElements.
inline std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape) {
  bool isEmpty = false;
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || extent > kMaxElements)
      return std::nullopt;
    isEmpty |= extent == 0;
    if (extent > 0 && count > kMaxElements / extent)
      return std::nullopt;
    count *= std::max<int64_t>(extent, 1);
  }
  return isEmpty ? 0 : count;
}

} // namespace autohet

#endif
