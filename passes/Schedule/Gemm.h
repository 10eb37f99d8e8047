//===- Gemm.h - which matrix products are one gemm -------------*- C++ -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE_GEMM_H
#define AUTOHET_PASSES_SCHEDULE_GEMM_H

#include "autohet/Dialect/Het/Het.h"
#include <optional>

namespace autohet {

/// A het.matmul as a batched row-major gemm.
struct GemmShape {
  int64_t batch, m, n, k;
  bool transposeA; ///< a is stored [k, m]
  bool transposeB; ///< b is stored [n, k]
};

/// The gemm that `op` is, or nothing where a transpose must come first.
std::optional<GemmShape> matchGemm(het::MatmulOp op);

} // namespace autohet

#endif
