//===- Exec.h - the exec dialect -------------------------------*- C++ -*-===//

#ifndef AUTOHET_DIALECT_EXEC_EXEC_H
#define AUTOHET_DIALECT_EXEC_EXEC_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "autohet/Dialect/Exec/ExecDialect.h.inc"
#include "autohet/Dialect/Exec/ExecEnums.h.inc"
#include "autohet/Dialect/Exec/ExecInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Exec/ExecAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Exec/ExecTypes.h.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Exec/ExecOps.h.inc"

namespace autohet::exec {

/// Alignment of every buffer: a cache line and the widest vector.
inline constexpr int64_t kBufferAlignment = 64;

/// On a lowered kernel: the bytes of scratch memory that it takes as its last
/// operand. None: it takes none.
inline constexpr llvm::StringLiteral kScratchBytesAttr =
    "autohet.scratch_bytes";

/// Bytes that a tensor takes in memory; an i1 element takes one.
int64_t sizeInBytes(mlir::RankedTensorType type);

/// What traces, predictions and errors call a command: what it does, and to
/// which unit's or parameter's buffer, or in which transfer.
std::string nameOf(CommandOpInterface command);

} // namespace autohet::exec

#endif
