//===- RowSoftmax.h - steps of a row's softmax ------------------*- C++ -*-===//
//
// Softmax, attention and cross entropy take the same steps over the last dim
// of a tensor of any rank.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_CODEGEN_ROWSOFTMAX_H
#define AUTOHET_PASSES_CODEGEN_ROWSOFTMAX_H

#include "HetToLinalg.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace autohet {

/// The largest element a row.
mlir::Value buildRowMaximum(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value x);

/// A scalar: `maximum`, or 0 where it is -inf, so that a row of -inf gives
/// exponentials of 0 and not of NaN.
mlir::Value finiteMaximum(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value maximum);

struct RowExponentials {
  mlir::Value exponentials; ///< exp(x - maximum)
  mlir::Value sums;         ///< their sum a row
};
RowExponentials buildRowExponentials(mlir::OpBuilder &b, mlir::Location loc,
                                     mlir::Value x, mlir::Value maxima,
                                     bool zeroEmptyRows);

/// 1 / sum, or 0 for an empty row where `zeroEmptyRows`.
mlir::Value buildInverseSums(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value sums, bool zeroEmptyRows);

} // namespace autohet

#endif
