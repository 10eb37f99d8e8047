//===- OnnxNode.cpp - what handlers ask of a node -------------------------===//
//
// Every wrong answer is an error that names the node, what was found and what
// is wanted.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;

Value OnnxConversion::lookup(Value value, Location loc, bool asNumbers) {
  if (Value converted = values.lookup(value))
    return converted;
  Operation *op = value.getDefiningOp();
  if (!op || isa<onnx::NoneOp>(op))
    return {};
  auto constant = cast<onnx::InitializerOp>(op);
  if (constant.getFile() && !asNumbers)
    return parameters.use(constant, builder, loc);
  if (constant.getFile())
    return parameters.elements(constant, builder);
  Value converted =
      het::ConstantOp::create(builder, constant.getLoc(), *constant.getValue());
  bind(value, converted);
  return converted;
}

OnnxNode::OnnxNode(onnx::NodeOp op, OnnxConversion &conversion)
    : op(op), conversion(conversion), location(op.getLoc()),
      fields(op.getFields()) {
  bool asNumbers =
      conversion.inference || llvm::any_of(op.getInputs(), [&](Value input) {
        return conversion.isFromShape(input);
      });
  for (Value input : op.getInputs())
    operands.push_back(conversion.lookup(input, location, asNumbers));
}

std::string autohet::describeNode(onnx::NodeOp node) {
  std::string text = "node ";
  if (auto name = dyn_cast<NameLoc>(node.getLoc()))
    text += ("'" + name.getName().getValue() + "' ").str();
  return text + ("(" + node.getOpType() + ")").str();
}

InFlightDiagnostic OnnxNode::error() const {
  return std::move(emitError(location) << describeNode(op) << ": ");
}

RankedTensorType OnnxNode::type(unsigned index) const {
  return tensorType(operands[index]);
}

LogicalResult OnnxNode::needOperands(unsigned count) const {
  for (unsigned i = 0; i < count; ++i)
    if (!has(i))
      return error() << "has no operand " << i << ", wanted " << count
                     << " operands";
  return success();
}

LogicalResult OnnxNode::needFloats(unsigned index) const {
  if (failed(needOperands(index + 1)))
    return failure();
  if (!isFloatTensor(operand(index)))
    return error() << "operand " << index << " is " << type(index)
                   << ", wanted floats";
  return success();
}

bool OnnxNode::isUsed(unsigned result) const {
  return result < numResults() &&
         !const_cast<onnx::NodeOp &>(op)->getResult(result).use_empty();
}

void OnnxNode::widenHalves() {
  for (Value operand : operands) {
    if (!operand || !isFloatTensor(operand))
      continue;
    Type element = tensorType(operand).getElementType();
    if (!(element.isF16() || element.isBF16()) || (half && element != half)) {
      half = Type(); // types that differ are the handler's to judge
      return;
    }
    half = element;
  }
  for (Value &operand : operands)
    if (half && operand && isFloatTensor(operand))
      operand = create<het::CastOp>(operand, builder().getF32Type());
}

void OnnxNode::round(MutableArrayRef<Value> results) const {
  for (Value &result : results)
    if (half && result && tensorType(result).getElementType().isF32())
      result = create<het::CastOp>(result, half);
}

