//===- LowerSoftmax.cpp - softmax and its adjoint to linalg ---------------===//
//
// Maximum; exponential and sum in one pass; scale. The exponentials get a
// destination of their own: an intermediate that is both an input and the
// `outs` of its consumer would be computed twice.
//
//===----------------------------------------------------------------------===//

#include "RowSoftmax.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

struct LowerSoftmax : OpRewritePattern<SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SoftmaxOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = op.getOperand();
    auto type = cast<RankedTensorType>(x.getType());
    unsigned rank = type.getRank();
    bool zeroEmpty = op.getZeroEmptyRows();
    RowExponentials row =
        buildRowExponentials(b, loc, x, buildRowMaximum(b, loc, x), zeroEmpty);
    AffineMap whole = b.getMultiDimIdentityMap(rank);
    AffineMap perRow = rowMap(b.getContext(), rank);
    Value inverse = buildInverseSums(b, loc, row.sums, zeroEmpty);
    Value result = buildMap(
        b, loc, {row.exponentials, inverse}, {whole, perRow}, type.getShape(),
        type.getElementType(), [](OpBuilder &b, Location loc, ValueRange s) {
          return product(b, loc, s[0], s[1]);
        });
    b.replaceOp(op, result);
    return success();
  }
};

struct LowerSoftmaxBackward : OpRewritePattern<SoftmaxBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SoftmaxBackwardOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value y = op.getResult(), dy = op.getGradient();
    auto type = cast<RankedTensorType>(y.getType());
    unsigned rank = type.getRank();
    AffineMap whole = b.getMultiDimIdentityMap(rank);
    AffineMap perRow = rowMap(b.getContext(), rank);
    SmallVector<bool> alongRow(rank, false);
    alongRow.back() = true;
    Value zeros =
        zeroTensor(b, loc, type.getShape().drop_back(), type.getElementType());
    Value dot =
        buildGeneric(b, loc, {y, dy}, zeros, {whole, whole, perRow}, alongRow,
                     [](OpBuilder &b, Location loc, ValueRange s) {
                       return SmallVector<Value>{
                           sum(b, loc, s[2], product(b, loc, s[0], s[1]))};
                     })
            .front();
    Value dx = buildMap(
        b, loc, {y, dy, dot}, {whole, whole, perRow}, type.getShape(),
        type.getElementType(), [](OpBuilder &b, Location loc, ValueRange s) {
          Value rest = arith::SubFOp::create(b, loc, s[1], s[2]);
          return product(b, loc, s[0], rest);
        });
    b.replaceOp(op, dx);
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Shared with attention and cross entropy
//===----------------------------------------------------------------------===//

Value autohet::buildRowMaximum(OpBuilder &b, Location loc, Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  auto element = cast<FloatType>(type.getElementType());
  unsigned rank = type.getRank();
  Attribute lowest = b.getFloatAttr(
      element, APFloat::getInf(element.getFloatSemantics(), /*Negative=*/true));
  SmallVector<bool> alongRow(rank, false);
  alongRow.back() = true;
  return buildGeneric(
             b, loc, x,
             filledTensor(b, loc, type.getShape().drop_back(), lowest),
             {b.getMultiDimIdentityMap(rank), rowMap(b.getContext(), rank)},
             alongRow,
             [](OpBuilder &b, Location loc, ValueRange s) {
               return SmallVector<Value>{maximum(b, loc, s[1], s[0])};
             })
      .front();
}

Value autohet::finiteMaximum(OpBuilder &b, Location loc, Value maximum) {
  auto type = cast<FloatType>(maximum.getType());
  Value lowest = arith::ConstantOp::create(
      b, loc,
      b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics(), true)));
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, maximum, lowest);
  return arith::SelectOp::create(b, loc, empty, floatConstant(b, loc, type, 0),
                                 maximum);
}

RowExponentials autohet::buildRowExponentials(OpBuilder &b, Location loc,
                                              Value x, Value maxima,
                                              bool zeroEmptyRows) {
  auto type = cast<RankedTensorType>(x.getType());
  unsigned rank = type.getRank();
  AffineMap whole = b.getMultiDimIdentityMap(rank);
  AffineMap perRow = rowMap(b.getContext(), rank);
  SmallVector<bool> alongRow(rank, false);
  alongRow.back() = true;
  Type element = type.getElementType();
  Value zeros = zeroTensor(b, loc, type.getShape().drop_back(), element);
  Value empty = emptyTensor(b, loc, type.getShape(), element);
  SmallVector<Value> results = buildGeneric(
      b, loc, {x, maxima}, {empty, zeros}, {whole, perRow, whole, perRow},
      alongRow, [&](OpBuilder &b, Location loc, ValueRange s) {
        Value shift = zeroEmptyRows ? finiteMaximum(b, loc, s[1]) : s[1];
        Value e = math::ExpOp::create(
            b, loc, arith::SubFOp::create(b, loc, s[0], shift));
        return SmallVector<Value>{e, sum(b, loc, s[3], e)};
      });
  return {results[0], results[1]};
}

Value autohet::buildInverseSums(OpBuilder &b, Location loc, Value sums,
                                bool zeroEmptyRows) {
  auto type = cast<RankedTensorType>(sums.getType());
  Type element = type.getElementType();
  return buildMap(
      b, loc, sums, b.getMultiDimIdentityMap(type.getRank()), type.getShape(),
      element, [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
        Value inverse = arith::DivFOp::create(
            b, loc, floatConstant(b, loc, element, 1), s[0]);
        if (!zeroEmptyRows)
          return inverse;
        Value zero = floatConstant(b, loc, element, 0);
        Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                            s[0], zero);
        return arith::SelectOp::create(b, loc, empty, zero, inverse);
      });
}

void autohet::populateSoftmaxLowering(RewritePatternSet &patterns) {
  patterns.add<LowerSoftmax, LowerSoftmaxBackward>(patterns.getContext());
}
