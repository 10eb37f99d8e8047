//===- LowerAttention.cpp - attention and its adjoint to linalg -----------===//
//
// Attention runs head by head over blocks of query rows: the block's whole
// score rows fit the second-level cache, so no online rescaling is needed, and
// a causal block computes no columns right of its last row. The products stay
// linalg.contract until bufferization is done, and become calls of the
// platform's matrix library then. The adjoint recomputes probabilities from
// log_sum_exp.
//
//===----------------------------------------------------------------------===//

#include "Philox.h"
#include "RowSoftmax.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <optional>

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

/// Query rows a block. 32 rows of 8,192 scores are a megabyte.
constexpr int64_t kBlockRows = 32;

/// What both ops compute scores from.
template <typename AttentionLike>
class Scores {
public:
  Scores(OpBuilder &b, AttentionLike op)
      : op(op), element(typeOf(op.getQuery()).getElementType()),
        batch(typeOf(op.getQuery()).getDimSize(0)),
        heads(typeOf(op.getQuery()).getDimSize(1)),
        queries(typeOf(op.getQuery()).getDimSize(2)),
        keys(typeOf(op.getKey()).getDimSize(2)) {
    Location loc = op.getLoc();
    auto mapType = RankedTensorType::get({heads}, b.getI64Type());
    headMap = arith::ConstantOp::create(
        b, loc, DenseIntElementsAttr::get(mapType, op.getKvHeads()));
    if (double p = probability(); p > 0)
      dropout.emplace(b, loc, getKernelContext(op), p, *op.getDropoutOpId(),
                      ArrayRef<int64_t>{batch, heads, queries, keys},
                      op.getOffsets(), op.getGlobalShape());
  }

  double probability() {
    return op.getDropoutP() ? op.getDropoutP()->convertToDouble() : 0.0;
  }

  /// Calls `body` for every (sample, head, block), with values to carry.
  using Body = llvm::function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;
  SmallVector<Value> forEachBlock(OpBuilder &b, ValueRange carried, Body body) {
    Location loc = op.getLoc();
    Value zero = indexConstant(b, loc, 0), one = indexConstant(b, loc, 1);
    scf::LoopNest nest = scf::buildLoopNest(
        b, loc, {zero, zero},
        {indexConstant(b, loc, batch), indexConstant(b, loc, heads)},
        {one, one}, carried,
        [&](OpBuilder &b, Location loc, ValueRange ivs, ValueRange values) {
          sample = ivs[0];
          head = ivs[1];
          Value mapped = tensor::ExtractOp::create(b, loc, headMap, head);
          kvHead = arith::IndexCastOp::create(b, loc, b.getIndexType(), mapped);
          return forEachRowBlock(b, values, body);
        });
    return SmallVector<Value>(nest.results);
  }

  /// The rows of this block of a [batch, heads, queries, ...] tensor.
  SmallVector<OpFoldResult> blockOffsets(unsigned rank) const {
    SmallVector<OpFoldResult> result = {sample, head, firstRow};
    result.resize(rank, zeroAttr());
    return result;
  }
  SmallVector<OpFoldResult> blockSizes(RankedTensorType type) const {
    SmallVector<OpFoldResult> result = {index(1), index(1), index(rows)};
    for (int64_t extent : type.getShape().drop_front(3))
      result.push_back(index(extent));
    return result;
  }
  Value queryBlock(OpBuilder &b, Value tensor) const {
    RankedTensorType type = typeOf(tensor);
    SmallVector<int64_t> shape = {rows};
    llvm::append_range(shape, type.getShape().drop_front(3));
    return slice(b, tensor, shape, blockOffsets(type.getRank()),
                 blockSizes(type));
  }
  Value insertQueryBlock(OpBuilder &b, Value block, Value tensor) const {
    RankedTensorType type = typeOf(tensor);
    return insert(b, block, tensor, blockOffsets(type.getRank()),
                  blockSizes(type));
  }

