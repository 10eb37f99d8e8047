//===- HetDialect.cpp - registration and attributes of het ------------------===//
//
// What the dialect itself checks: the names and roles that function arguments
// and results carry. Ops are in the files named after what they answer:
// inference, verification, elementwise forms, adjoints, costs, sharding, folds.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Het/LossTerms.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
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

//===----------------------------------------------------------------------===//
// Attributes that passes read
//===----------------------------------------------------------------------===//

namespace {

/// What the value of one of the dialect's attributes must be.
struct AttributeRule {
  StringRef name, wanted;
  bool (*accepts)(Attribute value);
};

} // namespace

static bool isString(Attribute value) { return isa<StringAttr>(value); }

template <int64_t Minimum>
static bool isAtLeast(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= Minimum;
}

static bool isOneOf(Attribute value, std::initializer_list<StringRef> words) {
  auto text = dyn_cast<StringAttr>(value);
  return text && llvm::is_contained(words, text.getValue());
}

static const AttributeRule kOpRules[] = {
    {kUnitAttr, "a string", isString},
    {kPhaseAttr, "\"backward\", \"reduce\" or \"update\"",
     [](Attribute value) {
       return isOneOf(value, {"backward", "reduce", "update"});
     }},
    {kUnitsAttr, "an array of strings",
     [](Attribute value) {
       auto array = dyn_cast<ArrayAttr>(value);
       return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
     }},
    {kBatchSizeAttr, "an i64 of 1 or more", isAtLeast<1>},
    {kIdAttr, "an i64 of 0 or more", isAtLeast<0>},
    {kAdjointOfAttr, "an i64 of 0 or more", isAtLeast<0>},
    {kNoGradientAttr, "a string", isString},
    {kOfMicrobatchAttr, "a unit attribute",
     [](Attribute value) { return isa<UnitAttr>(value); }},
};

static const AttributeRule kPortRules[] = {
    {kNameAttr, "a string", isString},
    {kRoleAttr, "\"input\", \"labels\" or \"inverse_label_count\"",
     [](Attribute value) {
       return isOneOf(value, {"input", "labels", "inverse_label_count"});
     }},
    {kKindAttr,
     "\"file\", \"tokens\", \"labels\", \"ones\", \"zeros\" or \"arange\"",
     [](Attribute value) {
       return isOneOf(value,
                      {"file", "tokens", "labels", "ones", "zeros", "arange"});
     }},
    {kVocabularyAttr, "an i64 of 0 or more", isAtLeast<0>},
    {kLossFactorAttr, "an f64",
     [](Attribute value) {
       auto number = dyn_cast<FloatAttr>(value);
       return number && number.getType().isF64();
     }},
    // -1: the same for every sample.
    {kBatchDimAttr, "an i64 of -1 or more", isAtLeast<-1>},
};

static LogicalResult verifyAttribute(Operation *op, const llvm::Twine &where,
                                     ArrayRef<AttributeRule> rules,
                                     NamedAttribute attribute) {
  for (const AttributeRule &rule : rules)
    if (attribute.getName() == rule.name && !rule.accepts(attribute.getValue()))
      return op->emitOpError()
             << where << "'" << rule.name << "' must be " << rule.wanted
             << ", but is " << attribute.getValue();
  return success();
}

/// Of an argument or a result of a function.
static LogicalResult verifyPort(Operation *op, StringRef kind, unsigned number,
                                ArrayRef<Type> types,
                                NamedAttribute attribute) {
  std::string where = (kind + " " + llvm::Twine(number) + ": ").str();
  if (failed(verifyAttribute(op, where, kPortRules, attribute)))
    return failure();
  if (number >= types.size())
    return success();
  auto type = dyn_cast<RankedTensorType>(types[number]);
  if (attribute.getName() == kLossFactorAttr &&
      !(type && type.getRank() == 0 && type.getElementType().isF32()))
    return op->emitOpError()
           << where << "'" << kLossFactorAttr
           << "' is for 'tensor<f32>', found " << types[number];
  if (attribute.getName() != kBatchDimAttr)
    return success();
  int64_t dim = cast<IntegerAttr>(attribute.getValue()).getInt();
  if (!type || dim < type.getRank())
    return success();
  return op->emitOpError() << where << "'" << kBatchDimAttr << "' is " << dim
                           << ", which is no dim of " << type;
}

LogicalResult HetDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  return verifyAttribute(op, "attribute ", kOpRules, attribute);
}

LogicalResult HetDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned argument,
                                                   NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verifyPort(op, "argument", argument,
                    function ? function.getArgumentTypes() : ArrayRef<Type>(),
                    attribute);
}

LogicalResult HetDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verifyPort(op, "result", result,
                    function ? function.getResultTypes() : ArrayRef<Type>(),
                    attribute);
}

bool autohet::het::isBackward(Operation *op) { return op->hasAttr(kPhaseAttr); }

/// Rounded towards zero; numbers beyond those of the type are its last one.
static Attribute integerNear(Type type, double value) {
  unsigned width = type.getIntOrFloatBitWidth();
  llvm::APSInt number(width, type.isUnsignedInteger() || width == 1);
  bool isExact = false;
  APFloat(value).convertToInteger(number, APFloat::rmTowardZero, &isExact);
  return IntegerAttr::get(type, number);
}

Value autohet::het::createSplat(OpBuilder &builder, Location loc,
                                RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute scalar = isa<FloatType>(element)
                         ? Attribute(builder.getFloatAttr(element, value))
                         : integerNear(element, value);
  return ConstantOp::create(builder, loc, DenseElementsAttr::get(type, scalar));
}
