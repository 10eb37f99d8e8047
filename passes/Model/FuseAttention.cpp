//===- FuseAttention.cpp - recognise scaled dot-product attention
//-----------===//
//
// Two products with a softmax between them. Around that core everything varies:
// where the scale is, what the mask is made of, in which order the dims lie,
// how key/value heads are repeated. The core is recognised first; patterns on
// het.attention then absorb the rest, which also serves opset 23's op.
//
//===----------------------------------------------------------------------===//

#include "AttentionMask.h"
#include "Match.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_FUSEATTENTION
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// select(is_nan(softmax(x)), 0, softmax(x)) -> softmax that gives 0 to rows
/// that see nothing: PyTorch's attention with a boolean mask.
struct FuseEmptyRows : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op,
                                PatternRewriter &rewriter) const override {
    auto isNan = op.getCondition().getDefiningOp<IsNanOp>();
    auto softmax = op.getRhs().getDefiningOp<SoftmaxOp>();
    if (!isNan || !softmax || isNan.getOperand() != op.getRhs() ||
        getSplatValue(op.getLhs()) != 0 || op.getType() != softmax.getType())
      return failure();
    rewriter.replaceOpWithNewOp<SoftmaxOp>(op, softmax.getOperand(), true);
    return success();
  }
};

/// x and c, where `value` is c * x.
std::optional<std::pair<Value, double>> matchScaled(Value value) {
  if (auto mul = value.getDefiningOp<MulOp>()) {
    if (auto splat = getSplatValue(mul.getRhs());
        splat && mul.getLhs().getType() == value.getType())
      return std::make_pair(mul.getLhs(), *splat);
    if (auto splat = getSplatValue(mul.getLhs());
        splat && mul.getRhs().getType() == value.getType())
      return std::make_pair(mul.getRhs(), *splat);
  }
  if (auto div = value.getDefiningOp<DivOp>())
    if (auto splat = getSplatValue(div.getRhs());
        splat && div.getLhs().getType() == value.getType())
      return std::make_pair(div.getLhs(), 1 / *splat);
  return std::nullopt;
}

/// Removes constant factors from `value`; their product.
double stripScale(Value &value) {
  double scale = 1;
  while (auto scaled = matchScaled(value)) {
    value = scaled->first;
    scale *= scaled->second;
  }
  return scale;
}

/// transpose(reshape(x)) -> reshape(transpose(x)), where the reshape merges
/// dims: repeated key heads are merged before keys are transposed.
struct TransposeBeforeMerge : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getOperand().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return failure();
    // groups[d]: the dims of x that dim d of the reshape consists of.
    ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
    SmallVector<SmallVector<int64_t>> groups;
    int64_t next = 0, rank = from.size();
    for (int64_t extent : reshape.getShape()) {
      auto &group = groups.emplace_back();
      int64_t product = 1;
      do {
        if (next == rank)
          return failure();
        product *= from[next];
        group.push_back(next++);
      } while (product < extent);
      if (product != extent)
        return failure();
    }
    if (next != rank || groups.size() == from.size())
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t d : op.getPermutation())
      llvm::append_range(permutation, groups[d]);
    Value moved = rewriter.createOrFold<TransposeOp>(
        op.getLoc(), reshape.getOperand(), permutation);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, moved, op.getType().getShape());
    return success();
  }
};

/// transpose(x), where only dims of extent 1 change places -> reshape(x).
struct TransposeOfUnits : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto from = typeOf(op.getOperand());
    int64_t last = -1;
    for (int64_t d : op.getPermutation()) {
      if (from.getDimSize(d) == 1)
        continue;
      if (d < last)
        return failure();
      last = d;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getOperand(),
                                           op.getType().getShape());
    return success();
  }
};

/// The dims that a side of a matmul keeps for itself.
SmallVector<int64_t> keptDims(Value value, ArrayRef<int64_t> batch,
                              ArrayRef<int64_t> contract) {
  SmallVector<int64_t> kept;
  for (int64_t d = 0, rank = typeOf(value).getRank(); d < rank; ++d)
    if (!llvm::is_contained(batch, d) && !llvm::is_contained(contract, d))
      kept.push_back(d);
  return kept;
}

