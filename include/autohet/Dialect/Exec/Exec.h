//===- Exec.h - the exec dialect --------------------------------*- C++ -*-===//

#ifndef AUTOHET_DIALECT_EXEC_EXEC_H
#define AUTOHET_DIALECT_EXEC_EXEC_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "autohet/Dialect/Exec/ExecDialect.h.inc"
#include "autohet/Dialect/Exec/ExecEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Exec/ExecAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Exec/ExecTypes.h.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Exec/ExecOps.h.inc"

#endif
