//===- DenseExperts.cpp - all experts in place of copies of some ----------===//
//
// Exporters write a layer of experts as lookups: each token gets copies of the
// weights of the few experts that its router chose, and a product with them.
//
//   z = gather(W, chosen) x            W [E, N, K], chosen [tokens, k]
//
// The copies are tokens * k matrices, which no real model's fit. So every
// expert computes every token, and the lookup comes after the product:
//
//   z = pick(W x, chosen)              W x [tokens, E, N]
//
// A pick moves down, past all that works on each expert alone, into the next
// product with looked-up weights, until the weighted sum over the chosen
// experts, which becomes one over all, in which the others have the weight 0.
// What an expert computes for a token that did not choose it begins with zeros:
// numbers that overflow there would be NaN when they are weighed by 0.
// What arithmetic it costs, E / k times as much, it saves in copies: products
// of whole matrices, no gradient that is scattered into the weights, and
// weights that are divided among devices as any are.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "autohet/Passes/Model/Passes.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_DENSEEXPERTS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

/// On a gather_nd of this pass, which alone moves: one that the model wrote
/// before more work is there to save it.
constexpr llvm::StringLiteral kPickAttr = "het.pick_of_experts";

Value stripReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getOperand();
  return value;
}

/// Of `all`, [tokens..., experts, rest...], the rows that `tuples` name,
/// [tokens..., chosen, 1]; the result is [tokens..., chosen, rest...].
struct Pick {
  Value all, tuples;

  static std::optional<Pick> match(Value value) {
    auto op = value.getDefiningOp<GatherNdOp>();
    if (!op || !op->hasAttr(kPickAttr))
      return std::nullopt;
    return Pick{op.getOperand(), op.getIndices()};
  }

  /// The dim that counts experts in `all`, and the chosen in the result.
  int64_t lane() const { return typeOf(tuples).getRank() - 2; }
  int64_t experts() const { return typeOf(all).getDimSize(lane()); }
  /// Whether the indices are those of another lookup, in whatever shape.
  bool sameIndices(Value others) const {
    return stripReshapes(tuples) == stripReshapes(others) &&
           typeOf(others).getNumElements() == typeOf(tuples).getNumElements();
  }

  /// The same rows of another value.
  Value of(OpBuilder &b, Location loc, Value others) const {
    auto op = GatherNdOp::create(b, loc, others, tuples, lane());
    op->setAttr(kPickAttr, b.getUnitAttr());
    return op;
  }
  /// `shape` of a picked value before it was picked.
  SmallVector<int64_t> unpick(ArrayRef<int64_t> shape) const {
    SmallVector<int64_t> result(shape);
    result[lane()] = experts();
    return result;
  }
};

/// `value` with extent 1 in dim `lane`, along which its rows are equal because
/// they are copies; null where they are not.
Value matchRepeated(OpBuilder &b, Value value, int64_t lane) {
  auto type = typeOf(value);
  if (type.getDimSize(lane) == 1)
    return value;
  SmallVector<int64_t> once(type.getShape());
  once[lane] = 1;
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return typeOf(broadcast.getOperand()).getShape() == ArrayRef(once)
               ? broadcast.getOperand()
               : Value();
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return {};
  ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
  if (int64_t(from.size()) <= lane ||
      from.take_front(lane + 1) != type.getShape().take_front(lane + 1))
    return {};
  Value inner = matchRepeated(b, reshape.getOperand(), lane);
  return inner ? b.createOrFold<ReshapeOp>(value.getLoc(), inner, once)
               : Value();
}

/// [tokens, chosen, experts]: whether an expert is the one that was chosen.
Value compareWithExperts(OpBuilder &b, Location loc, Value tuples,
                         int64_t experts) {
  Value numbers =
      IotaOp::create(b, loc, 0, 1, experts, typeOf(tuples).getElementType());
  return CompareOp::create(b, loc, ComparePredicate::eq, tuples, numbers);
}

/// `all`, [tokens, experts, rest...], with 0 where the token has not chosen the
/// expert.
Value clearOthers(OpBuilder &b, Location loc, Value all, Value tuples,
                  int64_t lane) {
  int64_t experts = typeOf(all).getDimSize(lane);
  Value isIt = compareWithExperts(b, loc, tuples, experts);
  Value hits = ReduceOp::create(b, loc, ReduceKind::max,
                                CastOp::create(b, loc, isIt, b.getF32Type()),
                                SmallVector<int64_t>{lane}, /*keep=*/false);
  auto scalar = [&](Type element) {
    return createSplat(b, loc, RankedTensorType::get({}, element), 0);
  };
  Value isChosen = CompareOp::create(b, loc, ComparePredicate::gt, hits,
                                     scalar(b.getF32Type()));
  SmallVector<int64_t> column(typeOf(isChosen).getShape());
  column.resize(typeOf(all).getRank(), 1);
  isChosen = b.createOrFold<ReshapeOp>(loc, isChosen, column);
  return SelectOp::create(b, loc, isChosen, all,
                          scalar(typeOf(all).getElementType()));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// A product with weights that were looked up, of what all of a token's chosen
/// experts see alike or of what they computed.
struct PickAfterProduct : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    for (bool left : {true, false})
      if (succeeded(rewrite(op, left, rewriter)))
        return success();
    return failure();
  }

