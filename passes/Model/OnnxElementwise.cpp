//===- OnnxElementwise.cpp - elementwise nodes ----------------------------===//

#include "OnnxToHet.h"

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

static LogicalResult convertCast(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  int64_t to = node.intField("to", 0);
  Type element = onnxElementType(to, node.builder().getContext());
  if (!element) {
    if (to == 10 || to == 16)
      return node.error() << "casts to " << (to == 10 ? "FLOAT16" : "BFLOAT16")
                          << "; only float32 models are supported: export the "
                             "model in float32";
    return node.error() << "casts to ONNX type " << to
                        << ", which is not supported";
  }
  Value result = node.create<het::CastOp>(node.operand(0), element);
  if (element.isF64() && !result.getDefiningOp<het::ConstantOp>())
    return node.error() << "computes in float64, which is not supported";
  results.push_back(result);
  return success();
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

/// max(min(x, high), low), with either bound optional; fields before opset 11.
static LogicalResult convertClip(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  Value value = node.operand(0);
  for (unsigned bound : {1, 2}) {
    if (!node.has(bound))
      continue;
    if (failed(node.needBroadcast(value, node.operand(bound))))
      return failure();
    value = bound == 1 ? node.create<het::MaxOp>(value, node.operand(bound))
                       : node.create<het::MinOp>(value, node.operand(bound));
  }
  results.push_back(value);
  return success();
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

template <typename OpT>
static LogicalResult convertBinary(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)) ||
      failed(node.needBroadcast(node.operand(0), node.operand(1))))
    return failure();
  results.push_back(node.create<OpT>(node.operand(0), node.operand(1)));
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

/// The exponent may have another type than the base, whose type the result has.
static LogicalResult convertPow(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  Value exponent =
      node.create<het::CastOp>(node.operand(1), node.type(0).getElementType());
  if (failed(node.needBroadcast(node.operand(0), exponent)))
    return failure();
  results.push_back(node.create<het::PowOp>(node.operand(0), exponent));
  return success();
}

static LogicalResult convertMod(OnnxNode &node, Results &results) {
  if (node.intField("fmod", 0))
    return node.error() << "fmod=1 is not supported";
  return convertBinary<het::ModOp>(node, results);
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
  if (failed(node.needOperands(2)) ||
      failed(node.needBroadcast(node.operand(0), node.operand(1))))
    return failure();
  results.push_back(
      node.create<het::CompareOp>(predicate, node.operand(0), node.operand(1)));
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
  handlers["Gelu"] = convertGelu;
  handlers["Identity"] = convertIdentity;
  handlers["Cast"] = convertCast;
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
