//===- LowerRotary.cpp - rotary position embedding to linalg --------------===//
//
// One loop for each member of the pairs, so that it can write to its place in
// the result: a loop that gives both would write them aside to be copied.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

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
    SmallVector<int64_t> offsets(rank, 0), strides(rank, 1);
    auto extract = [&](int64_t offset, int64_t step,
                       ArrayRef<int64_t> shape) -> Value {
      offsets.back() = offset;
      strides.back() = step;
      return tensor::ExtractSliceOp::create(
          b, loc, op.getOperand(), getAsIndexOpFoldResult(context, offsets),
          getAsIndexOpFoldResult(context, shape),
          getAsIndexOpFoldResult(context, strides));
    };
    AffineMap table =
        broadcastMap(context, typeOf(op.getCos()).getShape(), halfShape);
    // A member is itself times the cosine, and less or plus the other times the
    // sine.
    auto rotate = [&](int64_t own, int64_t other, bool subtract) {
      return buildMap(
          b, loc,
          {extract(own, stride, halfShape), extract(other, stride, halfShape),
           op.getCos(), op.getSin()},
          {identity, identity, table, table}, halfShape, element,
          [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
            auto flags = arith::FastMathFlags::contract;
            Value kept = product(b, loc, s[0], s[2]);
            Value mixed = product(b, loc, s[1], s[3]);
            if (subtract)
              return arith::SubFOp::create(b, loc, kept, mixed, flags);
            return arith::AddFOp::create(b, loc, kept, mixed, flags);
          });
    };
    auto insert = [&](Value part, Value whole, int64_t offset,
                      int64_t step) -> Value {
      offsets.back() = offset;
      strides.back() = step;
      return tensor::InsertSliceOp::create(
          b, loc, part, whole, getAsIndexOpFoldResult(context, offsets),
          getAsIndexOpFoldResult(context, typeOf(part).getShape()),
          getAsIndexOpFoldResult(context, strides));
    };
    Value result = emptyTensor(b, loc, type.getShape(), element);
    result = insert(rotate(0, secondOffset, !inverse), result, 0, stride);
    result =
        insert(rotate(secondOffset, 0, inverse), result, secondOffset, stride);
    if (int64_t rest = type.getShape().back() - 2 * half; rest > 0) {
      SmallVector<int64_t> restShape(type.getShape());
      restShape.back() = rest;
      Value unrotated = extract(2 * half, 1, restShape);
      result = insert(unrotated, result, 2 * half, 1);
    }
    b.replaceOp(op, result);
    return success();
  }
};

} // namespace

void autohet::populateRotaryLowering(RewritePatternSet &patterns) {
  patterns.add<LowerRotary>(patterns.getContext());
}
