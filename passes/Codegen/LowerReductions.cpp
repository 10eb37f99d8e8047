//===- LowerReductions.cpp - het.reduce to linalg -------------------------===//
//
// Sums are free to be reordered (that is what makes them vectorise); maxima and
// minima keep NaN.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

TypedAttr neutralElement(OpBuilder &b, ReduceKind kind, Type type,
                         bool isUnsigned) {
  auto floating = dyn_cast<FloatType>(type);
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::mean:
    return b.getZeroAttr(type);
  case ReduceKind::prod:
    return b.getOneAttr(type);
  case ReduceKind::max:
  case ReduceKind::min: {
    bool isMax = kind == ReduceKind::max;
    if (floating)
      return b.getFloatAttr(
          type, APFloat::getInf(floating.getFloatSemantics(), isMax));
    unsigned width = type.getIntOrFloatBitWidth();
    if (isUnsigned)
      return b.getIntegerAttr(type, isMax ? APInt::getMinValue(width)
                                          : APInt::getMaxValue(width));
    return b.getIntegerAttr(type, isMax ? APInt::getSignedMinValue(width)
                                        : APInt::getSignedMaxValue(width));
  }
  }
  llvm_unreachable("all kinds are listed");
}

Value combine(OpBuilder &b, Location loc, ReduceKind kind, bool isUnsigned,
              Value acc, Value x) {
  bool floating = isa<FloatType>(x.getType());
  switch (kind) {
  case ReduceKind::sum:
  case ReduceKind::mean:
    if (floating)
      return sum(b, loc, acc, x);
    return arith::AddIOp::create(b, loc, acc, x);
  case ReduceKind::prod:
    if (floating)
      return arith::MulFOp::create(b, loc, acc, x, sumFlags());
    return arith::MulIOp::create(b, loc, acc, x);
  case ReduceKind::max:
    if (floating)
      return arith::MaximumFOp::create(b, loc, acc, x);
    if (isUnsigned)
      return arith::MaxUIOp::create(b, loc, acc, x);
    return arith::MaxSIOp::create(b, loc, acc, x);
  case ReduceKind::min:
    if (floating)
      return arith::MinimumFOp::create(b, loc, acc, x);
    if (isUnsigned)
      return arith::MinUIOp::create(b, loc, acc, x);
    return arith::MinSIOp::create(b, loc, acc, x);
  }
  llvm_unreachable("all kinds are listed");
}

struct LowerReduce : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto from = cast<RankedTensorType>(op.getOperand().getType());
    auto to = cast<RankedTensorType>(op.getResult().getType());
    Type element = from.getElementType();
    bool isUnsigned = isUnsignedOp(op);
    unsigned rank = from.getRank();
    SmallVector<bool> reduced(rank, false);
    int64_t count = 1;
    for (int64_t dim : op.getDims()) {
      reduced[dim] = true;
      count *= from.getDimSize(dim);
    }
    SmallVector<AffineExpr> kept;
    SmallVector<int64_t> shape;
    for (unsigned d = 0; d < rank; ++d) {
      if (reduced[d])
        continue;
      kept.push_back(rewriter.getAffineDimExpr(d));
      shape.push_back(from.getDimSize(d));
    }
    AffineMap map = AffineMap::get(rank, 0, kept, rewriter.getContext());
    Value init = filledTensor(
        rewriter, loc, shape,
        neutralElement(rewriter, op.getKind(), element, isUnsigned));
    Value result =
        buildGeneric(rewriter, loc, op.getOperand(), init,
                     {rewriter.getMultiDimIdentityMap(rank), map}, reduced,
                     [&](OpBuilder &b, Location loc, ValueRange s) {
                       return SmallVector<Value>{combine(
                           b, loc, op.getKind(), isUnsigned, s[1], s[0])};
                     })
            .front();
    if (op.getKind() == ReduceKind::mean) {
      AffineMap identity = rewriter.getMultiDimIdentityMap(shape.size());
      result = buildMap(rewriter, loc, result, identity, shape, element,
                        [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
                          if (isa<FloatType>(element))
                            return arith::DivFOp::create(
                                b, loc, s[0],
                                floatConstant(b, loc, element, double(count)));
                          Value n = intConstant(b, loc, element, count);
                          if (isUnsigned)
                            return arith::DivUIOp::create(b, loc, s[0], n);
                          return arith::DivSIOp::create(b, loc, s[0], n);
                        });
    }
    rewriter.replaceOp(op, reshapeTensor(rewriter, loc, result, to.getShape()));
    return success();
  }
};

} // namespace

void autohet::populateReductionLowering(RewritePatternSet &patterns) {
  patterns.add<LowerReduce>(patterns.getContext());
}
