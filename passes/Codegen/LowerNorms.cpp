//===- LowerNorms.cpp - layer_norm and rms_norm to linalg -----------------===//
//
// Written over whole tensors; rows become a loop in het-tile-rows, after which
// every intermediate below is one row in the first-level cache. The variance is
// taken from the differences to the mean, in a second pass: the one-pass form
// loses digits where the mean is large.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

/// The maps, shapes and extents that all four ops share.
struct RowSpace {
  explicit RowSpace(Value operand)
      : type(cast<RankedTensorType>(operand.getType())), rank(type.getRank()),
        columns(type.getShape().back()), rows(type.getShape().drop_back()),
        element(type.getElementType()) {
    MLIRContext *context = type.getContext();
    whole = AffineMap::getMultiDimIdentityMap(rank, context);
    perRow = rowMap(context, rank);
    perColumn = columnMap(context, rank);
    rowIdentity = AffineMap::getMultiDimIdentityMap(rank - 1, context);
    // Sums over a row reduce the last loop, sums over rows all others.
    alongRow.assign(rank, false);
    alongRow.back() = true;
    overRows.assign(rank, true);
    overRows.back() = false;
  }

  RankedTensorType type;
  unsigned rank;
  int64_t columns;
  ArrayRef<int64_t> rows;
  Type element;
  AffineMap whole, perRow, perColumn, rowIdentity;
  SmallVector<bool> alongRow, overRows;
};

using ScalarBuilder =
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// A sum a row of what `term` makes of the inputs.
Value rowSum(OpBuilder &b, Location loc, const RowSpace &space,
             ValueRange inputs, ArrayRef<AffineMap> inputMaps,
             ScalarBuilder term) {
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(space.perRow);
  return buildGeneric(b, loc, inputs,
                      zeroTensor(b, loc, space.rows, space.element), maps,
                      space.alongRow,
                      [&](OpBuilder &b, Location loc, ValueRange s) {
                        return SmallVector<Value>{
                            sum(b, loc, s.back(), term(b, loc, s))};
                      })
      .front();
}

/// A sum a column of what `term` makes of the inputs.
Value columnSum(OpBuilder &b, Location loc, const RowSpace &space,
                ValueRange inputs, ArrayRef<AffineMap> inputMaps,
                ScalarBuilder term) {
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(space.perColumn);
  return buildGeneric(b, loc, inputs,
                      zeroTensor(b, loc, {space.columns}, space.element), maps,
                      space.overRows,
                      [&](OpBuilder &b, Location loc, ValueRange s) {
                        return SmallVector<Value>{
                            sum(b, loc, s.back(), term(b, loc, s))};
                      })
      .front();
}

Value scaleByInverse(OpBuilder &b, Location loc, Value x, int64_t count) {
  return product(b, loc, x,
                 floatConstant(b, loc, x.getType(), 1.0 / double(count)));
}

/// 1 / sqrt(x / columns + epsilon), correctly rounded steps.
Value inverseRoot(OpBuilder &b, Location loc, Value x, int64_t columns,
                  double epsilon) {
  Type type = x.getType();
  Value shifted =
      arith::AddFOp::create(b, loc, scaleByInverse(b, loc, x, columns),
                            floatConstant(b, loc, type, epsilon));
  return arith::DivFOp::create(b, loc, floatConstant(b, loc, type, 1),
                               math::SqrtOp::create(b, loc, shifted));
}

/// (x - mean) * rstd.
Value normalized(OpBuilder &b, Location loc, Value x, Value mean, Value rstd) {
  return product(b, loc, arith::SubFOp::create(b, loc, x, mean), rstd);
}

struct LowerLayerNorm : OpRewritePattern<LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LayerNormOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = op.getOperand();
    RowSpace space(x);
    double epsilon = op.getEpsilon().convertToDouble();
    Value total =
        rowSum(b, loc, space, x, space.whole,
               [](OpBuilder &, Location, ValueRange s) { return s[0]; });
    Value mean =
        buildMap(b, loc, total, space.rowIdentity, space.rows, space.element,
                 [&](OpBuilder &b, Location loc, ValueRange s) {
                   return scaleByInverse(b, loc, s[0], space.columns);
                 });
    Value squares =
        rowSum(b, loc, space, {x, mean}, {space.whole, space.perRow},
               [](OpBuilder &b, Location loc, ValueRange s) {
                 Value difference = arith::SubFOp::create(b, loc, s[0], s[1]);
                 return product(b, loc, difference, difference);
               });
    Value rstd =
        buildMap(b, loc, squares, space.rowIdentity, space.rows, space.element,
                 [&](OpBuilder &b, Location loc, ValueRange s) {
                   return inverseRoot(b, loc, s[0], space.columns, epsilon);
                 });
    Value result =
        buildMap(b, loc, {x, mean, rstd, op.getScale(), op.getBias()},
                 {space.whole, space.perRow, space.perRow, space.perColumn,
                  space.perColumn},
                 space.type.getShape(), space.element,
                 [](OpBuilder &b, Location loc, ValueRange s) -> Value {
                   Value scaled = product(
                       b, loc, normalized(b, loc, s[0], s[1], s[2]), s[3]);
                   return arith::AddFOp::create(b, loc, scaled, s[4],
                                                arith::FastMathFlags::contract);
                 });
    b.replaceOp(op, {result, mean, rstd});
    return success();
  }
};

