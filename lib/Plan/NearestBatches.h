//===- NearestBatches.h - which batches replicas can make ------*- C++ -*-===//

#ifndef AUTOHET_LIB_PLAN_NEARESTBATCHES_H
#define AUTOHET_LIB_PLAN_NEARESTBATCHES_H

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace autohet {

/// Counts of microbatches, one a replica and each at least one, that make
/// `wanted`, which such replicas can make (see nearestBatches); as equal parts
/// as adding one microbatch at a time finds.
std::vector<int64_t> countsForBatch(llvm::ArrayRef<int64_t> microbatchSizes,
                                    int64_t wanted);

} // namespace autohet

#endif
