//===- Dist.h - the dist dialect --------------------------------*- C++ -*-===//

#ifndef AUTOHET_DIALECT_DIST_DIST_H
#define AUTOHET_DIALECT_DIST_DIST_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "autohet/Dialect/Dist/DistDialect.h.inc"
#include "autohet/Dialect/Dist/DistEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Dist/DistOps.h.inc"

namespace autohet::dist {

/// More ranks than any job has, and the channels that a message's tag has room
/// for.
inline constexpr int64_t kMaxRanks = int64_t(1) << 16;
inline constexpr int64_t kMaxChannels = int64_t(1) << 20;

/// On a function: whose program it is, a `#dist.program`.
inline constexpr llvm::StringLiteral kProgramAttr = "dist.program";
/// On a function: which stage it is, a `#dist.stage`.
inline constexpr llvm::StringLiteral kStageAttr = "dist.stage";
/// On the module: the plan, as the text of its file.
inline constexpr llvm::StringLiteral kPlanAttr = "dist.plan";
/// On the module: the names of the cluster's nodes in the order of its file,
/// which is that of ranks.
inline constexpr llvm::StringLiteral kNodesAttr = "dist.nodes";
/// On a module of programs: the text of the cluster file that they are for.
inline constexpr llvm::StringLiteral kClusterAttr = "dist.cluster";
/// On a result that is a box of a model's output: where it begins, and the
/// output's whole shape (of one microbatch).
inline constexpr llvm::StringLiteral kOffsetsAttr = "dist.offsets";
inline constexpr llvm::StringLiteral kGlobalShapeAttr = "dist.global_shape";

/// On a transfer of the exchange: what it carries, for traces, as text.
inline constexpr llvm::StringLiteral kLabelAttr = "dist.label";

/// Buffers start at multiples of so many bytes.
inline constexpr int64_t kRunAlignment = 64;

/// The byte of `whole` that `box` starts at, where it is a run of rows: in one
/// piece, and aligned as a buffer is, so that it may be used where it lies.
/// Offsets are within the parameter, sizes of one rank.
std::optional<int64_t> findRun(llvm::ArrayRef<int64_t> wholeOffsets,
                               llvm::ArrayRef<int64_t> wholeSizes,
                               llvm::ArrayRef<int64_t> boxOffsets,
                               llvm::ArrayRef<int64_t> boxSizes,
                               mlir::Type element);

/// Verifies what no stage's function can say alone, for passes that rely on it:
/// of each (replica, stage) there is one, all are of one world, no rank serves
/// two, their ops are of het and dist, and each transfer has its other end.
llvm::LogicalResult verifyStages(mlir::ModuleOp module);

/// The same of devices' functions: of each rank there is one, all of one world.
/// A transfer's other end may be missing, for a test of one device.
llvm::LogicalResult verifyPrograms(mlir::ModuleOp module);

} // namespace autohet::dist

#endif
