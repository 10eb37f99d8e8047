//===- LowerIndex.cpp - embedding, gather, iota to linalg -----------------===//
//
// Indices come from data, so every kernel that reads through them checks them
// first and reports the bad one; the reads then clamp.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

/// An element of an integer tensor as an index, clamped to [0, extent).
Value clampToExtent(OpBuilder &b, Location loc, Value index, int64_t extent) {
  Type type = index.getType();
  index = arith::MaxSIOp::create(b, loc, index, intConstant(b, loc, type, 0));
  index = arith::MinSIOp::create(b, loc, index,
                                 intConstant(b, loc, type, extent - 1));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), index);
}

} // namespace

Value autohet::wrapToExtent(OpBuilder &b, Location loc, Value index,
                            int64_t extent) {
  Type type = index.getType();
  Value zero = intConstant(b, loc, type, 0);
  Value negative =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value fromEnd =
      arith::AddIOp::create(b, loc, index, intConstant(b, loc, type, extent));
  index = arith::SelectOp::create(b, loc, negative, fromEnd, index);
  return clampToExtent(b, loc, index, extent);
}

void autohet::checkTuples(OpBuilder &b, Location loc, Operation *op,
                          Value indices, ArrayRef<int64_t> shape,
                          unsigned firstDim) {
  RankedTensorType type = typeOf(indices);
  for (int64_t k = 0; k < type.getShape().back(); ++k) {
    SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(b.getContext(), type.getShape());
    SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
    offsets.back() = b.getIndexAttr(k);
    sizes.back() = b.getIndexAttr(1);
    Value column =
        tensor::ExtractSliceOp::create(b, loc, indices, offsets, sizes, ones);
    int64_t extent = shape[firstDim + k];
    // A contiguous copy: a strided view cannot be flattened.
    Value copy =
        buildMap(b, loc, column, b.getMultiDimIdentityMap(type.getRank()),
                 typeOf(column).getShape(), type.getElementType(),
                 [](OpBuilder &, Location, ValueRange s) { return s[0]; });
    checkIndices(b, loc, op, copy, -extent, extent);
  }
}

namespace {

/// A boolean: whether `index` lies in [0, extent).
Value isWithin(OpBuilder &b, Location loc, Value index, int64_t extent) {
  // Unsigned: negative numbers are large.
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index,
                               intConstant(b, loc, index.getType(), extent));
}

/// ids - first_row, for a table that is a box of a larger one.
Value localRow(OpBuilder &b, Location loc, Value id, int64_t firstRow) {
  return arith::SubIOp::create(b, loc, id,
                               intConstant(b, loc, id.getType(), firstRow));
}

struct LowerEmbedding : OpRewritePattern<EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(EmbeddingOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value table = op.getTable(), ids = op.getIds();
    RankedTensorType type = typeOf(op.getResult());
    int64_t rows = typeOf(table).getDimSize(0);
    std::optional<int64_t> firstRow = op.getFirstRow();
    checkIndices(b, loc, op, ids, 0, op.getAllRows().value_or(rows));
    unsigned rank = type.getRank();
    Value result =
        buildMap(b, loc, ids, rowMap(b.getContext(), rank), type.getShape(),
                 type.getElementType(),
                 [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
                   Value row = localRow(b, loc, s[0], firstRow.value_or(0));
                   Value column = linalg::IndexOp::create(b, loc, rank - 1);
                   Value element = tensor::ExtractOp::create(
                       b, loc, table,
                       ValueRange{clampToExtent(b, loc, row, rows), column});
                   if (!firstRow)
                     return element;
                   // A row of another box: this one contributes zero.
                   return arith::SelectOp::create(
                       b, loc, isWithin(b, loc, row, rows), element,
                       floatConstant(b, loc, element.getType(), 0));
                 });
    b.replaceOp(op, result);
    return success();
  }
};

// A sequential loop over ids: two may name one row. The order of the additions
// is that of the ids, whatever the plan.
struct LowerEmbeddingBackward : OpRewritePattern<EmbeddingBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(EmbeddingBackwardOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType type = typeOf(op.getResult());
    Type element = type.getElementType();
    int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
    int64_t count = typeOf(op.getIds()).getNumElements();
    int64_t firstRow = op.getFirstRow().value_or(0);
    if (!op.getFirstRow())
      checkIndices(b, loc, op, op.getIds(), 0, rows);
    Value ids = reshapeTensor(b, loc, op.getIds(), {count});
    Value gradient = reshapeTensor(b, loc, op.getGradient(), {count, columns});
    Value zeros = zeroTensor(b, loc, type.getShape(), element);
    auto loop = scf::ForOp::create(
        b, loc, indexConstant(b, loc, 0), indexConstant(b, loc, count),
        indexConstant(b, loc, 1), zeros,
        [&](OpBuilder &b, Location loc, Value i, ValueRange carried) {
          Value id = tensor::ExtractOp::create(b, loc, ids, i);
          Value row = localRow(b, loc, id, firstRow);
          Value inside = isWithin(b, loc, row, rows);
          Value target = clampToExtent(b, loc, row, rows);
          auto rowType = RankedTensorType::get({columns}, element);
          OpFoldResult one = b.getIndexAttr(1), zero = b.getIndexAttr(0);
          OpFoldResult width = b.getIndexAttr(columns);
          Value from = tensor::ExtractSliceOp::create(
              b, loc, rowType, gradient, ArrayRef<OpFoldResult>{i, zero},
              ArrayRef<OpFoldResult>{one, width},
              ArrayRef<OpFoldResult>{one, one});
          Value into = tensor::ExtractSliceOp::create(
              b, loc, rowType, carried[0], ArrayRef<OpFoldResult>{target, zero},
              ArrayRef<OpFoldResult>{one, width},
              ArrayRef<OpFoldResult>{one, one});
          AffineMap identity = b.getMultiDimIdentityMap(1);
          Value added =
              buildGeneric(b, loc, from, into, {identity, identity}, {false},
                           [&](OpBuilder &b, Location loc, ValueRange s) {
                             Value term = arith::SelectOp::create(
                                 b, loc, inside, s[0],
                                 floatConstant(b, loc, element, 0));
                             return SmallVector<Value>{
                                 arith::AddFOp::create(b, loc, s[1], term)};
                           })
                  .front();
          Value next = tensor::InsertSliceOp::create(
              b, loc, added, carried[0], ArrayRef<OpFoldResult>{target, zero},
              ArrayRef<OpFoldResult>{one, width},
              ArrayRef<OpFoldResult>{one, one});
          scf::YieldOp::create(b, loc, next);
        });
    b.replaceOp(op, loop.getResults());
    return success();
  }
};