  /// The keys (or values) that this block may see, [columns, D].
  Value keyBlock(OpBuilder &b, Value tensor) const {
    int64_t depth = typeOf(tensor).getShape().back();
    return slice(b, tensor, {staticColumns(), depth}, keyOffsets(),
                 keySizes(depth));
  }
  Value insertKeyBlock(OpBuilder &b, Value block, Value tensor) const {
    return insert(b, block, tensor, keyOffsets(),
                  keySizes(typeOf(tensor).getShape().back()));
  }

  /// Uninitialised [rows, columns]: space of its own each time. (Equal
  /// tensor.empty ops would be merged, and the second user would copy.)
  Value scoreSpace(OpBuilder &b) const {
    int64_t known = staticColumns();
    bool isKnown = !ShapedType::isDynamic(known);
    auto type = RankedTensorType::get({rows, isKnown ? known : keys}, element);
    Value whole = bufferization::AllocTensorOp::create(b, op.getLoc(), type,
                                                       ValueRange());
    if (isKnown)
      return whole;
    return slice(b, whole, {rows, known}, {zeroAttr(), zeroAttr()},
                 {index(rows), columns});
  }

  /// lhs * rhs^T into zeros of [rows, columns].
  Value productWithKeys(OpBuilder &b, Value lhs, Value keysLike) const {
    Location loc = op.getLoc();
    Value zero = floatConstant(b, loc, element, 0);
    Value space =
        linalg::FillOp::create(b, loc, zero, scoreSpace(b)).getResult(0);
    AffineExpr r, c, d;
    bindDims(b.getContext(), r, c, d);
    return buildContract(b, loc, lhs, keysLike, space,
                         maps(b, {{r, d}, {c, d}, {r, c}}));
  }

  /// acc + lhs * rhs for lhs [rows, columns] and rhs [columns, D].
  Value productOverKeys(OpBuilder &b, Value lhs, Value rhs, Value acc) const {
    AffineExpr r, d, c;
    bindDims(b.getContext(), r, d, c);
    return buildContract(b, op.getLoc(), lhs, rhs, acc,
                         maps(b, {{r, c}, {c, d}, {r, d}}));
  }

  /// acc + lhs^T * rhs for lhs [rows, columns] and rhs [rows, D].
  Value productOverRows(OpBuilder &b, Value lhs, Value rhs, Value acc) const {
    AffineExpr c, d, r;
    bindDims(b.getContext(), c, d, r);
    return buildContract(b, op.getLoc(), lhs, rhs, acc,
                         maps(b, {{r, c}, {r, d}, {c, d}}));
  }

  /// The part of the mask that this block reads, with its map; nothing if there
  /// is no mask.
  std::optional<std::pair<Value, AffineMap>> maskBlock(OpBuilder &b) const {
    Value mask = op.getMask();
    if (!mask)
      return std::nullopt;
    RankedTensorType type = typeOf(mask);
    OpFoldResult whole[] = {sample, head, firstRow, zeroAttr()};
    OpFoldResult extents[] = {index(1), index(1), index(rows), columns};
    int64_t shapes[] = {1, 1, rows, staticColumns()};
    SmallVector<OpFoldResult> offsets, sizes;
    SmallVector<int64_t> shape;
    for (auto [d, extent] : llvm::enumerate(type.getShape())) {
      unsigned dim = 4 - type.getRank() + d;
      bool repeated = extent == 1;
      offsets.push_back(repeated ? zeroAttr() : whole[dim]);
      sizes.push_back(repeated ? index(1) : extents[dim]);
      if (dim >= 2)
        shape.push_back(repeated ? 1 : shapes[dim]);
    }
    SmallVector<AffineExpr> exprs;
    for (auto [d, extent] : llvm::enumerate(shape)) {
      unsigned dim = 2 - shape.size() + d;
      exprs.push_back(extent == 1 ? b.getAffineConstantExpr(0)
                                  : b.getAffineDimExpr(dim));
    }
    return std::make_pair(slice(b, mask, shape, offsets, sizes),
                          AffineMap::get(2, 0, exprs, b.getContext()));
  }

