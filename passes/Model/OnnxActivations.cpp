//===- OnnxActivations.cpp - activations without an op of their own -------===//
//
// Each is a formula of het ops, whose adjoints make it trainable.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;
using Predicate = het::ComparePredicate;

namespace {

/// ln(1 + exp(x)), without overflow.
Value softplus(const OnnxMath &math, Value x) {
  Value tail = math.log(math.add(math.exp(math.neg(math.abs(x))), 1));
  return math.add(math.max(x, 0), tail);
}

/// alpha (exp(x / slope) - 1) where x < 0. The exponential sees no positive x:
/// where it would be infinite, its gradient would be no number.
Value exponentialBelow(const OnnxMath &math, Value x, Value above, double alpha,
                       double slope) {
  Value below = math.exp(math.div(math.min(x, 0), slope));
  below = math.mul(math.add(below, -1), alpha);
  return math.select(math.compare(Predicate::lt, x, 0), below, above);
}

using Formula = Value (*)(OnnxNode &, const OnnxMath &, Value);

template <Formula formula>
LogicalResult convertActivation(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  results.push_back(formula(node, OnnxMath(node), node.operand(0)));
  return success();
}

Value elu(OnnxNode &node, const OnnxMath &math, Value x) {
  return exponentialBelow(math, x, x, node.floatField("alpha", 1), 1);
}
Value celu(OnnxNode &node, const OnnxMath &math, Value x) {
  double alpha = node.floatField("alpha", 1);
  return exponentialBelow(math, x, x, alpha, alpha);
}
Value selu(OnnxNode &node, const OnnxMath &math, Value x) {
  // Opset 1 writes fewer digits of both defaults.
  bool isShort = node.opset() < 6;
  double alpha =
      node.floatField("alpha", isShort ? 1.6732f : 1.67326319217681884765625);
  double gamma =
      node.floatField("gamma", isShort ? 1.0507f : 1.05070102214813232421875);
  return math.mul(exponentialBelow(math, x, x, alpha, 1), gamma);
}
Value leakyRelu(OnnxNode &node, const OnnxMath &math, Value x) {
  Value scaled = math.mul(x, node.floatField("alpha", 0.01f));
  return math.select(math.compare(Predicate::lt, x, 0), scaled, x);
}
Value thresholdedRelu(OnnxNode &node, const OnnxMath &math, Value x) {
  Value above = math.compare(Predicate::gt, x, node.floatField("alpha", 1));
  return math.select(above, x, math.like(x, 0));
}
Value hardSigmoid(OnnxNode &node, const OnnxMath &math, Value x) {
  double alpha = node.floatField("alpha", 0.2f);
  double beta = node.floatField("beta", 0.5f);
  return math.min(math.max(math.add(math.mul(x, alpha), beta), 0), 1);
}
Value hardSwish(OnnxNode &, const OnnxMath &math, Value x) {
  Value gate = math.add(math.mul(x, 1.0 / 6), 0.5);
  return math.mul(x, math.min(math.max(gate, 0), 1));
}
Value softplusOf(OnnxNode &, const OnnxMath &math, Value x) {
  return softplus(math, x);
}
Value softsign(OnnxNode &, const OnnxMath &math, Value x) {
  return math.div(x, math.add(math.abs(x), 1));
}
Value mish(OnnxNode &, const OnnxMath &math, Value x) {
  return math.mul(x, math.tanh(softplus(math, x)));
}
Value swishOf(OnnxNode &node, const OnnxMath &math, Value x, double alpha) {
  if (alpha == 1)
    return node.create<het::SiluOp>(x);
  return math.mul(x, math.sigmoid(math.mul(x, alpha)));
}
Value swish(OnnxNode &node, const OnnxMath &math, Value x) {
  return swishOf(node, math, x, node.floatField("alpha", 1));
}

/// Slopes broadcast; before opset 7 there is one, or one a channel, which is
/// dim 1.
LogicalResult convertPRelu(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) || failed(node.needFloats(1)))
    return failure();
  Value x = node.operand(0), slope = node.operand(1);
  if (node.opset() < 7 && node.rank(1) == 1 && node.rank(0) > 2) {
    SmallVector<int64_t> shape(node.shape(1));
    shape.append(node.rank(0) - 2, 1);
    slope = node.reshape(slope, shape);
  }
  if (failed(node.needBroadcast(x, slope)))
    return failure();
  OnnxMath math(node);
  results.push_back(
      math.select(math.compare(Predicate::lt, x, 0), math.mul(x, slope), x));
  return success();
}

/// swish(gate) * value.
LogicalResult convertSwiGlu(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) || failed(node.needFloats(1)) ||
      failed(node.needBroadcast(node.operand(0), node.operand(1))))
    return failure();
  OnnxMath math(node);
  double alpha = node.floatField("alpha", 1);
  results.push_back(
      math.mul(swishOf(node, math, node.operand(0), alpha), node.operand(1)));
  return success();
}

/// 1 at the place of the row's first maximum, else 0.
LogicalResult convertHardmax(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  OnnxMath math(node);
  bool coerced = node.opset() < 13;
  auto axis =
      node.normalizeAxis(node.intField("axis", coerced ? 1 : -1), node.rank(0));
  if (failed(axis))
    return failure();
  Value x = node.operand(0);
  int64_t dim = *axis;
  if (coerced) { // all dims from the axis on are one
    int64_t outer = 1, inner = 1;
    for (auto [d, extent] : llvm::enumerate(node.shape(0)))
      (int64_t(d) < dim ? outer : inner) *= extent;
    x = node.reshape(x, {outer, inner});
    dim = 1;
  }
  auto type = tensorType(x);
  Value place = node.create<het::ArgReduceOp>(het::ReduceKind::max, x, dim,
                                              /*last=*/false);
  SmallVector<int64_t> kept(type.getShape());
  kept[dim] = 1;
  Value positions = math.iota(type.getDimSize(dim), node.builder().getI64Type(),
                              dim, type.getRank());
  Value hot = math.compare(Predicate::eq, positions, node.reshape(place, kept));
  results.push_back(
      node.reshape(math.cast(hot, type.getElementType()), node.shape(0)));
  return success();
}

} // namespace

void autohet::addActivationHandlers(OnnxHandlers &handlers) {
  handlers["Elu"] = convertActivation<elu>;
  handlers["Celu"] = convertActivation<celu>;
  handlers["Selu"] = convertActivation<selu>;
  handlers["LeakyRelu"] = convertActivation<leakyRelu>;
  handlers["ThresholdedRelu"] = convertActivation<thresholdedRelu>;
  handlers["HardSigmoid"] = convertActivation<hardSigmoid>;
  handlers["HardSwish"] = convertActivation<hardSwish>;
  handlers["Softplus"] = convertActivation<softplusOf>;
  handlers["Softsign"] = convertActivation<softsign>;
  handlers["Mish"] = convertActivation<mish>;
  handlers["Swish"] = convertActivation<swish>;
  handlers["PRelu"] = convertPRelu;
  handlers["SwiGLU"] = convertSwiGlu;
  handlers["Hardmax"] = convertHardmax;
}
