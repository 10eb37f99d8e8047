//===- LowerOrder.cpp - order, places and running sums to loops -----------===//
//
// What one element is depends on the ones before it, so these are loops over
// scalars that carry what they have found: no linalg op says that. They stand
// beside a model's large tensors and are written for clearness.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

using LoopBody = llvm::function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                       Value, ValueRange)>;

/// for i in [0, count): carried = body(i, carried).
SmallVector<Value> buildLoop(OpBuilder &b, Location loc, int64_t count,
                             ValueRange carried, LoopBody body) {
  auto loop = scf::ForOp::create(
      b, loc, indexConstant(b, loc, 0), indexConstant(b, loc, count),
      indexConstant(b, loc, 1), carried,
      [&](OpBuilder &b, Location loc, Value i, ValueRange values) {
        scf::YieldOp::create(b, loc, body(b, loc, i, values));
      });
  return SmallVector<Value>(loop.getResults());
}

Value compare(OpBuilder &b, Location loc, bool isUnsigned, bool greater,
              bool orEqual, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType())) {
    auto predicate =
        greater
            ? (orEqual ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT)
            : (orEqual ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OLT);
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  using P = arith::CmpIPredicate;
  P predicate = isUnsigned ? (greater ? (orEqual ? P::uge : P::ugt)
                                      : (orEqual ? P::ule : P::ult))
                           : (greater ? (orEqual ? P::sge : P::sgt)
                                      : (orEqual ? P::sle : P::slt));
  return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
}

Value isEqual(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  if (isa<FloatType>(lhs.getType()))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, lhs, rhs);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lhs, rhs);
}

Value toI64(OpBuilder &b, Location loc, Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}

/// [outer, extent of dim, inner].
SmallVector<int64_t> splitAround(ArrayRef<int64_t> shape, int64_t dim) {
  SmallVector<int64_t> parts(3, 1);
  for (auto [d, extent] : llvm::enumerate(shape))
    parts[int64_t(d) < dim ? 0 : int64_t(d) == dim ? 1 : 2] *= extent;
  return parts;
}

//===----------------------------------------------------------------------===//
// Places of extremes
//===----------------------------------------------------------------------===//

struct LowerArgReduce : OpRewritePattern<ArgReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ArgReduceOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType from = typeOf(op.getOperand());
    SmallVector<int64_t> parts = splitAround(from.getShape(), op.getDim());
    int64_t outer = parts[0], extent = parts[1], inner = parts[2];
    Value x = reshapeTensor(b, loc, op.getOperand(), parts);
    bool greater = op.getKind() == ReduceKind::max;
    bool isUnsigned = isUnsignedOp(op);
    Value empty = emptyTensor(b, loc, {outer, inner}, b.getI64Type());
    Value result = buildLoop(
        b, loc, outer, empty,
        [&](OpBuilder &b, Location loc, Value o, ValueRange rows) {
          return buildLoop(
              b, loc, inner, rows,
              [&](OpBuilder &b, Location loc, Value i, ValueRange places) {
                Value zero = indexConstant(b, loc, 0);
                Value first = tensor::ExtractOp::create(b, loc, x,
                                                        ValueRange{o, zero, i});
                SmallVector<Value> best = buildLoop(
                    b, loc, extent, {first, zero},
                    [&](OpBuilder &b, Location loc, Value at, ValueRange best) {
                      Value value = tensor::ExtractOp::create(
                          b, loc, x, ValueRange{o, at, i});
                      Value better = compare(b, loc, isUnsigned, greater,
                                             op.getLast(), value, best[0]);
                      return SmallVector<Value>{
                          arith::SelectOp::create(b, loc, better, value,
                                                  best[0]),
                          arith::SelectOp::create(b, loc, better, at, best[1])};
                    });
                return SmallVector<Value>{
                    tensor::InsertOp::create(b, loc, toI64(b, loc, best[1]),
                                             places[0], ValueRange{o, i})};
              });
        })[0];
    b.replaceOp(
        op, reshapeTensor(b, loc, result, typeOf(op.getResult()).getShape()));
    return success();
  }
};

