//===- OnnxDialect.cpp - registration of the onnx dialect -----------------===//

#include "autohet/Dialect/Onnx/Onnx.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "autohet/Dialect/Onnx/OnnxDialect.cpp.inc"
#include "autohet/Dialect/Onnx/OnnxEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Onnx/OnnxAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Onnx/OnnxTypes.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Onnx/OnnxOps.cpp.inc"

void autohet::onnx::OnnxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Onnx/OnnxOps.cpp.inc"
      >();
}
