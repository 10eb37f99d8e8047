//===- ShardingRule.h - how an op may be split, what it costs --*- C++ -*-===//
//
// The plain data that the Shardable and Costed interfaces return.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_DIALECT_HET_SHARDINGRULE_H
#define AUTOHET_DIALECT_HET_SHARDINGRULE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>

namespace autohet::het {

/// What happens to an op's results when one of its factors is split.
enum class FactorKind {
  /// Each shard computes its own box of the results that have the factor, and
  /// a partial sum of those that lack it (a norm's scale gradient, over rows).
  Parallel,
  /// No result has the factor: each shard's results are partial sums.
  Reduction,
  /// The op may not be split along it (or only by exchanging data, which the
  /// op's own partitioning does, as cross entropy over the vocabulary).
  Blocked,
};

/// One index range of the op, like M, N and K of a matrix product.
struct Factor {
  int64_t size;
  FactorKind kind;
};

/// Which factors a dim of an operand or result consists of, major to minor.
/// The product of the factors' sizes is the dim's extent. Empty: the dim is
/// broadcast (extent 1) and always whole.
///   [B*S, H] of a flattened product -> {{b, s}, {k}}
///   [H, 3 * heads * d] fused QKV    -> {{k}, {three, heads, d}}
using DimFactors = llvm::SmallVector<unsigned, 2>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

/// The factors of one op and how its tensors are made of them. An op whose
/// rule has no factors is computed whole on every device.
struct ShardingRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 4> operands;
  llvm::SmallVector<TensorFactors, 2> results;
  /// The op is linear in these operands together, the others held: where each
  /// of them is a partial sum, so are the results. None: in no operand.
  llvm::SmallVector<unsigned, 4> linear;
};

/// `a=2 b=5 c=9 reduction d=8: [a b d] [c d] -> [a b c]`: factors in letters,
/// several of one dim in parentheses, a dim without any as 1; then, where there
/// are any, the operands that it is linear in: `, linear in 0 1`.
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const ShardingRule &rule);

/// Cost of one execution.
struct OpCost {
  /// Floating-point operations in matrix products (2 for a multiply-add).
  double matmulFlops = 0;
  /// All other arithmetic, a transcendental counted as 1.
  double otherFlops = 0;
  double bytesRead = 0;
  double bytesWritten = 0;
};

} // namespace autohet::het

#endif