/// The j-th is the best of those that come after the one before it, in the
/// order of (value, place): nothing has to be marked as taken.
struct LowerTopK : OpRewritePattern<TopKOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TopKOp op, PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType from = typeOf(op.getOperand());
    int64_t extent = from.getShape().back();
    int64_t rows = extent ? from.getNumElements() / extent : 0;
    int64_t k = op.getK();
    Value x = reshapeTensor(b, loc, op.getOperand(), {rows, extent});
    bool greater = op.getLargest(), isUnsigned = isUnsignedOp(op);
    Value values = emptyTensor(b, loc, {rows, k}, from.getElementType());
    Value places = emptyTensor(b, loc, {rows, k}, b.getI64Type());
    SmallVector<Value> results = buildLoop(
        b, loc, rows, {values, places},
        [&](OpBuilder &b, Location loc, Value row, ValueRange tensors) {
          Value zero = indexConstant(b, loc, 0);
          Value no = intConstant(b, loc, b.getI1Type(), 0);
          Value any =
              tensor::ExtractOp::create(b, loc, x, ValueRange{row, zero});
          SmallVector<Value> carried(tensors);
          carried.append(
              {any, zero, no}); // the one before: value, place, is it
          carried = buildLoop(
              b, loc, k, carried,
              [&](OpBuilder &b, Location loc, Value j, ValueRange state) {
                Value value = state[2], place = state[3], isAny = state[4];
                SmallVector<Value> best = buildLoop(
                    b, loc, extent, {any, zero, no},
                    [&](OpBuilder &b, Location loc, Value at, ValueRange best) {
                      Value mine = tensor::ExtractOp::create(
                          b, loc, x, ValueRange{row, at});
                      Value later = arith::CmpIOp::create(
                          b, loc, arith::CmpIPredicate::ugt, at, place);
                      Value behind = arith::OrIOp::create(
                          b, loc,
                          compare(b, loc, isUnsigned, !greater, false, mine,
                                  value),
                          arith::AndIOp::create(
                              b, loc, isEqual(b, loc, mine, value), later));
                      Value yes = intConstant(b, loc, b.getI1Type(), 1);
                      Value open =
                          arith::SelectOp::create(b, loc, isAny, behind, yes);
                      Value better = compare(b, loc, isUnsigned, greater, false,
                                             mine, best[0]);
                      better =
                          arith::SelectOp::create(b, loc, best[2], better, yes);
                      Value take = arith::AndIOp::create(b, loc, open, better);
                      return SmallVector<Value>{
                          arith::SelectOp::create(b, loc, take, mine, best[0]),
                          arith::SelectOp::create(b, loc, take, at, best[1]),
                          arith::OrIOp::create(b, loc, take, best[2])};
                    });
                return SmallVector<Value>{
                    tensor::InsertOp::create(b, loc, best[0], state[0],
                                             {row, j}),
                    tensor::InsertOp::create(b, loc, toI64(b, loc, best[1]),
                                             state[1], {row, j}),
                    best[0], best[1], best[2]};
              });
          return SmallVector<Value>{carried[0], carried[1]};
        });
    ArrayRef<int64_t> shape = typeOf(op.getValues()).getShape();
    b.replaceOp(op, {reshapeTensor(b, loc, results[0], shape),
                     reshapeTensor(b, loc, results[1], shape)});
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Running sums
//===----------------------------------------------------------------------===//