  /// A scalar: the score after scaling, mask and causality. For the body of a
  /// loop over [rows, columns].
  Value finish(OpBuilder &b, Value score, Value mask) const {
    Location loc = op.getLoc();
    auto floating = cast<FloatType>(element);
    Value lowest = arith::ConstantOp::create(
        b, loc,
        b.getFloatAttr(floating,
                       APFloat::getInf(floating.getFloatSemantics(), true)));
    Value result = product(
        b, loc, score,
        floatConstant(b, loc, element, op.getScale().convertToDouble()));
    if (mask && isa<FloatType>(mask.getType()))
      result = arith::AddFOp::create(b, loc, result, mask,
                                     arith::FastMathFlags::contract);
    else if (mask)
      result = arith::SelectOp::create(b, loc, mask, result, lowest);
    if (op.getCausal()) {
      // 32 bits: as wide as the elements they are compared beside.
      Type i32 = b.getI32Type();
      Value row = arith::AddIOp::create(
          b, loc, linalg::IndexOp::create(b, loc, 0), firstRow);
      Value last = arith::AddIOp::create(
          b, loc, arith::IndexCastOp::create(b, loc, i32, row),
          intConstant(b, loc, i32, keys - queries));
      Value column = arith::IndexCastOp::create(
          b, loc, i32, linalg::IndexOp::create(b, loc, 1));
      Value visible = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                            column, last);
      result = arith::SelectOp::create(b, loc, visible, result, lowest);
    }
    return result;
  }

  /// A scalar: what dropout multiplies this element's probability by; null
  /// without dropout. For the body of a loop over [rows, columns].
  Value dropoutFactor(OpBuilder &b) const {
    if (!dropout)
      return Value();
    Location loc = op.getLoc();
    Value row = arith::AddIOp::create(
        b, loc, linalg::IndexOp::create(b, loc, 0), firstRow);
    return dropout->factorAt(
        b, loc, {sample, head, row, linalg::IndexOp::create(b, loc, 1)});
  }

  int64_t blockRows() const { return rows; }

private:
  SmallVector<Value> forEachRowBlock(OpBuilder &b, ValueRange values,
                                     Body body) {
    Location loc = op.getLoc();
    int64_t step = std::min(kBlockRows, queries);
    int64_t main = queries / step * step;
    SmallVector<Value> results(values);
    if (main == step) {
      enterFixedBlock(b, 0, step);
      results = body(b, results);
    } else {
      auto loop = scf::ForOp::create(
          b, loc, indexConstant(b, loc, 0), indexConstant(b, loc, main),
          indexConstant(b, loc, step), results,
          [&](OpBuilder &b, Location loc, Value iv, ValueRange inner) {
            enterBlock(b, iv, step);
            scf::YieldOp::create(b, loc, body(b, inner));
          });
      results = SmallVector<Value>(loop.getResults());
    }
    // The last, shorter block: shapes stay static.
    if (main < queries) {
      enterFixedBlock(b, main, queries - main);
      results = body(b, results);
    }
    return results;
  }

  // Columns that a block computes: up to the last one that its last row sees.
  // A block that sees none still computes one, which is then masked.
  void enterBlock(OpBuilder &b, Value row, int64_t count) {
    Location loc = op.getLoc();
    firstRow = row;
    rows = count;
    columns = index(keys);
    if (!op.getCausal())
      return;
    Value end = arith::AddIOp::create(
        b, loc, row, indexConstant(b, loc, count + keys - queries));
    end = arith::MinSIOp::create(b, loc, end, indexConstant(b, loc, keys));
    columns = arith::MaxSIOp::create(b, loc, end, indexConstant(b, loc, 1))
                  .getResult();
  }
  // The same with a number known now: a slice's sizes must read alike wherever
  // it is taken, or bufferization would not know the two for one.
  void enterFixedBlock(OpBuilder &b, int64_t row, int64_t count) {
    firstRow = indexConstant(b, op.getLoc(), row);
    rows = count;
    int64_t end = op.getCausal() ? row + count + keys - queries : keys;
    columns = index(std::clamp<int64_t>(end, 1, keys));
  }

  int64_t staticColumns() const {
    return getConstantIntValue(columns).value_or(ShapedType::kDynamic);
  }
  OpFoldResult index(int64_t value) const {
    return IntegerAttr::get(IndexType::get(element.getContext()), value);
  }
  OpFoldResult zeroAttr() const { return index(0); }

  SmallVector<OpFoldResult> keyOffsets() const {
    return {sample, kvHead, zeroAttr(), zeroAttr()};
  }
  SmallVector<OpFoldResult> keySizes(int64_t depth) const {
    return {index(1), index(1), columns, index(depth)};
  }

  Value slice(OpBuilder &b, Value tensor, ArrayRef<int64_t> shape,
              ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes) const {
    auto type =
        RankedTensorType::get(shape, getElementTypeOrSelf(tensor.getType()));
    SmallVector<OpFoldResult> ones(offsets.size(), index(1));
    return tensor::ExtractSliceOp::create(b, op.getLoc(), type, tensor, offsets,
                                          sizes, ones);
  }
  Value insert(OpBuilder &b, Value part, Value tensor,
               ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes) const {
    SmallVector<OpFoldResult> ones(offsets.size(), index(1));
    return tensor::InsertSliceOp::create(b, op.getLoc(), part, tensor, offsets,
                                         sizes, ones);
  }
  static SmallVector<AffineMap> maps(OpBuilder &b,
                                     ArrayRef<SmallVector<AffineExpr>> exprs) {
    SmallVector<AffineMap> result;
    for (ArrayRef<AffineExpr> list : exprs)
      result.push_back(AffineMap::get(3, 0, list, b.getContext()));
    return result;
  }

  mutable AttentionLike op; // a handle, whose accessors are not const
  Type element;
  int64_t batch, heads, queries, keys;
  Value headMap;
  std::optional<DropoutMask> dropout;
  // The block being built.
  Value sample, head, kvHead, firstRow;
  int64_t rows = 0;
  OpFoldResult columns;
};