/// Subgraphs are in the order of the names of their fields.
Region *OnnxNode::body(StringRef name) const {
  unsigned index = 0;
  for (NamedAttribute field : fields) {
    auto text = dyn_cast<StringAttr>(field.getValue());
    if (!text || text.getValue() != "<GRAPH>")
      continue;
    if (field.getName() == name)
      return &const_cast<onnx::NodeOp &>(op).getBodies()[index];
    ++index;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

int64_t OnnxNode::intField(StringRef name, int64_t otherwise) const {
  auto attribute = fields.getAs<IntegerAttr>(name);
  return attribute ? attribute.getInt() : otherwise;
}

double OnnxNode::floatField(StringRef name, double otherwise) const {
  auto attribute = fields.getAs<FloatAttr>(name);
  return attribute ? attribute.getValueAsDouble() : otherwise;
}

StringRef OnnxNode::stringField(StringRef name, StringRef otherwise) const {
  auto attribute = fields.getAs<StringAttr>(name);
  return attribute ? attribute.getValue() : otherwise;
}

std::optional<SmallVector<int64_t>> OnnxNode::intsField(StringRef name) const {
  auto attribute = fields.getAs<DenseI64ArrayAttr>(name);
  if (!attribute)
    return std::nullopt;
  return SmallVector<int64_t>(attribute.asArrayRef());
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The name of an input that a value is computed from; null where there is
/// none.
static StringAttr inputBehind(Value value) {
  SmallVector<Value> open = {value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      auto function =
          dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
      auto name = function ? function.getArgAttrOfType<StringAttr>(
                                 argument.getArgNumber(), het::kNameAttr)
                           : StringAttr();
      if (name)
        return name;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (seen.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  return {};
}

LogicalResult OnnxNode::notConstant(unsigned index, StringRef what) const {
  InFlightDiagnostic diagnostic = error();
  diagnostic << what << " (operand " << index
             << ") is not constant, even with all dims bound; shapes that "
                "depend on data are not supported";
  if (StringAttr input = inputBehind(operand(index)))
    diagnostic << "; if it is always the same, give its value with --bind '"
               << input.getValue() << "'=FILE";
  return diagnostic;
}

FailureOr<SmallVector<int64_t>> OnnxNode::constantInts(unsigned index,
                                                       StringRef what) const {
  DenseElementsAttr elements;
  if (!matchPattern(operand(index), m_Constant(&elements)))
    return notConstant(index, what);
  if (!isa<IntegerType>(elements.getElementType()))
    return error() << what << " (operand " << index << ") is "
                   << elements.getType() << ", wanted integers";
  SmallVector<int64_t> values;
  for (const APInt &value : elements.getValues<APInt>())
    values.push_back(value.getSExtValue());
  return values;
}

FailureOr<double> OnnxNode::constantFloat(unsigned index,
                                          StringRef what) const {
  DenseElementsAttr elements;
  if (!matchPattern(operand(index), m_Constant(&elements)))
    return notConstant(index, what);
  if (!isa<FloatType>(elements.getElementType()) ||
      elements.getNumElements() != 1)
    return error() << what << " (operand " << index << ") is " << type(index)
                   << ", wanted one constant number";
  APFloat value = *elements.getValues<APFloat>().begin();
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

FailureOr<std::optional<SmallVector<int64_t>>>
OnnxNode::fieldOrOperand(StringRef field, unsigned index) const {
  if (has(index)) {
    auto values = constantInts(index, field);
    if (failed(values))
      return failure();
    return std::optional(*values);
  }
  return intsField(field);
}

FailureOr<int64_t> OnnxNode::normalizeAxis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    return error() << "axis " << axis << " is outside a tensor of rank "
                   << rank;
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> OnnxNode::normalizeAxes(ArrayRef<int64_t> axes,
                                                        int64_t rank) const {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    auto normal = normalizeAxis(axis, rank);
    if (failed(normal))
      return failure();
    result.push_back(*normal);
  }
  llvm::sort(result);
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return error() << "an axis is listed twice in [" << axes << "]";
  return result;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

Value OnnxNode::reshape(Value value, ArrayRef<int64_t> shape) const {
  return create<het::ReshapeOp>(value, shape);
}
Value OnnxNode::transpose(Value value, ArrayRef<int64_t> permutation) const {
  return create<het::TransposeOp>(value, permutation);
}
Value OnnxNode::broadcast(Value value, ArrayRef<int64_t> shape) const {
  return create<het::BroadcastOp>(value, shape);
}

Value OnnxNode::constantInts(ArrayRef<int64_t> values) const {
  return het::ConstantOp::create(builder(), location,
                                 builder().getI64TensorAttr(values));
}

Value OnnxNode::scalarLike(Value value, double number) const {
  return het::createSplat(
      builder(), location,
      RankedTensorType::get({}, tensorType(value).getElementType()), number);
}

LogicalResult OnnxNode::needBroadcast(Value lhs, Value rhs) const {
  RankedTensorType l = tensorType(lhs), r = tensorType(rhs);
  if (l.getElementType() != r.getElementType())
    return error() << "operands are " << l << " and " << r
                   << ", wanted one element type";
  if (failed(het::broadcastShapes(l.getShape(), r.getShape())))
    return error() << "shapes [" << l.getShape() << "] and [" << r.getShape()
                   << "] do not broadcast";
  return success();
}

Type autohet::onnxElementType(int64_t number, MLIRContext *context) {
  // TensorProto.DataType; the reader's table is in lib/Frontend/ONNX.
  switch (number) {
  case 1:
    return Float32Type::get(context);
  case 2:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case 3:
    return IntegerType::get(context, 8);
  case 4:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case 5:
    return IntegerType::get(context, 16);
  case 6:
    return IntegerType::get(context, 32);
  case 7:
    return IntegerType::get(context, 64);
  case 9:
    return IntegerType::get(context, 1);
  case 10:
    return Float16Type::get(context);
  case 11:
    return Float64Type::get(context);
  case 12:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  case 13:
    return IntegerType::get(context, 64, IntegerType::Unsigned);
  case 16:
    return BFloat16Type::get(context);
  case 17:
    return Float8E4M3FNType::get(context);
  case 18:
    return Float8E4M3FNUZType::get(context);
  case 19:
    return Float8E5M2Type::get(context);
  case 20:
    return Float8E5M2FNUZType::get(context);
  case 21:
    return IntegerType::get(context, 4, IntegerType::Unsigned);
  case 22:
    return IntegerType::get(context, 4);
  case 23:
    return Float4E2M1FNType::get(context);
  case 25:
    return IntegerType::get(context, 2, IntegerType::Unsigned);
  case 26:
    return IntegerType::get(context, 2);
  default:
    return {};
  }
}