struct LowerGather : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType from = typeOf(op.getOperand());
    RankedTensorType type = typeOf(op.getResult());
    unsigned indexRank = typeOf(op.getIndices()).getRank();
    unsigned dim = op.getDim();
    int64_t extent = from.getDimSize(dim);
    checkIndices(b, loc, op, op.getIndices(), -extent, extent);
    // Result dims: the operand's before `dim`, the indices', the rest.
    SmallVector<AffineExpr> exprs;
    for (unsigned d = 0; d < indexRank; ++d)
      exprs.push_back(b.getAffineDimExpr(dim + d));
    AffineMap map = AffineMap::get(type.getRank(), 0, exprs, b.getContext());
    Value result = buildMap(
        b, loc, op.getIndices(), map, type.getShape(), type.getElementType(),
        [&](OpBuilder &b, Location loc, ValueRange s) -> Value {
          SmallVector<Value> position;
          for (unsigned d = 0; d < dim; ++d)
            position.push_back(linalg::IndexOp::create(b, loc, d));
          position.push_back(wrapToExtent(b, loc, s[0], extent));
          for (unsigned d = dim + 1; d < from.getRank(); ++d)
            position.push_back(
                linalg::IndexOp::create(b, loc, d - 1 + indexRank));
          return tensor::ExtractOp::create(b, loc, op.getOperand(), position);
        });
    b.replaceOp(op, result);
    return success();
  }
};

struct LowerGatherNd : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType from = typeOf(op.getOperand());
    RankedTensorType type = typeOf(op.getResult());
    RankedTensorType indices = typeOf(op.getIndices());
    unsigned batchDims = op.getBatchDims();
    unsigned leading = indices.getRank() - 1;
    unsigned tuple = indices.getShape().back();
    checkTuples(b, loc, op, op.getIndices(), from.getShape(), batchDims);
    Value result = buildMap(
        b, loc, ValueRange{}, {}, type.getShape(), type.getElementType(),
        [&](OpBuilder &b, Location loc, ValueRange) -> Value {
          SmallVector<Value> dims;
          for (int64_t d = 0; d < type.getRank(); ++d)
            dims.push_back(linalg::IndexOp::create(b, loc, d));
          SmallVector<Value> position(dims.begin(), dims.begin() + batchDims);
          SmallVector<Value> tuplePosition(dims.begin(),
                                           dims.begin() + leading);
          for (unsigned k = 0; k < tuple; ++k) {
            tuplePosition.push_back(indexConstant(b, loc, k));
            Value index = tensor::ExtractOp::create(b, loc, op.getIndices(),
                                                    tuplePosition);
            tuplePosition.pop_back();
            position.push_back(
                wrapToExtent(b, loc, index, from.getDimSize(batchDims + k)));
          }
          position.append(dims.begin() + leading, dims.end());
          return tensor::ExtractOp::create(b, loc, op.getOperand(), position);
        });
    b.replaceOp(op, result);
    return success();
  }
};

struct LowerIota : OpRewritePattern<IotaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(IotaOp op, PatternRewriter &b) const override {
    RankedTensorType type = typeOf(op.getResult());
    Type element = type.getElementType();
    Value result =
        buildMap(b, op.getLoc(), ValueRange{}, {}, type.getShape(), element,
                 [&](OpBuilder &b, Location loc, ValueRange) -> Value {
                   Type i64 = b.getI64Type();
                   Value i = arith::IndexCastOp::create(
                       b, loc, i64, linalg::IndexOp::create(b, loc, 0));
                   Value scaled = arith::MulIOp::create(
                       b, loc, i, intConstant(b, loc, i64, op.getStep()));
                   Value value = arith::AddIOp::create(
                       b, loc, scaled, intConstant(b, loc, i64, op.getStart()));
                   if (isa<FloatType>(element))
                     return arith::SIToFPOp::create(b, loc, element, value);
                   if (element.getIntOrFloatBitWidth() < 64)
                     return arith::TruncIOp::create(b, loc, element, value);
                   return value;
                 });
    b.replaceOp(op, result);
    return success();
  }
};

} // namespace

void autohet::populateIndexLowering(RewritePatternSet &patterns) {
  patterns.add<LowerEmbedding, LowerEmbeddingBackward, LowerGather,
               LowerGatherNd, LowerIota>(patterns.getContext());
}