/// A batched product keeps one dim of either side: others of extent 1, which
/// packed projections leave, are reshaped away.
struct DropUnitDims : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getLhsBatch().empty())
      return failure();
    Value values[2] = {op.getLhs(), op.getRhs()};
    SmallVector<int64_t> batch[2] = {llvm::to_vector(op.getLhsBatch()),
                                     llvm::to_vector(op.getRhsBatch())};
    SmallVector<int64_t> contract[2] = {llvm::to_vector(op.getLhsContract()),
                                        llvm::to_vector(op.getRhsContract())};
    bool changed = false;
    for (unsigned i : {0, 1}) {
      auto kept = keptDims(values[i], batch[i], contract[i]);
      ArrayRef<int64_t> shape = typeOf(values[i]).getShape();
      SmallVector<int64_t> dropped;
      for (int64_t d : kept)
        if (shape[d] == 1 && dropped.size() + 1 < kept.size())
          dropped.push_back(d);
      if (dropped.empty())
        continue;
      changed = true;
      SmallVector<int64_t> smaller;
      for (auto [d, extent] : llvm::enumerate(shape))
        if (!llvm::is_contained(dropped, int64_t(d)))
          smaller.push_back(extent);
      for (auto *dims : {&batch[i], &contract[i]})
        for (int64_t &dim : *dims)
          dim -= llvm::count_if(dropped, [&](int64_t d) { return d < dim; });
      values[i] =
          rewriter.createOrFold<ReshapeOp>(op.getLoc(), values[i], smaller);
    }
    if (!changed)
      return failure();
    Value product =
        MatmulOp::create(rewriter, op.getLoc(), values[0], values[1], batch[0],
                         batch[1], contract[0], contract[1]);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, product,
                                           typeOf(op.getResult()).getShape());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The core
//===----------------------------------------------------------------------===//

/// What lies between the product of queries and keys and the softmax.
struct Scores {
  MatmulOp product;
  double scale = 1;
  /// A mask: numbers that are added, times `factor`; or with a `fill`, a
  /// condition where the score stays.
  struct Mask {
    Value value;
    double factor = 1;
    std::optional<double> fill;
    bool negated = false; // the score stays where the condition is false
  };
  SmallVector<Mask> masks;
};

bool matchScores(Value value, Scores &scores) {
  if (auto matmul = value.getDefiningOp<MatmulOp>()) {
    scores.product = matmul;
    return true;
  }
  if (auto scaled = matchScaled(value)) {
    scores.scale *= scaled->second;
    return matchScores(scaled->first, scores);
  }
  if (auto add = value.getDefiningOp<AddOp>()) {
    for (auto [inner, mask] : {std::make_pair(add.getLhs(), add.getRhs()),
                               std::make_pair(add.getRhs(), add.getLhs())}) {
      Scores attempt = scores;
      attempt.masks.push_back({mask, scores.scale, std::nullopt});
      if (inner.getType() == value.getType() && !dependsOnTrained(mask) &&
          matchScores(inner, attempt)) {
        scores = std::move(attempt);
        return true;
      }
    }
    return false;
  }
  if (auto select = value.getDefiningOp<SelectOp>()) {
    bool negated = getSplatValue(select.getLhs()).has_value();
    Value inner = negated ? select.getRhs() : select.getLhs();
    auto fill = getSplatValue(negated ? select.getLhs() : select.getRhs());
    if (!fill || inner.getType() != value.getType() ||
        dependsOnTrained(select.getCondition()))
      return false;
    scores.masks.push_back(
        {select.getCondition(), 1, *fill * scores.scale, negated});
    return matchScores(inner, scores);
  }
  return false;
}

/// One side as [B, H, rows, columns]; a single batch dim is B, with one head.
Value toHeads(PatternRewriter &rewriter, Location loc, Value value,
              ArrayRef<int64_t> batch, int64_t rows, int64_t columns) {
  SmallVector<int64_t> order(batch);
  order.append({rows, columns});
  value = rewriter.createOrFold<TransposeOp>(loc, value, order);
  if (batch.size() == 2)
    return value;
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape.insert(shape.begin() + 1, 1);
  return rewriter.createOrFold<ReshapeOp>(loc, value, shape);
}

