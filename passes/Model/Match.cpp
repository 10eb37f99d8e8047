//===- Match.cpp - seeing through how exporters write a formula ------------===//

#include "Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

bool autohet::isClose(double value, double wanted) {
  return std::fabs(value - wanted) <= 1e-6 * std::fabs(wanted);
}

bool Product::take(Value value) {
  auto *found = llvm::find(factors, value);
  if (found == factors.end())
    return false;
  factors.erase(found);
  return true;
}

/// Multiplies `value` into `product`.
static void multiply(Product &product, Value value) {
  if (auto splat = getSplatValue(value)) {
    product.coefficient *= *splat;
    return;
  }
  // A factor that broadcasts would not be one of the same shape.
  auto sameShape = [&](Value operand) {
    return operand.getType() == value.getType() ||
           getSplatValue(operand).has_value();
  };
  if (auto mul = value.getDefiningOp<MulOp>();
      mul && sameShape(mul.getLhs()) && sameShape(mul.getRhs())) {
    multiply(product, mul.getLhs());
    multiply(product, mul.getRhs());
    return;
  }
  if (auto div = value.getDefiningOp<DivOp>();
      div && isa<FloatType>(typeOf(value).getElementType()) &&
      sameShape(div.getLhs())) {
    if (auto divisor = getSplatValue(div.getRhs())) {
      product.coefficient /= *divisor;
      multiply(product, div.getLhs());
      return;
    }
  }
  if (auto neg = value.getDefiningOp<NegOp>()) {
    product.coefficient = -product.coefficient;
    multiply(product, neg.getOperand());
    return;
  }
  if (auto pow = value.getDefiningOp<PowOp>(); pow && sameShape(pow.getLhs())) {
    auto exponent = getSplatValue(pow.getRhs());
    if (exponent && (*exponent == 2 || *exponent == 3 || *exponent == 4)) {
      for (int i = 0; i < int(*exponent); ++i)
        multiply(product, pow.getLhs());
      return;
    }
  }
  product.factors.push_back(value);
}

Product autohet::matchProduct(Value value) {
  Product product;
  multiply(product, value);
  return product;
}

static void accumulate(Sum &sum, Value value, unsigned depth) {
  if (auto splat = getSplatValue(value)) {
    sum.constant += *splat;
    return;
  }
  if (auto add = value.getDefiningOp<AddOp>(); add && depth > 0) {
    accumulate(sum, add.getLhs(), depth - 1);
    accumulate(sum, add.getRhs(), depth - 1);
    return;
  }
  if (auto sub = value.getDefiningOp<SubOp>(); sub && depth > 0)
    if (auto splat = getSplatValue(sub.getRhs())) {
      sum.constant -= *splat;
      accumulate(sum, sub.getLhs(), depth - 1);
      return;
    }
  sum.terms.push_back(value);
}

Sum autohet::matchSum(Value value, unsigned depth) {
  Sum sum;
  accumulate(sum, value, depth);
  return sum;
}

Value autohet::matchSquare(Value value) {
  Product product = matchProduct(value);
  if (product.coefficient == 1 && product.factors.size() == 2 &&
      product.factors[0] == product.factors[1])
    return product.factors[0];
  // Deeper than wanted where x is itself a product: x = a * b.
  if (auto mul = value.getDefiningOp<MulOp>();
      mul && mul.getLhs() == mul.getRhs())
    return mul.getLhs();
  if (auto pow = value.getDefiningOp<PowOp>();
      pow && getSplatValue(pow.getRhs()) == 2)
    return pow.getLhs();
  return {};
}

