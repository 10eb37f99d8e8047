//===- LowerLosses.cpp - cross entropy to linalg --------------------------===//
//
// Per row: maximum, sum of exponentials, logarithm, and the label's logit. The
// sum over rows is kept in double precision: a microbatch may have tens of
// thousands of labels, and the loss is compared to seven digits.
//
//===----------------------------------------------------------------------===//

#include "RowSoftmax.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

/// max(0, min(index, extent - 1)): an index that is safe to read with. Bad ones
/// have been reported by then.
Value clampedIndex(OpBuilder &b, Location loc, Value index, int64_t extent) {
  Type type = index.getType();
  Value low =
      arith::MaxSIOp::create(b, loc, index, intConstant(b, loc, type, 0));
  Value high = arith::MinSIOp::create(b, loc, low,
                                      intConstant(b, loc, type, extent - 1));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), high);
}

/// The logarithm of the sum of exponentials of each row. The exponentials
/// themselves are not kept.
Value buildLogSumExp(OpBuilder &b, Location loc, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  unsigned rank = type.getRank();
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  Type element = type.getElementType();
  AffineMap perRow = rowMap(b.getContext(), rank);
  AffineMap rowIdentity = b.getMultiDimIdentityMap(rank - 1);
  SmallVector<bool> alongRow(rank, false);
  alongRow.back() = true;
  Value maxima = buildRowMaximum(b, loc, logits);
  Value sums =
      buildGeneric(b, loc, {logits, maxima}, zeroTensor(b, loc, rows, element),
                   {b.getMultiDimIdentityMap(rank), perRow, perRow}, alongRow,
                   [](OpBuilder &b, Location loc, ValueRange s) {
                     Value e = math::ExpOp::create(
                         b, loc, arith::SubFOp::create(b, loc, s[0], s[1]));
                     return SmallVector<Value>{sum(b, loc, s[2], e)};
                   })
          .front();
  return buildMap(b, loc, {maxima, sums}, {rowIdentity, rowIdentity}, rows,
                  element,
                  [](OpBuilder &b, Location loc, ValueRange s) -> Value {
                    return arith::AddFOp::create(
                        b, loc, s[0], math::LogOp::create(b, loc, s[1]));
                  });
}

/// In a loop over rows: this row's logit of a class, which is clamped to those
/// that there are.
Value extractLogit(OpBuilder &b, Location loc, Value logits, Value index) {
  auto type = cast<RankedTensorType>(logits.getType());
  SmallVector<Value> position;
  for (unsigned d = 0; d + 1 < type.getRank(); ++d)
    position.push_back(linalg::IndexOp::create(b, loc, d));
  position.push_back(clampedIndex(b, loc, index, type.getShape().back()));
  return tensor::ExtractOp::create(b, loc, logits, position);
}

struct LowerCrossEntropy : OpRewritePattern<CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CrossEntropyOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value logits = op.getLogits(), labels = op.getLabels();
    auto type = cast<RankedTensorType>(logits.getType());
    unsigned rank = type.getRank();
    int64_t classes = type.getShape().back();
    Type element = type.getElementType();
    Type labelType = getElementTypeOrSelf(labels.getType());
    checkIndices(b, loc, op, labels, 0, classes, op.getIgnoreIndex());

    AffineMap rowIdentity = b.getMultiDimIdentityMap(rank - 1);
    Value logSumExp = buildLogSumExp(b, loc, logits);

    SmallVector<bool> overRows(rank - 1, true);
    AffineMap scalar = AffineMap::get(rank - 1, 0, b.getContext());
    Value total =
        buildGeneric(
            b, loc, {logSumExp, labels}, zeroTensor(b, loc, {}, b.getF64Type()),
            {rowIdentity, rowIdentity, scalar}, overRows,
            [&](OpBuilder &b, Location loc, ValueRange s) {
              Value logit = extractLogit(b, loc, logits, s[1]);
              Value loss = arith::SubFOp::create(b, loc, s[0], logit);
              Value ignored = arith::CmpIOp::create(
                  b, loc, arith::CmpIPredicate::eq, s[1],
                  intConstant(b, loc, labelType, op.getIgnoreIndex()));
              Value counted = arith::SelectOp::create(
                  b, loc, ignored, floatConstant(b, loc, element, 0), loss);
              Value wide =
                  arith::ExtFOp::create(b, loc, b.getF64Type(), counted);
              return SmallVector<Value>{
                  arith::AddFOp::create(b, loc, s[2], wide)};
            })
            .front();
    Value lossSum =
        buildMap(b, loc, total, b.getMultiDimIdentityMap(0), {}, element,
                 [&](OpBuilder &b, Location loc, ValueRange s) {
                   return arith::TruncFOp::create(b, loc, element, s[0]);
                 });
    b.replaceOp(op, {lossSum, logSumExp});
    return success();
  }
};

