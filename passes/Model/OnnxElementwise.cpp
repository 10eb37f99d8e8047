//===- OnnxElementwise.cpp - elementwise nodes ----------------------------===//

#include "OnnxMath.h"

#include <limits>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

template <typename OpT>
static LogicalResult convertFloatUnary(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  results.push_back(node.create<OpT>(node.operand(0)));
  return success();
}

template <typename OpT>
static LogicalResult convertUnary(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  results.push_back(node.create<OpT>(node.operand(0)));
  return success();
}

static LogicalResult convertIdentity(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  results.push_back(node.operand(0));
  return success();
}

static bool isUnsigned(Value value) {
  return tensorType(value).getElementType().isUnsignedInteger();
}

/// What lies outside the range of a small type becomes its largest number, or,
/// without `saturate`, infinity (and NaN in types that have none).
static Value limitTo(OnnxNode &node, Value value, FloatType small) {
  OnnxMath math(node);
  value = math.cast(value, node.builder().getF32Type());
  const llvm::fltSemantics &semantics = small.getFloatSemantics();
  double largest = APFloat::getLargest(semantics).convertToDouble();
  if (node.intField("saturate", 1) || small.getWidth() < 8)
    return math.max(math.min(value, largest), -largest);
  // Half a step above the largest, the even one of its neighbours is beyond.
  APFloat below = APFloat::getLargest(semantics);
  below.next(/*nextDown=*/true);
  double limit = largest + (largest - below.convertToDouble()) / 2;
  Value outside =
      math.compare(het::ComparePredicate::ge, math.abs(value), limit);
  double infinity = std::numeric_limits<double>::infinity();
  Value isNegative = math.compare(het::ComparePredicate::lt, value, 0);
  Value infinite = math.select(isNegative, math.like(value, -infinity),
                               math.like(value, infinity));
  return math.select(outside, infinite, value);
}

/// Training computes in float32; what folds away may be of any type.
static LogicalResult castTo(OnnxNode &node, Type element, Results &results) {
  if (!node.inference() && (element.isF16() || element.isBF16()))
    return node.error() << "casts to "
                        << (element.isF16() ? "FLOAT16" : "BFLOAT16")
                        << "; only float32 models are supported in training: "
                           "export the model in float32";
  Value value = node.operand(0);
  if (auto small = dyn_cast<FloatType>(element); small && small.getWidth() < 16)
    value = limitTo(node, value, small);
  Value result = node.create<het::CastOp>(value, element);
  if (!node.inference() && element.isF64() &&
      !result.getDefiningOp<het::ConstantOp>())
    return node.error()
           << "computes in float64, which is not supported in training";
  results.push_back(result);
  return success();
}

static LogicalResult convertCastLike(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  return castTo(node, node.type(1).getElementType(), results);
}

/// The number of an element type; before opset 6 its name.
static int64_t castTarget(OnnxNode &node) {
  if (!node.fieldOfType<StringAttr>("to"))
    return node.intField("to", 0);
  static constexpr StringLiteral names[] = {
      "UNDEFINED", "FLOAT",  "UINT8",     "INT8",      "UINT16",  "INT16",
      "INT32",     "INT64",  "STRING",    "BOOL",      "FLOAT16", "DOUBLE",
      "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128"};
  const auto *name = llvm::find(names, node.stringField("to", ""));
  return name == std::end(names) ? 0 : name - std::begin(names);
}

static LogicalResult convertCast(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  int64_t to = castTarget(node);
  Type element = onnxElementType(to, node.builder().getContext());
  if (!element) {
    // Of ONNX's numbers for types: those that have none here.
    StringRef name = to == 8    ? "STRING"
                     : to == 14 ? "COMPLEX64"
                     : to == 15 ? "COMPLEX128"
                     : to == 24 ? "FLOAT8E8M0"
                                : "unknown";
    return node.error() << "casts to ONNX type " << to << " (" << name
                        << "), which is not supported (numbers and BOOL are)";
  }
  return castTo(node, element, results);
}

static LogicalResult convertNot(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  if (!node.type(0).getElementType().isInteger(1))
    return node.error() << "operand 0 is " << node.type(0)
                        << ", wanted booleans";
  results.push_back(node.create<het::NotOp>(node.operand(0)));
  return success();
}

static LogicalResult convertGelu(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  StringRef form = node.stringField("approximate", "none");
  if (form != "none" && form != "tanh")
    return node.error() << "approximate is '" << form
                        << "', wanted none or tanh";
  results.push_back(node.create<het::GeluOp>(
      form == "tanh" ? het::GeluForm::tanh : het::GeluForm::erf,
      node.operand(0)));
  return success();
}

