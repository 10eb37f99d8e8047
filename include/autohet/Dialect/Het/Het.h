//===- Het.h - the het dialect ---------------------------------*- C++ -*-===//

#ifndef AUTOHET_DIALECT_HET_HET_H
#define AUTOHET_DIALECT_HET_HET_H

#include "autohet/Dialect/Het/ShardingRule.h"
#include "autohet/Dialect/Het/Shards.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir {
class RewritePatternSet;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

#include "autohet/Dialect/Het/HetDialect.h.inc"
#include "autohet/Dialect/Het/HetEnums.h.inc"

#include "autohet/Dialect/Het/HetInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Het/HetAttrs.h.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Het/HetOps.h.inc"

namespace autohet {

/// Of a value of the dialect: all are ranked tensors.
inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

} // namespace autohet

namespace autohet::het {

/// Attribute and argument names of the dialect, spelled once.
inline constexpr llvm::StringLiteral kNameAttr = "het.name";
inline constexpr llvm::StringLiteral kRoleAttr = "het.role";
inline constexpr llvm::StringLiteral kUnitAttr = "het.unit";
/// On an integer argument: its values are below this (or the ignored label).
inline constexpr llvm::StringLiteral kVocabularyAttr = "het.vocabulary";
/// The unit of ops that depend on no weight: repeated wherever they are read.
inline constexpr llvm::StringLiteral kInputsUnit = "inputs";
/// On a function: its units' names, each before those that read it.
inline constexpr llvm::StringLiteral kUnitsAttr = "het.units";
/// `"backward"` on the ops that differentiate built, `"reduce"` and `"update"`
/// on those that exchange and apply gradients; forward ops have none.
inline constexpr llvm::StringLiteral kPhaseAttr = "het.phase";
/// On an untrained `het.parameter`: `--freeze` named it. It is a weight, placed
/// like one, whereas other untrained parameters are tables and masks.
inline constexpr llvm::StringLiteral kFrozenAttr = "het.frozen";
/// On a trained `het.parameter` without gradient: the reason, as text.
inline constexpr llvm::StringLiteral kNoGradientAttr = "het.no_gradient";
/// A forward op's number, and which forward op a backward op serves. Written by
/// differentiate, replaced by units in number-units.
inline constexpr llvm::StringLiteral kIdAttr = "het.id";
inline constexpr llvm::StringLiteral kAdjointOfAttr = "het.adjoint_of";
/// On an op of a kernel: its operands' integers, its result's, are unsigned,
/// which its types no longer say.
inline constexpr llvm::StringLiteral kUnsignedAttr = "het.unsigned";
inline constexpr llvm::StringLiteral kToUnsignedAttr = "het.to_unsigned";
/// Whether an op's first operand holds unsigned integers.
bool isUnsignedOp(mlir::Operation *op);
/// On an input: which of its dims counts samples (-1: none does).
inline constexpr llvm::StringLiteral kBatchDimAttr = "het.batch_dim";
/// On a model function: the batch that it is for, in samples.
inline constexpr llvm::StringLiteral kBatchSizeAttr = "het.batch_size";
/// On a module: which constants are parameters is known, not guessed.
inline constexpr llvm::StringLiteral kParametersListedAttr =
    "het.parameters_listed";
/// On an input: what feeds it where no file does.
inline constexpr llvm::StringLiteral kKindAttr = "het.kind";

/// NumPy's broadcasting of two shapes, aligned at the last dim.
///   [2, 3, 4] with [3, 1] -> [2, 3, 4];  [2] with [3] -> failure
llvm::FailureOr<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);

/// Sums `value` down to `type`'s shape: the adjoint of broadcasting it up.
mlir::Value reduceToType(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value value, mlir::RankedTensorType type);

/// Whether programs know the type: what HetTypes.td calls a number.
bool isElement(mlir::Type type);

/// Whether the shape is static and has no more elements than any device holds:
/// what the dialect asks of its tensors.
bool hasKnownSize(mlir::RankedTensorType type);

/// Verifies what passes that walk a function's ops in order rely on: one block
/// of ops without regions, which ends in a return, and static tensors of
/// elements that kernels know as arguments and results.
llvm::LogicalResult verifyStraightLine(mlir::func::FuncOp function);

/// Verifies that `type` is a box at `offsets` of a tensor of shape `global`;
/// both are absent where it is the whole. Also for ops of other dialects.
llvm::LogicalResult verifyBox(mlir::Operation *op, mlir::RankedTensorType type,
                              std::optional<llvm::ArrayRef<int64_t>> offsets,
                              std::optional<llvm::ArrayRef<int64_t>> global);

/// Whether differentiate built the op.
bool isBackward(mlir::Operation *op);

/// A splat constant of `type`.
mlir::Value createSplat(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::RankedTensorType type, double value);

/// The one value that all elements of a constant have.
std::optional<double> getSplatValue(mlir::Value value);

/// What the canonicalizer does to het, for passes that match right after it.
void populateCanonicalizationPatterns(mlir::RewritePatternSet &patterns);

} // namespace autohet::het

#endif