/// The maps and iterators of loops over [rows, columns].
struct BlockLoops {
  explicit BlockLoops(OpBuilder &b)
      : whole(b.getMultiDimIdentityMap(2)), perRow(rowMap(b.getContext(), 2)) {}
  AffineMap whole, perRow;
  bool parallel[2] = {false, false};
  bool alongRow[2] = {false, true};
};

struct LowerAttention : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = typeOf(op.getResult());
    RankedTensorType lseType = typeOf(op.getLogSumExp());
    Type element = type.getElementType();
    Scores<AttentionOp> scores(rewriter, op);
    Value results[] = {emptyTensor(rewriter, loc, type.getShape(), element),
                       emptyTensor(rewriter, loc, lseType.getShape(), element)};
    rewriter.replaceOp(
        op, scores.forEachBlock(
                rewriter, results, [&](OpBuilder &b, ValueRange carried) {
                  return buildBlock(b, op, scores, carried[0], carried[1]);
                }));
    return success();
  }

  static SmallVector<Value> buildBlock(OpBuilder &b, AttentionOp op,
                                       const Scores<AttentionOp> &scores,
                                       Value result, Value logSumExp) {
    Location loc = op.getLoc();
    Type element = typeOf(result).getElementType();
    BlockLoops loops(b);
    bool zeroEmpty = op.getZeroEmptyRows();
    int64_t rows = scores.blockRows();

    // Scores, finished in place, and their maxima.
    Value raw = scores.productWithKeys(b, scores.queryBlock(b, op.getQuery()),
                                       scores.keyBlock(b, op.getKey()));
    auto mask = scores.maskBlock(b);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    if (mask) {
      inputs.push_back(mask->first);
      maps.push_back(mask->second);
    }
    maps.append({loops.whole, loops.perRow});
    auto floating = cast<FloatType>(element);
    Value lowest = filledTensor(
        b, loc, {rows},
        b.getFloatAttr(floating,
                       APFloat::getInf(floating.getFloatSemantics(), true)));
    SmallVector<Value> finished = buildGeneric(
        b, loc, inputs, {raw, lowest}, maps, loops.alongRow,
        [&](OpBuilder &b, Location loc, ValueRange s) {
          Value score =
              scores.finish(b, s[s.size() - 2], mask ? s.front() : Value());
          return SmallVector<Value>{score, maximum(b, loc, s.back(), score)};
        });

    // Exponentials in place of the scores, and their sums before dropout.
    Value zeros = zeroTensor(b, loc, {rows}, element);
    SmallVector<Value> weights =
        buildGeneric(b, loc, finished[1], {finished[0], zeros},
                     {loops.perRow, loops.whole, loops.perRow}, loops.alongRow,
                     [&](OpBuilder &b, Location loc, ValueRange s) {
                       Value shift =
                           zeroEmpty ? finiteMaximum(b, loc, s[0]) : s[0];
                       Value e = math::ExpOp::create(
                           b, loc, arith::SubFOp::create(b, loc, s[1], shift));
                       Value kept = e;
                       if (Value factor = scores.dropoutFactor(b))
                         kept = arith::MulFOp::create(b, loc, e, factor);
                       return SmallVector<Value>{kept, sum(b, loc, s[2], e)};
                     });

    // Dividing the block's result is cheaper than dividing its weights.
    Value place = scores.queryBlock(b, result);
    Value zero = floatConstant(b, loc, element, 0);
    Value cleared = linalg::FillOp::create(b, loc, zero, place).getResult(0);
    Value mixed = scores.productOverKeys(
        b, weights[0], scores.keyBlock(b, op.getValue()), cleared);
    Value inverse = buildInverseSums(b, loc, weights[1], zeroEmpty);
    Value scaled =
        buildGeneric(b, loc, inverse, mixed, {loops.perRow, loops.whole},
                     loops.parallel,
                     [](OpBuilder &b, Location loc, ValueRange s) {
                       return SmallVector<Value>{product(b, loc, s[1], s[0])};
                     })
            .front();
    AffineMap identity = b.getMultiDimIdentityMap(1);
    Value lse = buildGeneric(b, loc, {finished[1], weights[1]},
                             scores.queryBlock(b, logSumExp),
                             {identity, identity, identity}, {false},
                             [&](OpBuilder &b, Location loc, ValueRange s) {
                               Value shift = zeroEmpty
                                                 ? finiteMaximum(b, loc, s[0])
                                                 : s[0];
                               Value log = math::LogOp::create(b, loc, s[1]);
                               return SmallVector<Value>{
                                   arith::AddFOp::create(b, loc, shift, log)};
                             })
                    .front();
    return {scores.insertQueryBlock(b, scaled, result),
            scores.insertQueryBlock(b, lse, logSumExp)};
  }
};

