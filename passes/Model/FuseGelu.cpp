//===- FuseGelu.cpp - recognise gelu and silu
//-------------------------------===//
//
// The formulas are products whose factors come in every order and grouping, so
// they are compared as products: coefficient and factors, not trees.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_FUSEGELU
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

constexpr double kSqrtHalf = 0.70710678118654752;    // 1 / sqrt(2)
constexpr double kSqrt2OverPi = 0.79788456080286536; // sqrt(2 / pi)
constexpr double kCubicTerm = 0.044715;

/// Whether `product` is `coefficient * x^power`. x may be a product itself.
bool isPower(Product product, double coefficient, Value x, unsigned power) {
  Product base = matchProduct(x);
  for (unsigned i = 0; i < power; ++i) {
    coefficient *= base.coefficient;
    for (Value factor : base.factors)
      if (!product.take(factor))
        return false;
  }
  return product.factors.empty() && isClose(product.coefficient, coefficient);
}

/// x, where `value` is `coefficient * x`, the coefficient written as one or
/// more products with constants or quotients by them.
Value matchScaled(Value value, double coefficient) {
  while (!isClose(1, coefficient)) {
    auto mul = value.getDefiningOp<MulOp>();
    auto div = value.getDefiningOp<DivOp>();
    if (auto splat = mul ? getSplatValue(mul.getRhs()) : std::nullopt) {
      coefficient /= *splat;
      value = mul.getLhs();
    } else if (auto splat = mul ? getSplatValue(mul.getLhs()) : std::nullopt) {
      coefficient /= *splat;
      value = mul.getRhs();
    } else if (auto splat = div ? getSplatValue(div.getRhs()) : std::nullopt) {
      coefficient *= *splat;
      value = div.getLhs();
    } else {
      return {};
    }
  }
  return value;
}

/// x, where `value` is sqrt(2/pi) (x + 0.044715 x^3), or with x factored out.
Value matchTanhArgument(Value value) {
  if (Value cubic = matchScaled(value, kSqrt2OverPi))
    if (auto add = cubic.getDefiningOp<AddOp>())
      for (auto [x, term] : {std::make_pair(add.getLhs(), add.getRhs()),
                             std::make_pair(add.getRhs(), add.getLhs())})
        if (isPower(matchProduct(term), kCubicTerm, x, 3))
          return x;
  Product product = matchProduct(value);
  if (product.factors.size() != 2 ||
      !isClose(product.coefficient, kSqrt2OverPi))
    return {};
  for (unsigned i : {0u, 1u}) {
    Value x = product.factors[i];
    Sum sum = matchSum(product.factors[1 - i], 1);
    if (sum.constant == 1 && sum.terms.size() == 1 &&
        isPower(matchProduct(sum.terms.front()), kCubicTerm, x, 2))
      return x;
  }
  return {};
}

/// The form and x, where `value` is erf(x / sqrt 2) or tanh(sqrt(2/pi) (...)).
std::optional<std::pair<GeluForm, Value>> matchStep(Value value) {
  if (auto erf = value.getDefiningOp<ErfOp>())
    if (Value x = matchScaled(erf.getOperand(), kSqrtHalf))
      return std::make_pair(GeluForm::erf, x);
  if (auto tanh = value.getDefiningOp<TanhOp>())
    if (Value x = matchTanhArgument(tanh.getOperand()))
      return std::make_pair(GeluForm::tanh, x);
  return std::nullopt;
}

/// x * 0.5 * (1 + step(x)), or x * (0.5 + 0.5 * step(x)).
template <typename OpT>
struct FuseGeluFormula : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    Product product = matchProduct(op.getResult());
    for (Value factor : product.factors) {
      Sum sum = matchSum(factor, 1);
      if (sum.terms.size() != 1 || sum.constant == 0)
        continue;
      Product term = matchProduct(sum.terms.front());
      if (term.factors.size() != 1 || term.coefficient != sum.constant)
        continue;
      auto step = matchStep(term.factors.front());
      if (!step || step->second.getType() != op.getType())
        continue;
      Product rest = product;
      rest.take(factor);
      rest.coefficient *= sum.constant;
      if (!isPower(rest, 0.5, step->second, 1))
        continue;
      rewriter.replaceOpWithNewOp<GeluOp>(op, step->first, step->second);
      return success();
    }
    return failure();
  }
};

/// x * sigmoid(x), and x / (1 + exp(-x)).
struct FuseSilu : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [x, gate] : {std::make_pair(op.getLhs(), op.getRhs()),
                           std::make_pair(op.getRhs(), op.getLhs())}) {
      auto sigmoid = gate.getDefiningOp<SigmoidOp>();
      if (!sigmoid || sigmoid.getOperand() != x)
        continue;
      rewriter.replaceOpWithNewOp<SiluOp>(op, x);
      return success();
    }
    return failure();
  }
};

struct FuseSiluQuotient : OpRewritePattern<DivOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DivOp op,
                                PatternRewriter &rewriter) const override {
    Sum sum = matchSum(op.getRhs(), 1);
    if (sum.constant != 1 || sum.terms.size() != 1)
      return failure();
    auto exp = sum.terms.front().getDefiningOp<ExpOp>();
    auto neg = exp ? exp.getOperand().getDefiningOp<NegOp>() : NegOp();
    if (!neg || neg.getOperand() != op.getLhs())
      return failure();
    rewriter.replaceOpWithNewOp<SiluOp>(op, op.getLhs());
    return success();
  }
};

struct FuseGelu : autohet::impl::FuseGeluBase<FuseGelu> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseGeluFormula<MulOp>, FuseGeluFormula<DivOp>, FuseSilu,
                 FuseSiluQuotient>(&getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
