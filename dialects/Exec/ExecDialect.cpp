//===- ExecDialect.cpp - registration of the exec dialect -----------------===//

#include "autohet/Dialect/Exec/Exec.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "autohet/Dialect/Exec/ExecDialect.cpp.inc"
#include "autohet/Dialect/Exec/ExecEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Exec/ExecAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Exec/ExecTypes.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Exec/ExecOps.cpp.inc"

void autohet::exec::ExecDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Exec/ExecOps.cpp.inc"
      >();
}