private:
  static LogicalResult rewrite(MatmulOp op, bool left,
                               PatternRewriter &rewriter) {
    auto gather = (left ? op.getLhs() : op.getRhs()).getDefiningOp<GatherOp>();
    Value x = left ? op.getRhs() : op.getLhs();
    if (!gather || gather.getDim() != 0)
      return failure();
    Value weights = gather.getOperand(), indices = gather.getIndices();
    int64_t rank = typeOf(indices).getRank(), lane = rank - 1;
    int64_t experts = typeOf(weights).getDimSize(0);
    auto paired = llvm::seq<int64_t>(0, rank);
    if (rank == 0 || experts < 2 || !llvm::equal(op.getLhsBatch(), paired) ||
        !llvm::equal(op.getRhsBatch(), paired) ||
        !isPlaceWithin(indices, experts))
      return failure();

    // Dims of the product's sides: x [tokens, chosen, ...], weights [E, ...].
    SmallVector<int64_t> xContract(left ? op.getRhsContract()
                                        : op.getLhsContract());
    SmallVector<int64_t> contract(left ? op.getLhsContract()
                                       : op.getRhsContract());
    int64_t summed = 1;
    for (int64_t &dim : contract) {
      dim -= lane; // the experts' dim in place of the indices'
      summed *= typeOf(weights).getDimSize(dim);
    }
    // Fewer lookups than experts copy less than there is; and a pick of more
    // experts than an expert has inputs would be larger than the copies.
    if (typeOf(indices).getNumElements() < experts || experts > summed)
      return failure();

    auto before = Pick::match(x);
    bool isOfExperts =
        before && before->lane() == lane && before->sameIndices(indices);
    x = isOfExperts ? before->all : matchRepeated(rewriter, x, lane);
    if (!x)
      return failure();

    // Without dims of extent 1: that of the copies, and what bmm wants.
    Location loc = op.getLoc();
    SmallVector<int64_t> shape, xDims; // of x then; the contracted ones
    for (auto [dim, extent] : llvm::enumerate(typeOf(x).getShape())) {
      if (llvm::is_contained(xContract, int64_t(dim)))
        xDims.push_back(shape.size());
      else if (int64_t(dim) >= lane && extent == 1)
        continue;
      shape.push_back(extent);
    }
    // Contracted dims are paired in the order of the lists.
    SmallVector<int64_t> sorted(xContract);
    llvm::sort(sorted);
    for (int64_t &dim : xContract)
      dim = xDims[llvm::find(sorted, dim) - sorted.begin()];
    x = rewriter.createOrFold<ReshapeOp>(loc, x, shape);

    //   of experts   [experts, tokens, others, outputs]
    //   else         [tokens, others, experts, outputs]
    SmallVector<int64_t> batch(isOfExperts ? 1 : 0, lane),
        expertsDim(batch.size(), 0);
    Value all = MatmulOp::create(rewriter, loc, x, weights, batch, expertsDim,
                                 xContract, contract);
    int64_t outputs = typeOf(weights).getRank() - 1 - int64_t(contract.size());
    int64_t others = typeOf(all).getRank() - 1 - lane - outputs;
    int64_t first = isOfExperts ? 1 : 0, end = typeOf(all).getRank();
    auto tokenDims = llvm::seq<int64_t>(first, first + lane);
    auto otherDims = llvm::seq<int64_t>(first + lane, first + lane + others);
    auto outputDims = llvm::seq<int64_t>(end - outputs, end);
    // To [tokens, experts, ...], the free dims of the left side first.
    SmallVector<int64_t> order = llvm::to_vector(tokenDims);
    order.push_back(isOfExperts ? 0 : lane + others);
    llvm::append_range(order, left ? outputDims : otherDims);
    llvm::append_range(order, left ? otherDims : outputDims);
    all = rewriter.createOrFold<TransposeOp>(loc, all, order);
    SmallVector<int64_t> result(typeOf(op.getResult()).getShape());
    result[lane] = experts;
    all = rewriter.createOrFold<ReshapeOp>(loc, all, result);

    SmallVector<int64_t> column(typeOf(indices).getShape());
    column.push_back(1);
    Value tuples = rewriter.createOrFold<ReshapeOp>(loc, indices, column);
    if (!isOfExperts)
      all = clearOthers(rewriter, loc, all, tuples, lane);
    rewriter.replaceOp(op, Pick{all, tuples}.of(rewriter, loc, all));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// What works on each expert alone
//===----------------------------------------------------------------------===//

/// All picked operands are picked alike, the others are the same for all
/// experts. Not dropout: whom it drops depends on the place.
struct PickAfterElementwise
    : OpInterfaceRewritePattern<ElementwiseOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(ElementwiseOpInterface op,
                                PatternRewriter &rewriter) const override {
    auto result = typeOf(op->getResult(0));
    std::optional<Pick> pick;
    for (Value operand : op->getOperands())
      if (!pick && typeOf(operand).getRank() == result.getRank())
        pick = Pick::match(operand);
    if (!pick || isa<DropoutOp>(op))
      return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      auto type = typeOf(operand);
      int64_t own = pick->lane() - (result.getRank() - type.getRank());
      auto other = Pick::match(operand);
      bool isAlike = other && own == pick->lane() && other->lane() == own &&
                     other->sameIndices(pick->tuples);
      if (!isAlike && own >= 0 && type.getDimSize(own) != 1)
        return failure();
      operands.push_back(isAlike ? other->all : operand);
    }
    Operation *copy = rewriter.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(result.clone(pick->unpick(result.getShape())));
    rewriter.replaceOp(op, pick->of(rewriter, op.getLoc(), copy->getResult(0)));
    return success();
  }
};