Value autohet::matchLastMean(Value value) {
  double factor = 1;
  Product product = matchProduct(value);
  if (product.factors.size() != 1)
    return {};
  factor = product.coefficient;
  value = product.factors.front();
  // Where the reduction dropped the dim, a reshape puts it back.
  bool keeps = false;
  if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    ArrayRef<int64_t> shape = reshape.getShape();
    if (shape.empty() || shape.back() != 1 ||
        shape.drop_back() != typeOf(reshape.getOperand()).getShape())
      return {};
    value = reshape.getOperand();
    keeps = true;
  }
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getDims().size() != 1 || reduce.getKeep() == keeps)
    return {};
  auto operand = typeOf(reduce.getOperand());
  if (reduce.getDims().front() != operand.getRank() - 1)
    return {};
  double count = double(operand.getShape().back());
  bool isMean =
      (reduce.getKind() == ReduceKind::mean && factor == 1) ||
      (reduce.getKind() == ReduceKind::sum && isClose(factor * count, 1));
  return isMean ? reduce.getOperand() : Value();
}

/// b, where `value` is sqrt(b), or pow(b, 0.5).
static Value matchRoot(Value value) {
  if (auto sqrt = value.getDefiningOp<SqrtOp>())
    return sqrt.getOperand();
  if (auto pow = value.getDefiningOp<PowOp>();
      pow && getSplatValue(pow.getRhs()) == 0.5)
    return pow.getLhs();
  return {};
}

/// b, where `value` is 1 / b.
static Value matchInverse(Value value) {
  if (auto reciprocal = value.getDefiningOp<ReciprocalOp>())
    return reciprocal.getOperand();
  if (auto div = value.getDefiningOp<DivOp>();
      div && getSplatValue(div.getLhs()) == 1)
    return div.getRhs();
  return {};
}

/// b, where `value` is 1 / sqrt(b).
static Value matchInverseRoot(Value value) {
  if (auto rsqrt = value.getDefiningOp<RsqrtOp>())
    return rsqrt.getOperand();
  if (Value inverse = matchInverse(value))
    return matchRoot(inverse);
  if (Value root = matchRoot(value))
    return matchInverse(root);
  if (auto pow = value.getDefiningOp<PowOp>();
      pow && getSplatValue(pow.getRhs()) == -0.5)
    return pow.getLhs();
  return {};
}

std::optional<std::pair<Value, Value>>
autohet::matchQuotientByRoot(Value value) {
  if (auto div = value.getDefiningOp<DivOp>())
    if (Value root = matchRoot(div.getRhs()))
      return std::make_pair(div.getLhs(), root);
  if (auto mul = value.getDefiningOp<MulOp>()) {
    if (Value root = matchInverseRoot(mul.getRhs()))
      return std::make_pair(mul.getLhs(), root);
    if (Value root = matchInverseRoot(mul.getLhs()))
      return std::make_pair(mul.getRhs(), root);
  }
  return std::nullopt;
}

bool autohet::isPlaceWithin(Value value, int64_t extent) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<ReshapeOp, TransposeOp, BroadcastOp, SliceOp>(op))
    return isPlaceWithin(op->getOperand(0), extent);
  // Places are counted with 64 bits; a cast to 32 would have to hold them.
  if (auto cast = dyn_cast_if_present<CastOp>(op))
    return typeOf(value).getElementTypeBitWidth() >= 32 &&
           extent <= INT32_MAX && isPlaceWithin(cast.getOperand(), extent);
  if (auto top = dyn_cast_if_present<TopKOp>(op))
    return value == top.getIndices() &&
           typeOf(top.getOperand()).getShape().back() <= extent;
  if (auto best = dyn_cast_if_present<ArgReduceOp>(op))
    return typeOf(best.getOperand()).getDimSize(best.getDim()) <= extent;
  return false;
}

LogicalResult autohet::applyModelPatterns(Operation *root,
                                          RewritePatternSet patterns,
                                          bool *changed) {
  populateCanonicalizationPatterns(patterns);
  GreedyRewriteConfig config;
  config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
  if (succeeded(
          applyPatternsGreedily(root, std::move(patterns), config, changed)))
    return success();
  return root->emitError("rewriting did not come to an end");
}