/// min(max(x, low), high), with either bound optional; fields before opset 11.
static LogicalResult convertClip(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  OnnxMath math(node);
  Value value = node.operand(0);
  if (node.opset() < 11) {
    if (node.hasField("min"))
      value = math.max(value, node.floatField("min", 0));
    if (node.hasField("max"))
      value = math.min(value, node.floatField("max", 0));
    results.push_back(value);
    return success();
  }
  for (unsigned bound : {1, 2}) {
    if (!node.has(bound))
      continue;
    if (failed(node.needBroadcast(value, node.operand(bound))))
      return failure();
    value = bound == 1 ? math.max(value, node.operand(bound))
                       : math.min(value, node.operand(bound));
  }
  results.push_back(value);
  return success();
}

static LogicalResult convertSign(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  OnnxMath math(node);
  Value x = node.operand(0), zero = math.like(x, 0);
  Value below = math.like(x, isUnsigned(x) ? 0 : -1);
  Value isBelow = math.compare(het::ComparePredicate::lt, x, zero);
  Value isAbove = math.compare(het::ComparePredicate::gt, x, zero);
  results.push_back(
      math.select(isAbove, math.like(x, 1), math.select(isBelow, below, zero)));
  return success();
}

static LogicalResult convertIsInf(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  OnnxMath math(node);
  double infinity = std::numeric_limits<double>::infinity();
  Value x = node.operand(0);
  bool up = node.intField("detect_positive", 1),
       down = node.intField("detect_negative", 1);
  if (up && down)
    x = math.abs(x);
  Value isInfinite =
      math.compare(het::ComparePredicate::eq, x, up ? infinity : -infinity);
  if (!up && !down)
    isInfinite = math.splat(node.shape(0), node.builder().getI1Type(), 0);
  results.push_back(isInfinite);
  return success();
}

static LogicalResult convertTan(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  results.push_back(
      node.create<het::DivOp>(node.create<het::SinOp>(node.operand(0)),
                              node.create<het::CosOp>(node.operand(0))));
  return success();
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

/// The second operand. Before opset 7 it was broadcast on request only, from a
/// dim on that the node named.
static FailureOr<Value> placedOperand(OnnxNode &node) {
  if (failed(node.needOperands(2)))
    return failure();
  Value rhs = node.operand(1);
  if (node.opset() >= 7 || !node.hasField("axis"))
    return rhs;
  auto axis = node.normalizeAxis(node.intField("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(node.shape(1));
  if (*axis + node.rank(1) > node.rank(0))
    return node.error() << node.type(1) << " does not fit " << node.type(0)
                        << " from dim " << *axis << " on";
  shape.append(node.rank(0) - *axis - node.rank(1), 1);
  return node.reshape(rhs, shape);
}

/// The same, of the first operand's element type.
static FailureOr<Value> rightOperand(OnnxNode &node) {
  auto rhs = placedOperand(node);
  if (failed(rhs) || failed(node.needBroadcast(node.operand(0), *rhs)))
    return failure();
  return rhs;
}

template <typename OpT>
static LogicalResult convertBinary(OnnxNode &node, Results &results) {
  auto rhs = rightOperand(node);
  if (failed(rhs))
    return failure();
  results.push_back(node.create<OpT>(node.operand(0), *rhs));
  return success();
}

/// Max, Min and Sum take any number of operands.
template <typename OpT>
static LogicalResult convertVariadic(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(std::max(node.numOperands(), 1u))))
    return failure();
  Value value = node.operand(0);
  for (unsigned i = 1; i < node.numOperands(); ++i) {
    if (failed(node.needBroadcast(value, node.operand(i))))
      return failure();
    value = node.create<OpT>(value, node.operand(i));
  }
  results.push_back(value);
  return success();
}

static LogicalResult convertMean(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) ||
      failed(convertVariadic<het::AddOp>(node, results)))
    return failure();
  results.back() =
      OnnxMath(node).div(results.back(), double(node.numOperands()));
  return success();
}

/// The exponent may have another type than the base, whose type the result has.
/// Integers are raised in float64, which holds every power that they hold up to
/// 2^53.
static LogicalResult convertPow(OnnxNode &node, Results &results) {
  auto placed = placedOperand(node);
  if (failed(placed))
    return failure();
  OnnxMath math(node);
  Value base = node.operand(0), exponent = *placed;
  Type element = node.type(0).getElementType();
  bool folds = base.getDefiningOp<het::ConstantOp>() &&
               exponent.getDefiningOp<het::ConstantOp>();
  bool widens = node.inference() && !isa<FloatType>(element) && !folds;
  Type wide = widens ? Type(Float64Type::get(element.getContext())) : element;
  base = math.cast(base, wide);
  exponent = math.cast(exponent, wide);
  if (failed(node.needBroadcast(base, exponent)))
    return failure();
  results.push_back(
      math.cast(node.create<het::PowOp>(base, exponent), element));
  return success();
}

static LogicalResult convertMod(OnnxNode &node, Results &results) {
  if (node.intField("fmod", 0))
    return convertBinary<het::RemOp>(node, results);
  return convertBinary<het::ModOp>(node, results);
}