/// Of the dims behind the chosen experts.
struct PickAfterSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto pick = Pick::match(op.getOperand());
    if (!pick)
      return failure();
    ArrayRef<int64_t> whole = typeOf(op.getOperand()).getShape();
    for (int64_t dim = 0; dim <= pick->lane(); ++dim)
      if (op.getSizes()[dim] != whole[dim] || op.getStrides()[dim] != 1)
        return failure();
    Value part =
        SliceOp::create(rewriter, op.getLoc(), pick->all, op.getOffsets(),
                        pick->unpick(op.getSizes()), op.getStrides());
    rewriter.replaceOp(op, pick->of(rewriter, op.getLoc(), part));
    return success();
  }
};

struct PickAfterReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto pick = Pick::match(op.getOperand());
    if (!pick)
      return failure();
    size_t kept = pick->lane() + 1;
    ArrayRef<int64_t> from = typeOf(op.getOperand()).getShape(),
                      to = op.getShape();
    if (to.size() < kept || from.take_front(kept) != to.take_front(kept))
      return failure();
    Value all = rewriter.createOrFold<ReshapeOp>(op.getLoc(), pick->all,
                                                 pick->unpick(to));
    rewriter.replaceOp(op, pick->of(rewriter, op.getLoc(), all));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// sum over the chosen of share * pick(y) -> sum over all of share * y, where
/// those that were not chosen have no share.
struct SumOverExperts : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto product = op.getOperand().getDefiningOp<MulOp>();
    if (op.getKind() != ReduceKind::sum || !product)
      return failure();
    for (auto [picked, shares] :
         {std::pair(product.getLhs(), product.getRhs()),
          std::pair(product.getRhs(), product.getLhs())}) {
      auto pick = Pick::match(picked);
      if (!pick || op.getDims() != ArrayRef<int64_t>{pick->lane()} ||
          !isOneForEach(shares, *pick))
        continue;
      Location loc = op.getLoc();
      Type element = typeOf(shares).getElementType();
      Value zero =
          createSplat(rewriter, loc, RankedTensorType::get({}, element), 0);
      Value isIt =
          compareWithExperts(rewriter, loc, pick->tuples, pick->experts());
      Value share = rewriter.createOrFold<ReshapeOp>(
          loc, shares, typeOf(pick->tuples).getShape());
      // [tokens, chosen, experts], summed over the chosen.
      Value spread = SelectOp::create(rewriter, loc, isIt, share, zero);
      spread = ReduceOp::create(rewriter, loc, ReduceKind::sum, spread,
                                SmallVector<int64_t>{pick->lane()},
                                /*keep=*/false);
      SmallVector<int64_t> column(typeOf(spread).getShape());
      column.resize(typeOf(pick->all).getRank(), 1);
      spread = rewriter.createOrFold<ReshapeOp>(loc, spread, column);
      Value weighed = MulOp::create(rewriter, loc, pick->all, spread);
      rewriter.replaceOpWithNewOp<ReduceOp>(op, ReduceKind::sum, weighed,
                                            op.getDims(), op.getKeep());
      return success();
    }
    return failure();
  }

private:
  /// Whether `shares` has one number a chosen expert.
  static bool isOneForEach(Value shares, const Pick &pick) {
    auto type = typeOf(shares);
    return type.getRank() == typeOf(pick.all).getRank() &&
           type.getNumElements() == typeOf(pick.tuples).getNumElements() &&
           type.getShape().take_front(pick.lane() + 1) ==
               typeOf(pick.tuples).getShape().drop_back();
  }
};

struct DenseExperts : autohet::impl::DenseExpertsBase<DenseExperts> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<PickAfterProduct, PickAfterElementwise, PickAfterSlice,
                 PickAfterReshape, SumOverExperts>(&getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([](GatherNdOp op) { op->removeAttr(kPickAttr); });
  }
};

} // namespace
