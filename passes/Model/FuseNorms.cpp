//===- FuseNorms.cpp - recognise layer_norm and rms_norm
//--------------------===//
//
// Up to opset 16 LayerNorm is nine nodes, up to 22 RMSNorm is six. The
// normalisation itself is recognised first, with a scale of ones and a bias of
// zeros; the affine part then joins it, in whatever order it was written. A
// LayerNorm without an affine part, or with only half of one, needs no case of
// its own.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_FUSENORMS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

/// A vector over the last dim of `x`, all elements `value`.
Value splatVector(PatternRewriter &rewriter, Location loc, Value x,
                  double value) {
  auto type = typeOf(x);
  return createSplat(
      rewriter, loc,
      RankedTensorType::get({type.getShape().back()}, type.getElementType()),
      value);
}

/// `value` as a vector over the last dim, where it is one: [H] or [1, 1, H].
Value matchVector(PatternRewriter &rewriter, Value value, int64_t extent) {
  auto type = typeOf(value);
  if (type.getRank() == 0 || type.getShape().back() != extent ||
      type.getNumElements() != extent)
    return {};
  if (type.getRank() == 1)
    return value;
  return ReshapeOp::create(rewriter, value.getLoc(), value,
                           ArrayRef<int64_t>{extent});
}

/// The constant in `x + constant`, for an epsilon.
std::optional<std::pair<Value, double>> matchPlusEpsilon(Value value) {
  Sum sum = matchSum(value, 1);
  if (sum.terms.size() != 1 || sum.constant <= 0)
    return std::nullopt;
  return std::make_pair(sum.terms.front(), sum.constant);
}

/// d / sqrt(mean(d^2) + e) with d = x - mean(x) is a layer_norm of x, and an
/// rms_norm of d otherwise.
template <typename OpT>
struct FuseNormalisation : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    auto quotient = matchQuotientByRoot(op.getResult());
    if (!quotient)
      return failure();
    auto [numerator, radicand] = *quotient;
    auto plus = matchPlusEpsilon(radicand);
    if (!plus)
      return failure();
    auto [meanSquare, epsilon] = *plus;
    Value squared = matchLastMean(meanSquare);
    Value base = squared ? matchSquare(squared) : Value();
    if (!base || base.getType() != op.getType())
      return failure();
    // The two may be computed apart from each other, but alike.
    if (base != numerator && centred(base) != centred(numerator))
      return failure();
    if (base != numerator && !centred(base))
      return failure();

    Value ones = splatVector(rewriter, op.getLoc(), base, 1);
    FloatAttr eps = rewriter.getF64FloatAttr(epsilon);
    if (Value x = centred(base)) {
      Value zeros = splatVector(rewriter, op.getLoc(), base, 0);
      auto norm =
          LayerNormOp::create(rewriter, op.getLoc(), x, ones, zeros, eps);
      rewriter.replaceOp(op, norm.getResult());
      return success();
    }
    auto norm = RmsNormOp::create(rewriter, op.getLoc(), base, ones, eps);
    rewriter.replaceOp(op, norm.getResult());
    return success();
  }

  /// x, where `value` is x - mean(x).
  static Value centred(Value value) {
    auto sub = value.getDefiningOp<SubOp>();
    if (!sub || matchLastMean(sub.getRhs()) != sub.getLhs())
      return {};
    return sub.getLhs();
  }
};

/// The norm whose main result, used nowhere else, is `value`.
template <typename NormT>
NormT matchNorm(Value value) {
  auto norm = value.getDefiningOp<NormT>();
  return norm && value == norm.getResult() && value.hasOneUse() ? norm
                                                                : NormT();
}

template <typename NormT>
struct AbsorbScale : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    Value scale = op.getRhs();
    auto norm = matchNorm<NormT>(op.getLhs());
    if (!norm) {
      scale = op.getLhs();
      norm = matchNorm<NormT>(op.getRhs());
    }
    if (!norm || norm.getResult().getType() != op.getType() ||
        getSplatValue(norm.getScale()) != 1)
      return failure();
    if constexpr (std::is_same_v<NormT, LayerNormOp>)
      if (getSplatValue(norm.getBias()) != 0)
        return failure();
    Value vector = matchVector(rewriter, scale, op.getType().getShape().back());
    if (!vector)
      return failure();
    // The scale may be defined after the norm: build anew, here.
    auto *absorbed = rewriter.clone(*norm);
    rewriter.modifyOpInPlace(absorbed, [&] {
      cast<NormT>(absorbed).getScaleMutable().assign(vector);
    });
    rewriter.replaceOp(op, absorbed->getResult(0));
    return success();
  }
};

struct AbsorbBias : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    Value bias = op.getRhs();
    auto norm = matchNorm<LayerNormOp>(op.getLhs());
    if (!norm) {
      bias = op.getLhs();
      norm = matchNorm<LayerNormOp>(op.getRhs());
    }
    if (!norm || norm.getResult().getType() != op.getType() ||
        getSplatValue(norm.getBias()) != 0)
      return failure();
    Value vector = matchVector(rewriter, bias, op.getType().getShape().back());
    if (!vector)
      return failure();
    auto absorbed =
        LayerNormOp::create(rewriter, op.getLoc(), norm.getOperand(),
                            norm.getScale(), vector, norm.getEpsilonAttr());
    rewriter.replaceOp(op, absorbed.getResult());
    return success();
  }
};

/// x * f + (bias - mean * f), where f is scale / root: the mean is taken off
/// first, as elsewhere.
struct TakeMeanOffFirst : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    for (auto [product, rest] : {std::make_pair(op.getLhs(), op.getRhs()),
                                 std::make_pair(op.getRhs(), op.getLhs())}) {
      auto sub = rest.getDefiningOp<SubOp>();
      auto outer = product.getDefiningOp<MulOp>();
      auto inner = sub ? sub.getRhs().getDefiningOp<MulOp>() : MulOp();
      if (!outer || !inner)
        continue;
      for (auto [x, factor] : factors(outer))
        for (auto [mean, same] : factors(inner)) {
          auto scaled = factor.getDefiningOp<MulOp>();
          if (same != factor || !scaled || matchLastMean(mean) != x ||
              x.getType() != op.getType())
            continue;
          Location loc = op.getLoc();
          for (auto [root, scale] : factors(scaled)) {
            if (typeOf(root).getShape().back() != 1)
              continue;
            Value centred = SubOp::create(rewriter, loc, x, mean);
            Value unit = MulOp::create(rewriter, loc, centred, root);
            Value whole = MulOp::create(rewriter, loc, unit, scale);
            rewriter.replaceOpWithNewOp<AddOp>(op, whole, sub.getLhs());
            return success();
          }
        }
    }
    return failure();
  }

  static std::array<std::pair<Value, Value>, 2> factors(MulOp mul) {
    return {{{mul.getLhs(), mul.getRhs()}, {mul.getRhs(), mul.getLhs()}}};
  }
};

struct FuseNorms : autohet::impl::FuseNormsBase<FuseNorms> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseNormalisation<DivOp>, FuseNormalisation<MulOp>,
                 AbsorbScale<LayerNormOp>, AbsorbScale<RmsNormOp>, AbsorbBias,
                 TakeMeanOffFirst>(&getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