static LogicalResult convertBitShift(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  if (!isa<IntegerType>(node.type(0).getElementType()))
    return node.error() << "operand 0 is " << node.type(0)
                        << ", wanted integers";
  StringRef direction = node.stringField("direction", "");
  if (direction == "LEFT")
    return convertBinary<het::ShiftLeftOp>(node, results);
  if (direction == "RIGHT")
    return convertBinary<het::ShiftRightOp>(node, results);
  return node.error() << "direction is '" << direction
                      << "', wanted LEFT or RIGHT";
}

template <typename OpT>
static LogicalResult convertLogical(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  for (unsigned i : {0, 1})
    if (!node.type(i).getElementType().isInteger(1))
      return node.error() << "operand " << i << " is " << node.type(i)
                          << ", wanted booleans";
  return convertBinary<OpT>(node, results);
}

template <het::ComparePredicate predicate>
static LogicalResult convertCompare(OnnxNode &node, Results &results) {
  auto rhs = rightOperand(node);
  if (failed(rhs))
    return failure();
  results.push_back(
      node.create<het::CompareOp>(predicate, node.operand(0), *rhs));
  return success();
}

static LogicalResult convertWhere(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(3)))
    return failure();
  if (!node.type(0).getElementType().isInteger(1))
    return node.error() << "operand 0 is " << node.type(0)
                        << ", wanted booleans";
  if (failed(node.needBroadcast(node.operand(1), node.operand(2))))
    return failure();
  auto both = het::broadcastShapes(node.shape(1), node.shape(2));
  if (failed(het::broadcastShapes(node.shape(0), *both)))
    return node.error() << "shapes [" << node.shape(0) << "] and [" << *both
                        << "] do not broadcast";
  results.push_back(node.create<het::SelectOp>(node.operand(0), node.operand(1),
                                               node.operand(2)));
  return success();
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

void autohet::addElementwiseHandlers(OnnxHandlers &handlers) {
  handlers["Neg"] = convertUnary<het::NegOp>;
  handlers["Abs"] = convertUnary<het::AbsOp>;
  handlers["Exp"] = convertFloatUnary<het::ExpOp>;
  handlers["Log"] = convertFloatUnary<het::LogOp>;
  handlers["Sqrt"] = convertFloatUnary<het::SqrtOp>;
  handlers["Reciprocal"] = convertFloatUnary<het::ReciprocalOp>;
  handlers["Tanh"] = convertFloatUnary<het::TanhOp>;
  handlers["Erf"] = convertFloatUnary<het::ErfOp>;
  handlers["Sigmoid"] = convertFloatUnary<het::SigmoidOp>;
  handlers["Relu"] = convertFloatUnary<het::ReluOp>;
  handlers["Sin"] = convertFloatUnary<het::SinOp>;
  handlers["Cos"] = convertFloatUnary<het::CosOp>;
  handlers["IsNaN"] = convertFloatUnary<het::IsNanOp>;
  handlers["Floor"] = convertFloatUnary<het::FloorOp>;
  handlers["Ceil"] = convertFloatUnary<het::CeilOp>;
  handlers["Round"] = convertFloatUnary<het::RoundOp>;
  handlers["Tan"] = convertTan;
  handlers["Sign"] = convertSign;
  handlers["IsInf"] = convertIsInf;
  handlers["Gelu"] = convertGelu;
  handlers["Identity"] = convertIdentity;
  handlers["Cast"] = convertCast;
  handlers["CastLike"] = convertCastLike;
  handlers["Not"] = convertNot;
  handlers["Clip"] = convertClip;
  handlers["Add"] = convertBinary<het::AddOp>;
  handlers["Sub"] = convertBinary<het::SubOp>;
  handlers["Mul"] = convertBinary<het::MulOp>;
  handlers["Div"] = convertBinary<het::DivOp>;
  handlers["Mod"] = convertMod;
  handlers["Pow"] = convertPow;
  handlers["Max"] = convertVariadic<het::MaxOp>;
  handlers["Min"] = convertVariadic<het::MinOp>;
  handlers["Mean"] = convertMean;
  handlers["BitShift"] = convertBitShift;
  handlers["Sum"] = convertVariadic<het::AddOp>;
  handlers["And"] = convertLogical<het::AndOp>;
  handlers["Or"] = convertLogical<het::OrOp>;
  handlers["Xor"] = convertLogical<het::XorOp>;
  handlers["Equal"] = convertCompare<het::ComparePredicate::eq>;
  handlers["Less"] = convertCompare<het::ComparePredicate::lt>;
  handlers["LessOrEqual"] = convertCompare<het::ComparePredicate::le>;
  handlers["Greater"] = convertCompare<het::ComparePredicate::gt>;
  handlers["GreaterOrEqual"] = convertCompare<het::ComparePredicate::ge>;
  handlers["Where"] = convertWhere;
}
