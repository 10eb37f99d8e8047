//===- LowerRotary.cpp - rotary position embedding to linalg --------------===//
//
// One loop over pairs computes both members; each is written to its place in
// the result, which needs no copy.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

struct LowerRotary : OpRewritePattern<RotaryOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RotaryOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    MLIRContext *context = b.getContext();
    RankedTensorType type = typeOf(op.getResult());
    Type element = type.getElementType();
    unsigned rank = type.getRank();
    int64_t half = typeOf(op.getCos()).getShape().back();
    bool inverse = op.getInverse();
    SmallVector<int64_t> halfShape(type.getShape());
    halfShape.back() = half;
    // Where the pair's members lie: (i, i + half) or (2i, 2i + 1).
    int64_t stride = op.getInterleaved() ? 2 : 1;
    int64_t secondOffset = op.getInterleaved() ? 1 : half;
    AffineMap identity = b.getMultiDimIdentityMap(rank);
    auto memberMap = [&](int64_t offset) {
      SmallVector<AffineExpr> exprs(identity.getResults());
      exprs.back() = exprs.back() * stride + offset;
      return AffineMap::get(rank, 0, exprs, context);
    };
    AffineMap table =
        broadcastMap(context, typeOf(op.getCos()).getShape(), halfShape);
    Value x = op.getOperand();
    Value first = emptyTensor(b, loc, halfShape, element);
    Value second = emptyTensor(b, loc, halfShape, element);
    SmallVector<Value> rotated = buildGeneric(
        b, loc, {x, x, op.getCos(), op.getSin()}, {first, second},
        {memberMap(0), memberMap(secondOffset), table, table, identity,
         identity},
        SmallVector<bool>(rank, false),
        [&](OpBuilder &b, Location loc, ValueRange s) {
          Value sine = s[3];
          if (inverse)
            sine = arith::NegFOp::create(b, loc, sine);
          auto flags = arith::FastMathFlags::contract;
          Value y1 = arith::SubFOp::create(b, loc, product(b, loc, s[0], s[2]),
                                           product(b, loc, s[1], sine), flags);
          Value y2 = arith::AddFOp::create(b, loc, product(b, loc, s[1], s[2]),
                                           product(b, loc, s[0], sine), flags);
          return SmallVector<Value>{y1, y2};
        });

    SmallVector<int64_t> offsets(rank, 0), strides(rank, 1);
    auto insert = [&](Value part, Value whole) -> Value {
      return tensor::InsertSliceOp::create(
          b, loc, part, whole, getAsIndexOpFoldResult(context, offsets),
          getAsIndexOpFoldResult(context, typeOf(part).getShape()),
          getAsIndexOpFoldResult(context, strides));
    };
    Value result = emptyTensor(b, loc, type.getShape(), element);
    strides.back() = stride;
    result = insert(rotated[0], result);
    offsets.back() = secondOffset;
    result = insert(rotated[1], result);
    strides.back() = 1;
    int64_t rest = type.getShape().back() - 2 * half;
    if (rest > 0) {
      SmallVector<int64_t> restShape(type.getShape());
      restShape.back() = rest;
      SmallVector<AffineExpr> exprs(identity.getResults());
      exprs.back() = exprs.back() + 2 * half;
      Value unrotated = buildMap(
          b, loc, x, AffineMap::get(rank, 0, exprs, context), restShape,
          element, [](OpBuilder &, Location, ValueRange s) { return s[0]; });
      offsets.back() = 2 * half;
      result = insert(unrotated, result);
    }
    b.replaceOp(op, result);
    return success();
  }
};

} // namespace

void autohet::populateRotaryLowering(RewritePatternSet &patterns) {
  patterns.add<LowerRotary>(patterns.getContext());
}