// With P the probabilities, f dropout's factors, and D = rowsum(dO * O):
//   dV += (P f)' dO;  dS = P (f (dO V') - D) scale;  dQ = dS K;  dK += dS' Q
struct LowerAttentionBackward : OpRewritePattern<AttentionBackwardOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionBackwardOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Scores<AttentionBackwardOp> scores(rewriter, op);
    SmallVector<Value> results;
    // A block of queries writes their gradients and adds to those of keys and
    // values. Told by place: queries and keys may be one value.
    for (Value input : {op.getQuery(), op.getKey(), op.getValue()}) {
      RankedTensorType type = typeOf(input);
      auto start = results.empty() ? emptyTensor : zeroTensor;
      results.push_back(
          start(rewriter, loc, type.getShape(), type.getElementType()));
    }
    rewriter.replaceOp(
        op, scores.forEachBlock(rewriter, results,
                                [&](OpBuilder &b, ValueRange carried) {
                                  return buildBlock(b, op, scores, carried);
                                }));
    return success();
  }

  static SmallVector<Value>
  buildBlock(OpBuilder &b, AttentionBackwardOp op,
             const Scores<AttentionBackwardOp> &scores, ValueRange carried) {
    Location loc = op.getLoc();
    Type element = typeOf(op.getQuery()).getElementType();
    BlockLoops loops(b);
    int64_t rows = scores.blockRows();
    Value query = scores.queryBlock(b, op.getQuery());
    Value gradient = scores.queryBlock(b, op.getGradient());
    Value key = scores.keyBlock(b, op.getKey());

    // Probabilities, in place of the scores. Numbers that are added to all
    // scores of a row can be so low that log_sum_exp has no digits left for the
    // logarithm of the sum: then the sum is taken again.
    Value raw = scores.productWithKeys(b, query, key);
    auto mask = scores.maskBlock(b);
    bool isNumbers =
        mask && isa<FloatType>(getElementTypeOrSelf(mask->first.getType()));
    SmallVector<Value> inputs = {scores.queryBlock(b, op.getLogSumExp())};
    SmallVector<Value> outputs = {raw};
    SmallVector<AffineMap> maps = {loops.perRow};
    if (mask) {
      inputs.push_back(mask->first);
      maps.push_back(mask->second);
    }
    maps.push_back(loops.whole);
    if (isNumbers) {
      outputs.push_back(zeroTensor(b, loc, {rows}, element));
      maps.push_back(loops.perRow);
    }
    SmallVector<Value> weights = buildGeneric(
        b, loc, inputs, outputs, maps,
        isNumbers ? loops.alongRow : loops.parallel,
        [&](OpBuilder &b, Location loc, ValueRange s) {
          Value score =
              scores.finish(b, s[inputs.size()], mask ? s[1] : Value());
          Value shift =
              op.getZeroEmptyRows() ? finiteMaximum(b, loc, s[0]) : s[0];
          Value e = math::ExpOp::create(
              b, loc, arith::SubFOp::create(b, loc, score, shift));
          SmallVector<Value> results = {e};
          if (isNumbers)
            results.push_back(sum(b, loc, s.back(), e));
          return results;
        });
    Value probabilities = weights[0];
    Value inverseSums =
        isNumbers ? buildInverseSums(b, loc, weights[1], op.getZeroEmptyRows())
                  : Value();

    Value dots =
        buildGeneric(b, loc, {gradient, scores.queryBlock(b, op.getResult())},
                     zeroTensor(b, loc, {rows}, element),
                     {loops.whole, loops.whole, loops.perRow}, loops.alongRow,
                     [](OpBuilder &b, Location loc, ValueRange s) {
                       return SmallVector<Value>{
                           sum(b, loc, s[2], product(b, loc, s[0], s[1]))};
                     })
            .front();

    // Both in place: the scores' gradients of those by the weights, and the
    // weights (after dropout) of the probabilities.
    Value byWeights =
        scores.productWithKeys(b, gradient, scores.keyBlock(b, op.getValue()));
    double scale = op.getScale().convertToDouble();
    SmallVector<Value> perRow = {dots};
    SmallVector<AffineMap> bothMaps = {loops.perRow};
    if (inverseSums) {
      perRow.push_back(inverseSums);
      bothMaps.push_back(loops.perRow);
    }
    bothMaps.append({loops.whole, loops.whole});
    SmallVector<Value> both = buildGeneric(
        b, loc, perRow, {byWeights, probabilities}, bothMaps, loops.parallel,
        [&](OpBuilder &b, Location loc, ValueRange s) {
          Value by = s[s.size() - 2], probability = s.back();
          if (inverseSums)
            probability = product(b, loc, probability, s[1]);
          Value weight = probability;
          if (Value factor = scores.dropoutFactor(b)) {
            by = arith::MulFOp::create(b, loc, by, factor);
            weight = arith::MulFOp::create(b, loc, weight, factor);
          }
          Value rest = arith::SubFOp::create(b, loc, by, s[0]);
          Value slope = product(b, loc, probability, rest);
          return SmallVector<Value>{
              product(b, loc, slope, floatConstant(b, loc, element, scale)),
              weight};
        });

    Value queryPlace = scores.queryBlock(b, carried[0]);
    Value zero = floatConstant(b, loc, element, 0);
    Value cleared =
        linalg::FillOp::create(b, loc, zero, queryPlace).getResult(0);
    Value dq = scores.productOverKeys(b, both[0], key, cleared);
    Value dk = scores.productOverRows(b, both[0], query,
                                      scores.keyBlock(b, carried[1]));
    Value dv = scores.productOverRows(b, both[1], gradient,
                                      scores.keyBlock(b, carried[2]));
    return {scores.insertQueryBlock(b, dq, carried[0]),
            scores.insertKeyBlock(b, dk, carried[1]),
            scores.insertKeyBlock(b, dv, carried[2])};
  }
};

} // namespace

void autohet::populateAttentionLowering(RewritePatternSet &patterns) {
  patterns.add<LowerAttention, LowerAttentionBackward>(patterns.getContext());
}