/// softmax(scale * q k^T + mask) v.
struct FuseCore : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    Value probabilities = op.getLhs();
    auto dropout = probabilities.getDefiningOp<DropoutOp>();
    if (dropout)
      probabilities = dropout.getOperand();
    auto softmax = probabilities.getDefiningOp<SoftmaxOp>();
    Scores scores;
    if (!softmax || !matchScores(softmax.getOperand(), scores))
      return failure();

    MatmulOp product = scores.product;
    size_t batch = product.getLhsBatch().size();
    auto queryRows = keptDims(product.getLhs(), product.getLhsBatch(),
                              product.getLhsContract());
    auto keyRows = keptDims(product.getRhs(), product.getRhsBatch(),
                            product.getRhsContract());
    auto valueColumns =
        keptDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
    if (batch < 1 || batch > 2 || product.getLhsContract().size() != 1 ||
        queryRows.size() != 1 || keyRows.size() != 1 ||
        valueColumns.size() != 1 ||
        !llvm::equal(op.getLhsBatch(), llvm::seq<int64_t>(batch)) ||
        op.getLhsContract() != ArrayRef<int64_t>{int64_t(batch) + 1})
      return failure();

    auto type = typeOf(product.getResult());
    AttentionMask mask(type.getDimSize(batch), type.getDimSize(batch + 1),
                       /*hasHeads=*/batch == 2);
    for (const Scores::Mask &part : scores.masks)
      if (!part.fill)
        mask.addNumbers(part.value, part.factor);
      else if (failed(mask.addFill(part.value, part.negated, *part.fill)))
        return failure();
    mask.settle();

    // PyTorch scales queries and keys by the root of the scale each.
    Location loc = op.getLoc();
    Value query = product.getLhs(), key = product.getRhs();
    double scale = scores.scale * stripScale(query) * stripScale(key);
    query = toHeads(rewriter, loc, query, product.getLhsBatch(), queryRows[0],
                    product.getLhsContract()[0]);
    key = toHeads(rewriter, loc, key, product.getRhsBatch(), keyRows[0],
                  product.getRhsContract()[0]);
    Value value = toHeads(rewriter, loc, op.getRhs(), op.getRhsBatch(),
                          op.getRhsContract()[0], valueColumns[0]);
    auto heads = llvm::to_vector(llvm::seq(typeOf(query).getDimSize(1)));
    auto attention = AttentionOp::create(
        rewriter, loc, query, key, value, mask.build(rewriter, loc),
        rewriter.getF64FloatAttr(scale), rewriter.getDenseI64ArrayAttr(heads),
        mask.isCausal() ? rewriter.getUnitAttr() : UnitAttr(),
        softmax.getZeroEmptyRowsAttr(), dropout ? dropout.getPAttr() : nullptr,
        dropout ? dropout.getOpIdAttr() : nullptr, nullptr, nullptr);
    rewriter.replaceOp(
        op, rewriter.createOrFold<ReshapeOp>(
                loc, attention.getResult(), typeOf(op.getResult()).getShape()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Around het.attention
//===----------------------------------------------------------------------===//

/// A mask that is causality, or contains it, becomes `causal`.
struct SimplifyMask : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getMask())
      return failure();
    AttentionMask mask(typeOf(op.getQuery()).getDimSize(2),
                       typeOf(op.getKey()).getDimSize(2));
    if (typeOf(op.getMask()).getElementType().isInteger(1))
      mask.addCondition(op.getMask());
    else
      mask.addNumbers(op.getMask(), 1);
    mask.settle();
    if (!mask.isSimplified())
      return failure();
    Value left = mask.build(rewriter, op.getLoc());
    rewriter.modifyOpInPlace(op, [&] {
      op.getMaskMutable().clear();
      if (left)
        op.getMaskMutable().assign(left);
      if (mask.isCausal())
        op.setCausal(true);
    });
    return success();
  }
};

/// A scale on all queries or keys is one of the scores.
struct AbsorbScale : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Value query = op.getQuery(), key = op.getKey();
    double scale = stripScale(query) * stripScale(key);
    if (query == op.getQuery() && key == op.getKey())
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getQueryMutable().assign(query);
      op.getKeyMutable().assign(key);
      op.setScale(APFloat(op.getScale().convertToDouble() * scale));
    });
    return success();
  }
};

/// Heads that are copies of fewer heads.
struct Repetition {
  Value heads;                 // [B, K, T, D], up to reshaping
  SmallVector<int64_t> shape;  // that shape
  SmallVector<int64_t> copied; // head h is a copy of heads[copied[h]]

