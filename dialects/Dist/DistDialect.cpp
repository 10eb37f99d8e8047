//===- DistDialect.cpp - the dist dialect -----------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "autohet/Dialect/Dist/DistDialect.cpp.inc"
#include "autohet/Dialect/Dist/DistEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Dist/DistAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Dist/DistOps.cpp.inc"

void autohet::dist::DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "autohet/Dialect/Dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Dist/DistOps.cpp.inc"
      >();
}
