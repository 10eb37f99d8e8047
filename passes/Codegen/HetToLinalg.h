//===- HetToLinalg.h - shared by the lowerings of het ops -------*- C++ -*-===//
//
// One file per family of ops populates its patterns; the helpers here build
// the few shapes of linalg.generic that they all consist of.
//
// A kernel's last argument is the runtime's context (`!llvm.ptr` to
// ah_kernel_context) while it is lowered: ops that draw random numbers or
// check indices reach it through `getKernelContext`.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_CODEGEN_HETTOLINALG_H
#define AUTOHET_PASSES_CODEGEN_HETTOLINALG_H

#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace autohet {

/// Kernels that may fail carry this unit attribute: their entry resets and
/// reads the context's error.
inline constexpr llvm::StringLiteral kMayFailAttr = "autohet.may_fail";

/// Where in its scratch memory a kernel's temporaries start: its last arguments
/// before the context.
inline constexpr llvm::StringLiteral kScratchOffsetsAttr =
    "autohet.scratch_offsets";

/// Leaves only element types that kernels compute in or move; see
/// LegalizeTypes.cpp.
void legalizeTypes(mlir::func::FuncOp kernel);

/// Whether elements of this type are a byte in memory that nothing but casts
/// looks into; see SmallTypes.cpp.
bool isStoredOnly(mlir::Type element);
/// Replaces a cast from or to such a type by ops on bytes. The operand may be
/// bytes already.
void lowerSmallCast(het::CastOp op, mlir::Type from, mlir::Type to);

void populateElementwiseLowering(mlir::RewritePatternSet &patterns);
void populateReductionLowering(mlir::RewritePatternSet &patterns);
void populateNormLowering(mlir::RewritePatternSet &patterns);
void populateSoftmaxLowering(mlir::RewritePatternSet &patterns);
void populateLossLowering(mlir::RewritePatternSet &patterns);
void populateMatmulLowering(mlir::RewritePatternSet &patterns);
void populateAttentionLowering(mlir::RewritePatternSet &patterns);
void populateRotaryLowering(mlir::RewritePatternSet &patterns);
void populateDropoutLowering(mlir::RewritePatternSet &patterns);
void populateIndexLowering(mlir::RewritePatternSet &patterns);
void populateShapeLowering(mlir::RewritePatternSet &patterns);
void populateOrderLowering(mlir::RewritePatternSet &patterns);

//===----------------------------------------------------------------------===//
// Building linalg
//===----------------------------------------------------------------------===//

/// Builds a loop body: receives the scalars of inputs, then of outputs; returns
/// one scalar an output.
using BodyBuilder = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// linalg.generic over static tensors. Loops that the first output's map does
/// not name are reductions. `outputs` are the initial values.
llvm::SmallVector<mlir::Value>
buildGeneric(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange inputs,
             mlir::ValueRange outputs, llvm::ArrayRef<mlir::AffineMap> maps,
             llvm::ArrayRef<bool> isReduction, BodyBuilder body);

/// One result of `shape`, no reduction: `maps` are those of the inputs.
mlir::Value
buildMap(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange inputs,
         llvm::ArrayRef<mlir::AffineMap> maps, llvm::ArrayRef<int64_t> shape,
         mlir::Type element,
         llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                        mlir::ValueRange)>
             body);

/// acc + the sum of products that the maps of lhs, rhs and acc describe.
mlir::Value buildContract(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value lhs, mlir::Value rhs, mlir::Value acc,
                          llvm::ArrayRef<mlir::AffineMap> maps);

/// The map by which an operand of `shape` is read in a loop nest over `result`
/// (NumPy's broadcasting, aligned at the last dim).
///   [3, 1] in [2, 3, 4] -> (i, j, k) -> (j, 0)
mlir::AffineMap broadcastMap(mlir::MLIRContext *context,
                             llvm::ArrayRef<int64_t> shape,
                             llvm::ArrayRef<int64_t> result);

/// (d0, .., dn-1) -> (d0, .., dn-2): a value a row.
mlir::AffineMap rowMap(mlir::MLIRContext *context, unsigned rank);
/// (d0, .., dn-1) -> (dn-1): a value a column.
mlir::AffineMap columnMap(mlir::MLIRContext *context, unsigned rank);

/// tensor.empty of a static shape.
mlir::Value emptyTensor(mlir::OpBuilder &b, mlir::Location loc,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element);
/// A tensor all of whose elements are `value`.
mlir::Value filledTensor(mlir::OpBuilder &b, mlir::Location loc,
                         llvm::ArrayRef<int64_t> shape, mlir::Attribute value);
mlir::Value zeroTensor(mlir::OpBuilder &b, mlir::Location loc,
                       llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// Reinterprets a static tensor's elements, by collapse and expand.
mlir::Value reshapeTensor(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value tensor, llvm::ArrayRef<int64_t> shape);

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Flags of sums: reordering and contraction, nothing that assumes finiteness.
mlir::arith::FastMathFlags sumFlags();
/// Flags of a maximum that seeds exponentials. NaN reaches the result through
/// the exponentials themselves.
mlir::arith::FastMathFlags maxFlags();

mlir::Value floatConstant(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Type type, double value);
mlir::Value indexConstant(mlir::OpBuilder &b, mlir::Location loc,
                          int64_t value);
mlir::Value intConstant(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                        int64_t value);
/// acc + value, free to be reordered.
mlir::Value sum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value acc,
                mlir::Value value);
mlir::Value maximum(mlir::OpBuilder &b, mlir::Location loc, mlir::Value acc,
                    mlir::Value value);
/// a * b, which may be contracted with a following sum.
mlir::Value product(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lhs,
                    mlir::Value rhs);

//===----------------------------------------------------------------------===//
// The kernel's context
//===----------------------------------------------------------------------===//

/// The context argument of the kernel that `op` is in.
mlir::Value getKernelContext(mlir::Operation *op);

enum class ContextField {
  Seed = 0,
  Step,
  FirstSample,
  ErrorIndex,
  ErrorValue,
  Evaluates
};

/// Loads a field of ah_kernel_context, an i64.
mlir::Value loadContext(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value context, ContextField field);

/// Makes the kernel fail if any element of `indices` (of integers) lies outside
/// [lower, upper) and is not `except`. Emitted ahead of the uses, which still
/// clamp: a failed kernel computes nonsense but touches no foreign memory.
void checkIndices(mlir::OpBuilder &b, mlir::Location loc, mlir::Operation *op,
                  mlir::Value indices, int64_t lower, int64_t upper,
                  std::optional<int64_t> except = std::nullopt);

/// The same for tuples into the dims of `shape` that begin with `firstDim`:
/// each column of `indices` has bounds of its own, and may be negative.
void checkTuples(mlir::OpBuilder &b, mlir::Location loc, mlir::Operation *op,
                 mlir::Value indices, llvm::ArrayRef<int64_t> shape,
                 unsigned firstDim);

/// An element of an integer tensor as an index, clamped to [0, extent), where
/// negative ones count from the end.
mlir::Value wrapToExtent(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value index, int64_t extent);

} // namespace autohet

#endif