struct LowerRmsNorm : OpRewritePattern<RmsNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RmsNormOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = op.getOperand();
    RowSpace space(x);
    double epsilon = op.getEpsilon().convertToDouble();
    Value squares = rowSum(b, loc, space, x, space.whole,
                           [](OpBuilder &b, Location loc, ValueRange s) {
                             return product(b, loc, s[0], s[0]);
                           });
    Value rstd =
        buildMap(b, loc, squares, space.rowIdentity, space.rows, space.element,
                 [&](OpBuilder &b, Location loc, ValueRange s) {
                   return inverseRoot(b, loc, s[0], space.columns, epsilon);
                 });
    Value result = buildMap(
        b, loc, {x, rstd, op.getScale()},
        {space.whole, space.perRow, space.perColumn}, space.type.getShape(),
        space.element, [](OpBuilder &b, Location loc, ValueRange s) {
          return product(b, loc, product(b, loc, s[0], s[1]), s[2]);
        });
    b.replaceOp(op, {result, rstd});
    return success();
  }
};

// With n = (x - mean) rstd and g = dy * scale:
//   dx = rstd (g - mean(g) - n mean(g n)),  dscale = sum dy n,  dbias = sum dy
struct LowerLayerNormBackward : OpRewritePattern<LayerNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LayerNormBackwardOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = op.getOperand(), mean = op.getMean(), rstd = op.getRstd();
    Value scale = op.getScale(), dy = op.getGradient();
    RowSpace space(x);
    // Both row sums in one pass over the row.
    Value zeros = zeroTensor(b, loc, space.rows, space.element);
    SmallVector<Value> sums = buildGeneric(
        b, loc, {x, dy, mean, rstd, scale}, {zeros, zeros},
        {space.whole, space.whole, space.perRow, space.perRow, space.perColumn,
         space.perRow, space.perRow},
        space.alongRow, [](OpBuilder &b, Location loc, ValueRange s) {
          Value g = product(b, loc, s[1], s[4]);
          Value n = normalized(b, loc, s[0], s[2], s[3]);
          return SmallVector<Value>{sum(b, loc, s[5], g),
                                    sum(b, loc, s[6], product(b, loc, g, n))};
        });
    Value dx =
        buildMap(b, loc, {x, dy, mean, rstd, scale, sums[0], sums[1]},
                 {space.whole, space.whole, space.perRow, space.perRow,
                  space.perColumn, space.perRow, space.perRow},
                 space.type.getShape(), space.element,
                 [&](OpBuilder &b, Location loc, ValueRange s) {
                   Value g = product(b, loc, s[1], s[4]);
                   Value n = normalized(b, loc, s[0], s[2], s[3]);
                   Value meanG = scaleByInverse(b, loc, s[5], space.columns);
                   Value meanGN = scaleByInverse(b, loc, s[6], space.columns);
                   auto contract = arith::FastMathFlags::contract;
                   Value centred =
                       arith::SubFOp::create(b, loc, g, meanG, contract);
                   Value rest = arith::SubFOp::create(
                       b, loc, centred, product(b, loc, n, meanGN), contract);
                   return product(b, loc, s[3], rest);
                 });
    Value dscale = columnSum(
        b, loc, space, {x, dy, mean, rstd},
        {space.whole, space.whole, space.perRow, space.perRow},
        [](OpBuilder &b, Location loc, ValueRange s) {
          return product(b, loc, s[1], normalized(b, loc, s[0], s[2], s[3]));
        });
    Value dbias =
        columnSum(b, loc, space, dy, space.whole,
                  [](OpBuilder &, Location, ValueRange s) { return s[0]; });
    b.replaceOp(op, {dx, dscale, dbias});
    return success();
  }
};

// As layer_norm's with mean 0 and without mean(g).
struct LowerRmsNormBackward : OpRewritePattern<RmsNormBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RmsNormBackwardOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value x = op.getOperand(), rstd = op.getRstd();
    Value scale = op.getScale(), dy = op.getGradient();
    RowSpace space(x);
    Value total =
        rowSum(b, loc, space, {x, dy, rstd, scale},
               {space.whole, space.whole, space.perRow, space.perColumn},
               [](OpBuilder &b, Location loc, ValueRange s) {
                 return product(b, loc, product(b, loc, s[1], s[3]),
                                product(b, loc, s[0], s[2]));
               });
    Value dx = buildMap(
        b, loc, {x, dy, rstd, scale, total},
        {space.whole, space.whole, space.perRow, space.perColumn, space.perRow},
        space.type.getShape(), space.element,
        [&](OpBuilder &b, Location loc, ValueRange s) {
          Value g = product(b, loc, s[1], s[3]);
          Value n = product(b, loc, s[0], s[2]);
          Value meanGN = scaleByInverse(b, loc, s[4], space.columns);
          Value rest =
              arith::SubFOp::create(b, loc, g, product(b, loc, n, meanGN),
                                    arith::FastMathFlags::contract);
          return product(b, loc, s[2], rest);
        });
    Value dscale = columnSum(
        b, loc, space, {x, dy, rstd}, {space.whole, space.whole, space.perRow},
        [](OpBuilder &b, Location loc, ValueRange s) {
          return product(b, loc, s[1], product(b, loc, s[0], s[2]));
        });
    b.replaceOp(op, {dx, dscale});
    return success();
  }
};

} // namespace

void autohet::populateNormLowering(RewritePatternSet &patterns) {
  patterns.add<LowerLayerNorm, LowerRmsNorm, LowerLayerNormBackward,
               LowerRmsNormBackward>(patterns.getContext());
}
