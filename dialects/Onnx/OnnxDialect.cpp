//===- OnnxDialect.cpp - the onnx dialect and its ops ---------------------===//
//
// Registration and verification.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Onnx/Onnx.h"

#include "autohet/Support/Extents.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet::onnx;

#include "autohet/Dialect/Onnx/OnnxDialect.cpp.inc"
#include "autohet/Dialect/Onnx/OnnxEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Onnx/OnnxAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Onnx/OnnxTypes.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Onnx/OnnxOps.cpp.inc"

void OnnxDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "autohet/Dialect/Onnx/OnnxTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Onnx/OnnxOps.cpp.inc"
      >();
}

/// The value that an input of a graph is bound to is one of its type.
LogicalResult OnnxDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attribute.getName() != kValueAttr || !function)
    return success();
  Type type = function.getArgumentTypes()[argument];
  auto value = dyn_cast<ElementsAttr>(attribute.getValue());
  if (value && value.getType() == type)
    return success();
  InFlightDiagnostic error = op->emitOpError("argument ")
                             << argument << ": '" << kValueAttr
                             << "' must be elements of type " << type;
  return value ? error << ", but has type " << value.getType()
               : error << ", but is " << attribute.getValue();
}

LogicalResult InitializerOp::verify() {
  bool inFile = getFile() && getOffset() && getBytes();
  if (getValue().has_value() == inFile)
    return emitOpError("needs either a value or a file, an offset and bytes");
  auto type = cast<RankedTensorType>(getResult().getType());
  if (getValue() && getValue()->getType() != type)
    return emitOpError("value has type ")
           << getValue()->getType() << ", wanted the result's " << type;
  if (!inFile)
    return success();
  std::optional<int64_t> elements = countElements(type.getShape());
  if (!elements || !type.getElementType().isIntOrFloat())
    return emitOpError("cannot be ") << type << ": wanted at most "
                                     << kMaxElements << " integers or floats";
  int64_t size =
      *elements * int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  if (*getBytes() != uint64_t(size))
    return emitOpError("has ")
           << *getBytes() << " bytes, wanted " << size << " for " << type;
  return success();
}

LogicalResult NodeOp::verify() {
  auto graphs = llvm::count_if(getFields(), [](NamedAttribute field) {
    auto text = dyn_cast<StringAttr>(field.getValue());
    return text && text.getValue() == "<GRAPH>";
  });
  if (size_t(graphs) != getBodies().size())
    return emitOpError("has ")
           << getBodies().size() << " bodies, wanted " << graphs
           << ": one for each field that is \"<GRAPH>\"";
  if (getDeclared() && getDeclared()->size() != getNumResults())
    return emitOpError("declares ")
           << getDeclared()->size() << " types, wanted one for each of its "
           << getNumResults() << " results";
  return success();
}