struct LowerCrossEntropyPart : OpRewritePattern<CrossEntropyPartOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CrossEntropyPartOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value logits = op.getLogits();
    auto type = cast<RankedTensorType>(logits.getType());
    Type element = type.getElementType();
    Type labelType = getElementTypeOrSelf(op.getLabels().getType());
    checkIndices(b, loc, op, op.getLabels(), 0, op.getClasses(),
                 op.getIgnoreIndex());
    AffineMap rowIdentity = b.getMultiDimIdentityMap(type.getRank() - 1);
    Value picked = buildMap(
        b, loc, {op.getLabels()}, {rowIdentity}, type.getShape().drop_back(),
        element, [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
          Value index = arith::SubIOp::create(
              b, loc, s[0], intConstant(b, loc, labelType, op.getFirstClass()));
          // Unsigned, so that what is below the box is above it too.
          Value isHere = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::ult, index,
              intConstant(b, loc, labelType, type.getShape().back()));
          return arith::SelectOp::create(b, loc, isHere,
                                         extractLogit(b, loc, logits, index),
                                         floatConstant(b, loc, element, 0));
        });
    b.replaceOp(op, {buildLogSumExp(b, loc, logits), picked});
    return success();
  }
};

struct LowerCrossEntropyBackward : OpRewritePattern<CrossEntropyBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CrossEntropyBackwardOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getLogits().getType());
    unsigned rank = type.getRank();
    Type element = type.getElementType();
    AffineMap whole = b.getMultiDimIdentityMap(rank);
    AffineMap perRow = rowMap(b.getContext(), rank);
    AffineMap rowIdentity = b.getMultiDimIdentityMap(rank - 1);
    AffineMap scalar = AffineMap::get(rank - 1, 0, b.getContext());
    Type labelType = getElementTypeOrSelf(op.getLabels().getType());
    ArrayRef<int64_t> rows = type.getShape().drop_back();
    // Two values a row instead of two comparisons an element: the factor, 0 in
    // ignored rows, and the label's class within this box.
    Value factors = buildMap(
        b, loc, {op.getLabels(), op.getGradient()}, {rowIdentity, scalar}, rows,
        element, [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
          Value ignored = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::eq, s[0],
              intConstant(b, loc, labelType, op.getIgnoreIndex()));
          return arith::SelectOp::create(
              b, loc, ignored, floatConstant(b, loc, element, 0), s[1]);
        });
    int64_t firstClass = op.getFirstClass().value_or(0);
    // 32 bits: as wide as the elements they are compared beside.
    Value classes = buildMap(
        b, loc, op.getLabels(), rowIdentity, rows, b.getI32Type(),
        [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
          Value local = arith::SubIOp::create(
              b, loc, s[0], intConstant(b, loc, labelType, firstClass));
          unsigned width = labelType.getIntOrFloatBitWidth();
          if (width > 32)
            return arith::TruncIOp::create(b, loc, b.getI32Type(), local);
          if (width < 32)
            return arith::ExtSIOp::create(b, loc, b.getI32Type(), local);
          return local;
        });
    Value result = buildMap(
        b, loc, {op.getLogits(), op.getLogSumExp(), factors, classes},
        {whole, perRow, perRow, perRow}, type.getShape(), element,
        [&](OpBuilder &b, Location loc, ValueRange s) {
          Value column = arith::IndexCastOp::create(
              b, loc, b.getI32Type(),
              linalg::IndexOp::create(b, loc, rank - 1));
          Value isLabel = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::eq, column, s[3]);
          Value probability = math::ExpOp::create(
              b, loc, arith::SubFOp::create(b, loc, s[0], s[1]));
          Value target = arith::SelectOp::create(
              b, loc, isLabel, floatConstant(b, loc, element, 1),
              floatConstant(b, loc, element, 0));
          return product(b, loc, s[2],
                         arith::SubFOp::create(b, loc, probability, target));
        });
    b.replaceOp(op, result);
    return success();
  }
};

} // namespace

void autohet::populateLossLowering(RewritePatternSet &patterns) {
  patterns
      .add<LowerCrossEntropy, LowerCrossEntropyPart, LowerCrossEntropyBackward>(
          patterns.getContext());
}
