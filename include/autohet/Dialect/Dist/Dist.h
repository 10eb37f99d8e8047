//===- Dist.h - the dist dialect --------------------------------*- C++ -*-===//

#ifndef AUTOHET_DIALECT_DIST_DIST_H
#define AUTOHET_DIALECT_DIST_DIST_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
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

/// On a function: whose program it is, a `#dist.program`.
inline constexpr llvm::StringLiteral kProgramAttr = "dist.program";
/// On a function: which stage it is, a `#dist.stage`.
inline constexpr llvm::StringLiteral kStageAttr = "dist.stage";
/// On the module: the plan, as the text of its file.
inline constexpr llvm::StringLiteral kPlanAttr = "dist.plan";
/// On the module: the names of the cluster's nodes in the order of its file,
/// which is that of ranks.
inline constexpr llvm::StringLiteral kNodesAttr = "dist.nodes";

} // namespace autohet::dist

#endif