struct LowerCumulativeSum : OpRewritePattern<CumulativeSumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CumulativeSumOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType type = typeOf(op.getOperand());
    SmallVector<int64_t> parts = splitAround(type.getShape(), op.getDim());
    Type element = type.getElementType();
    Value x = reshapeTensor(b, loc, op.getOperand(), parts);
    Value empty = emptyTensor(b, loc, parts, element);
    auto add = [&](OpBuilder &b, Location loc, Value sum,
                   Value value) -> Value {
      if (isa<FloatType>(element))
        return arith::AddFOp::create(b, loc, sum, value);
      return arith::AddIOp::create(b, loc, sum, value);
    };
    Value result = buildLoop(
        b, loc, parts[0], empty,
        [&](OpBuilder &b, Location loc, Value o, ValueRange outer) {
          return buildLoop(
              b, loc, parts[2], outer,
              [&](OpBuilder &b, Location loc, Value i, ValueRange row) {
                Value zero =
                    arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
                SmallVector<Value> done = buildLoop(
                    b, loc, parts[1], {row[0], zero},
                    [&](OpBuilder &b, Location loc, Value step,
                        ValueRange state) {
                      Value at = step;
                      if (op.getReverse())
                        at = arith::SubIOp::create(
                            b, loc, indexConstant(b, loc, parts[1] - 1), step);
                      Value value = tensor::ExtractOp::create(
                          b, loc, x, ValueRange{o, at, i});
                      Value sum = add(b, loc, state[1], value);
                      return SmallVector<Value>{
                          tensor::InsertOp::create(
                              b, loc, op.getExclusive() ? state[1] : sum,
                              state[0], ValueRange{o, at, i}),
                          sum};
                    });
                return SmallVector<Value>{done[0]};
              });
        })[0];
    b.replaceOp(op, reshapeTensor(b, loc, result, type.getShape()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

Value update(OpBuilder &b, Location loc, ScatterKind kind, bool isUnsigned,
             Value old, Value value) {
  bool isFloat = isa<FloatType>(old.getType());
  switch (kind) {
  case ScatterKind::replace:
    return value;
  case ScatterKind::add:
    if (isFloat)
      return arith::AddFOp::create(b, loc, old, value);
    return arith::AddIOp::create(b, loc, old, value);
  case ScatterKind::mul:
    if (isFloat)
      return arith::MulFOp::create(b, loc, old, value);
    return arith::MulIOp::create(b, loc, old, value);
  case ScatterKind::max:
  case ScatterKind::min: {
    bool isMax = kind == ScatterKind::max;
    if (isFloat && isMax)
      return arith::MaximumFOp::create(b, loc, old, value);
    if (isFloat)
      return arith::MinimumFOp::create(b, loc, old, value);
    Value better = compare(b, loc, isUnsigned, isMax, false, value, old);
    return arith::SelectOp::create(b, loc, better, value, old);
  }
  }
  llvm_unreachable("all kinds are listed");
}

struct LowerScatterNd : OpRewritePattern<ScatterNdOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScatterNdOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    RankedTensorType type = typeOf(op.getOperand());
    RankedTensorType indexType = typeOf(op.getIndices());
    int64_t tuple = indexType.getShape().back();
    checkTuples(b, loc, op, op.getIndices(), type.getShape(), 0);
    // [places of tuples, elements of a slice]
    int64_t slice = 1, tuples = 1;
    for (int64_t extent : type.getShape().drop_front(tuple))
      slice *= extent;
    for (int64_t extent : indexType.getShape().drop_back())
      tuples *= extent;
    int64_t places = slice ? type.getNumElements() / slice : 0;
    Value indices = reshapeTensor(b, loc, op.getIndices(), {tuples, tuple});
    Value updates = reshapeTensor(b, loc, op.getUpdates(), {tuples, slice});
    Value flat = reshapeTensor(b, loc, op.getOperand(), {places, slice});
    // A copy: the operand may have other readers.
    Value copy =
        buildMap(b, loc, flat, b.getMultiDimIdentityMap(2), {places, slice},
                 type.getElementType(),
                 [](OpBuilder &, Location, ValueRange s) { return s[0]; });
    bool isUnsigned = isUnsignedOp(op);
    Value result = buildLoop(
        b, loc, tuples, copy,
        [&](OpBuilder &b, Location loc, Value t, ValueRange outer) {
          Value place = indexConstant(b, loc, 0);
          for (int64_t k = 0; k < tuple; ++k) {
            Value index = tensor::ExtractOp::create(
                b, loc, indices, ValueRange{t, indexConstant(b, loc, k)});
            int64_t extent = type.getDimSize(k);
            place = arith::AddIOp::create(
                b, loc,
                arith::MulIOp::create(b, loc, place,
                                      indexConstant(b, loc, extent)),
                wrapToExtent(b, loc, index, extent));
          }
          return buildLoop(
              b, loc, slice, outer,
              [&](OpBuilder &b, Location loc, Value s, ValueRange carried) {
                Value old = tensor::ExtractOp::create(b, loc, carried[0],
                                                      ValueRange{place, s});
                Value value = tensor::ExtractOp::create(b, loc, updates,
                                                        ValueRange{t, s});
                return SmallVector<Value>{tensor::InsertOp::create(
                    b, loc,
                    update(b, loc, op.getKind(), isUnsigned, old, value),
                    carried[0], ValueRange{place, s})};
              });
        })[0];
    b.replaceOp(op, reshapeTensor(b, loc, result, type.getShape()));
    return success();
  }
};

} // namespace

void autohet::populateOrderLowering(RewritePatternSet &patterns) {
  patterns.add<LowerArgReduce, LowerTopK, LowerCumulativeSum, LowerScatterNd>(
      patterns.getContext());
}
