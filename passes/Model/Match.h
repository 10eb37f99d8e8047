//===- Match.h - seeing through how exporters write a formula ---*- C++ -*-===//
//
// The same formula reaches us as Pow(x, 2) or Mul(x, x), as Div by a constant
// or Mul by its reciprocal, with operands in either order. The helpers here
// read a value as mathematics, so that each pattern is written once.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_MATCH_H
#define AUTOHET_PASSES_MODEL_MATCH_H

#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/PatternMatch.h"
#include <optional>
#include <utility>

namespace autohet {

/// Equal to `wanted` up to the rounding of a constant to f32.
bool isClose(double value, double wanted);

/// `coefficient * factors[0] * factors[1] * ...`
///   x * 0.5 * (1 + e)  -> {0.5, [x, 1 + e]}
///   pow(x, 3) / 2      -> {0.5, [x, x, x]}
struct Product {
  double coefficient = 1;
  llvm::SmallVector<mlir::Value, 4> factors;

  /// Removes one occurrence of `value`; whether there was one.
  bool take(mlir::Value value);
};

/// Reads `value` as a product, down through products, quotients by constants,
/// negations and small integer powers.
Product matchProduct(mlir::Value value);

/// `constant + terms[0] + terms[1] + ...`
struct Sum {
  double constant = 0;
  llvm::SmallVector<mlir::Value, 4> terms;
};

/// Reads `value` as a sum, down through sums with `depth` levels.
Sum matchSum(mlir::Value value, unsigned depth = 2);

/// x, where `value` is x * x.
mlir::Value matchSquare(mlir::Value value);

/// x, where `value` is the mean of x over its last dim, with that dim kept as 1
/// (by `keep` or by a reshape); sum / N and sum * (1 / N) are means too.
mlir::Value matchLastMean(mlir::Value value);

/// a and b, where `value` is a / sqrt(b): by rsqrt, by 1 / sqrt, by quotient.
std::optional<std::pair<mlir::Value, mlir::Value>>
matchQuotientByRoot(mlir::Value value);

/// Whether integers are known to be at least 0 and below `extent`: places of a
/// largest element, or of the k largest, among so many.
bool isPlaceWithin(mlir::Value value, int64_t extent);

/// Runs patterns together with het's canonicalization until nothing changes;
/// `changed`: whether something did.
llvm::LogicalResult applyModelPatterns(mlir::Operation *root,
                                       mlir::RewritePatternSet patterns,
                                       bool *changed = nullptr);

} // namespace autohet

#endif
