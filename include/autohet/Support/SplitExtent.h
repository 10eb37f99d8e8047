//===- SplitExtent.h - the one way to cut an extent -------------*- C++ -*-===//
//
// Heads, hidden columns, vocabulary rows and batches are cut among ranks by
// this function and no other, so that planner, partitioner and checkpoint agree
// on who holds what without telling each other.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_SUPPORT_SPLITEXTENT_H
#define AUTOHET_SUPPORT_SPLITEXTENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace autohet {

/// Sizes of consecutive parts of `extent` in proportion to `weights`: each the
/// exact share rounded down or up, the largest remainders up, the lower rank
/// first among equal ones. The sizes add up to `extent`; nothing is padded; a
/// part may be empty, and one of weight 0 always is.
///
///   extent  weights      sizes
///   ------  -----------  -----------
///       11  [1, 1]       [6, 5]
///       25  [1, 1, 1, 1] [7, 6, 6, 6]
///        8  [4, 1, 2, 1] [4, 1, 2, 1]
///        2  [1, 1, 1]    [1, 1, 0]
///        7  [2, 1]       [5, 2]
///        0  [1, 1]       [0, 0]
///
/// Weights are not negative, sum to more than 0 and to less than 2^31.
llvm::SmallVector<int64_t> splitExtent(int64_t extent,
                                       llvm::ArrayRef<int64_t> weights);

/// As above with `parts` equal weights.
llvm::SmallVector<int64_t> splitExtentEvenly(int64_t extent, int64_t parts);

/// Where the parts begin: the running sums of `sizes`, without the total.
llvm::SmallVector<int64_t> partOffsets(llvm::ArrayRef<int64_t> sizes);

} // namespace autohet

#endif
