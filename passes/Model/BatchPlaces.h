//===- BatchPlaces.h - where the batch lies in a value ----------*- C++ -*-===//
//
// Private to `het-unflatten`: followed from the inputs before the batch is a
// dim of its own everywhere. Says nothing about what ops may do with it; that
// is `het-verify-model`'s.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_BATCHPLACES_H
#define AUTOHET_PASSES_MODEL_BATCHPLACES_H

#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace autohet {

/// Dim `dim` is outer * batch * inner.
struct BatchPlace {
  int64_t dim, outer, inner;
  bool operator==(const BatchPlace &other) const {
    return dim == other.dim && outer == other.outer && inner == other.inner;
  }
};

/// A dim of a reshape's result that consists of the batch and other factors of
/// the operand's dims, in this order.
struct MergedBatch {
  int64_t dim;
  llvm::SmallVector<int64_t> factors;
};

class BatchPlaces {
public:
  /// Follows the batch through `function`; nowhere if its size is unknown.
  explicit BatchPlaces(mlir::func::FuncOp function);

  /// The dim in which `reshape` merges the batch, if it does.
  std::optional<MergedBatch> getMerged(het::ReshapeOp reshape) const;

private:
  void follow(mlir::Operation *op);
  void followReshape(het::ReshapeOp op);
  void add(mlir::Value value, BatchPlace place);

  int64_t batch = 0;
  /// A batch of 1 fits between any two dims: then there are several places.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<BatchPlace, 1>> places;
};

/// The dim of an op's results that dim `dim` of operand number `operand`
/// becomes, where it stays a dim of its own.
std::optional<int64_t> resultDim(mlir::Operation *op, unsigned operand,
                                 int64_t dim);

/// The factors of dim `dim` of a reshape's result, as far as the operand's dims
/// tell them apart: [10, 2, 32] to [10, 8, 8], dim 1: [2, 4]. Empty where the
/// dims do not divide each other.
llvm::SmallVector<int64_t> factorsOf(het::ReshapeOp reshape, int64_t dim);

} // namespace autohet

#endif
