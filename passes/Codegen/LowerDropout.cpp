//===- LowerDropout.cpp - het.dropout to linalg ---------------------------===//
//
// The mask is never stored: forward and backward draw it again.
//
//===----------------------------------------------------------------------===//

#include "Philox.h"

#include "HetToLinalg.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

struct LowerDropout : OpRewritePattern<DropoutOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DropoutOp op,
                                PatternRewriter &b) const override {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    double p = op.getP().convertToDouble();
    DropoutMask mask(b, op.getLoc(), getKernelContext(op), p, op.getOpId(),
                     type.getShape(), op.getOffsets(), op.getGlobalShape());
    Value result =
        buildMap(b, op.getLoc(), op.getOperand(),
                 b.getMultiDimIdentityMap(type.getRank()), type.getShape(),
                 type.getElementType(),
                 [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
                   SmallVector<Value> position;
                   for (int64_t d = 0; d < type.getRank(); ++d)
                     position.push_back(linalg::IndexOp::create(b, loc, d));
                   Value factor = mask.factorAt(b, loc, position);
                   // A dropped element is 0 even where it was infinite or NaN.
                   Value dropped = arith::CmpFOp::create(
                       b, loc, arith::CmpFPredicate::OEQ, factor,
                       floatConstant(b, loc, factor.getType(), 0));
                   Value scaled = arith::MulFOp::create(b, loc, s[0], factor);
                   return arith::SelectOp::create(
                       b, loc, dropped,
                       floatConstant(b, loc, factor.getType(), 0), scaled);
                 });
    b.replaceOp(op, result);
    return success();
  }
};

} // namespace

void autohet::populateDropoutLowering(RewritePatternSet &patterns) {
  patterns.add<LowerDropout>(patterns.getContext());
}