  static std::optional<Repetition> match(Value value) {
    ArrayRef<int64_t> shape = typeOf(value).getShape();
    if (auto gather = value.getDefiningOp<GatherOp>())
      return ofGather(gather);
    Value repeated = value;
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      repeated = reshape.getOperand();
    if (auto concat = repeated.getDefiningOp<ConcatOp>())
      return ofConcat(concat, shape);
    auto broadcast = repeated.getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return std::nullopt;
    SmallVector<int64_t> from(typeOf(broadcast.getOperand()).getShape());
    ArrayRef<int64_t> to = broadcast.getShape();
    from.insert(from.begin(), to.size() - from.size(), 1);
    // [B, K, 1, T, D] to [B, K, n, T, D], or [B, 1, K, T, D], or [B, 1, T, D].
    SmallVector<int64_t> grown;
    for (auto [d, extent] : llvm::enumerate(from))
      if (extent != to[d])
        grown.push_back(d);
    int64_t rank = to.size();
    if (grown.size() != 1 || rank < 4 || rank > 5 || to[0] != shape[0] ||
        to[rank - 2] != shape[2] || to[rank - 1] != shape[3] || grown[0] < 1 ||
        grown[0] > rank - 3)
      return std::nullopt;
    int64_t n = to[grown[0]], kept = shape[1] / n;
    bool blocks = grown[0] == rank - 3; // copies lie side by side
    Repetition result{
        broadcast.getOperand(), {shape[0], kept, shape[2], shape[3]}, {}};
    for (int64_t h = 0; h < shape[1]; ++h)
      result.copied.push_back(blocks ? h / n : h % kept);
    return result;
  }

private:
  /// Heads that constant indices choose.
  static std::optional<Repetition> ofGather(GatherOp gather) {
    DenseIntElementsAttr indices;
    if (gather.getDim() != 1 ||
        !matchPattern(gather.getIndices(), m_Constant(&indices)) ||
        cast<ShapedType>(indices.getType()).getRank() != 1)
      return std::nullopt;
    ArrayRef<int64_t> shape = typeOf(gather.getOperand()).getShape();
    Repetition result{gather.getOperand(), llvm::to_vector(shape), {}};
    for (const APInt &index : indices.getValues<APInt>()) {
      int64_t head = index.getSExtValue();
      if (head < -shape[1] || head >= shape[1])
        return std::nullopt;
      result.copied.push_back(head < 0 ? head + shape[1] : head);
    }
    return result;
  }

  /// One tensor several times: along the heads, or, as [B, K, 1, T, D], beside
  /// each of them.
  static std::optional<Repetition> ofConcat(ConcatOp concat,
                                            ArrayRef<int64_t> shape) {
    Value part = concat.getParts().front();
    ArrayRef<int64_t> own = typeOf(part).getShape();
    int64_t rank = own.size(), dim = concat.getDim(),
            n = concat.getParts().size();
    bool blocks = rank == 5 && dim == 2 && own[2] == 1;
    bool inTurn =
        (rank == 4 && dim == 1) || (rank == 5 && dim == 1 && own[1] == 1);
    if (!llvm::all_equal(concat.getParts()) || (!blocks && !inTurn) ||
        own[0] != shape[0] || own[rank - 2] != shape[2] ||
        own[rank - 1] != shape[3])
      return std::nullopt;
    int64_t kept = shape[1] / n;
    Repetition result{part, {shape[0], kept, shape[2], shape[3]}, {}};
    for (int64_t h = 0; h < shape[1]; ++h)
      result.copied.push_back(blocks ? h / n : h % kept);
    return result;
  }
};

/// Repeated key/value heads (repeat_kv) become the map of heads.
struct AbsorbRepetition : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto key = Repetition::match(op.getKey());
    auto value = Repetition::match(op.getValue());
    if (!key || !value || key->copied != value->copied)
      return failure();
    Value heads[2];
    for (auto [result, repetition] :
         {std::make_pair(&heads[0], &*key), std::make_pair(&heads[1], &*value)})
      *result = rewriter.createOrFold<ReshapeOp>(op.getLoc(), repetition->heads,
                                                 repetition->shape);
    SmallVector<int64_t> map;
    for (int64_t head : op.getKvHeads())
      map.push_back(key->copied[head]);
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeyMutable().assign(heads[0]);
      op.getValueMutable().assign(heads[1]);
      op.setKvHeads(map);
    });
    return success();
  }
};

struct FuseAttention : autohet::impl::FuseAttentionBase<FuseAttention> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseEmptyRows, TransposeBeforeMerge, TransposeOfUnits,
                 DropUnitDims, FuseCore, SimplifyMask, AbsorbScale,
                 AbsorbRepetition>(&getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
