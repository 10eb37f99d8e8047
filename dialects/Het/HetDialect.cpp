//===- HetDialect.cpp - registration and attributes of het ------------------===//
//
// What the dialect itself checks: the names and roles that function arguments
// and results carry. Ops are in the files named after what they answer:
// inference, verification, elementwise forms, adjoints, costs, sharding, folds.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace autohet::het;

#include "autohet/Dialect/Het/HetDialect.cpp.inc"
#include "autohet/Dialect/Het/HetEnums.cpp.inc"
#include "autohet/Dialect/Het/HetInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Het/HetAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Het/HetOps.cpp.inc"

void HetDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "autohet/Dialect/Het/HetAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "autohet/Dialect/Het/HetOps.cpp.inc"
      >();
}

Operation *HetDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                           Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

LogicalResult HetDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (attribute.getName() == kUnitAttr &&
      !isa<StringAttr>(attribute.getValue()))
    return op->emitOpError("attribute '")
           << kUnitAttr << "' must be a string, but is "
           << attribute.getValue();
  return success();
}

LogicalResult HetDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  if (attribute.getName() != kRoleAttr)
    return success();
  auto role = dyn_cast<StringAttr>(attribute.getValue());
  if (!role || !llvm::is_contained({"input", "labels", "inverse_label_count"},
                                   role.getValue()))
    return op->emitOpError("argument ")
           << argument << " has role " << attribute.getValue()
           << ", wanted \"input\", \"labels\" or \"inverse_label_count\"";
  return success();
}

bool autohet::het::isBackward(Operation *op) { return op->hasAttr(kPhaseAttr); }

Value autohet::het::createSplat(OpBuilder &builder, Location loc,
                                RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute scalar = isa<FloatType>(element)
                         ? Attribute(builder.getFloatAttr(element, value))
                         : builder.getIntegerAttr(element, int64_t(value));
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, scalar));
}
