//===- Unflatten.cpp - keep the batch a dim of its own
//----------------------===//
//
// GPT-2's Conv1D is a Gemm on [batch * sequence, hidden] between two reshapes,
// and bmm wants [batch * heads, ...]. A merged batch dim cannot be cut into
// microbatches. So each reshape that merges dim 0 with others moves down, past
// the op that uses it, until it meets the reshape that undoes it.
//
// Transposes go into the matmul that uses them: any order of dims is one op.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "autohet/Passes/Model/Passes.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_UNFLATTEN
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

//===----------------------------------------------------------------------===//
// Flattenings
//===----------------------------------------------------------------------===//

/// A reshape whose dim 0 is the product of `lead`, two or more leading dims of
/// the operand.
///   reshape [2, 12, 4, 8] to [24, 32]: lead [2, 12], unflattened [2, 12, 32]
struct Flattening {
  ReshapeOp reshape;
  ArrayRef<int64_t> lead;

  static std::optional<Flattening> match(Value value) {
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape || reshape.getShape().empty())
      return std::nullopt;
    ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
    int64_t product = 1;
    for (size_t k = 0; k < from.size(); ++k) {
      product *= from[k];
      if (product != reshape.getShape()[0])
        continue;
      if (k == 0)
        return std::nullopt;
      return Flattening{reshape, from.take_front(k + 1)};
    }
    return std::nullopt;
  }

  int64_t extent() const {
    return const_cast<ReshapeOp &>(reshape).getShape()[0];
  }

  /// `shape` with dim `dim`, which has the merged extent, taken apart.
  SmallVector<int64_t> unflatten(ArrayRef<int64_t> shape,
                                 int64_t dim = 0) const {
    SmallVector<int64_t> result(shape.take_front(dim));
    llvm::append_range(result, lead);
    llvm::append_range(result, shape.drop_front(dim + 1));
    return result;
  }

  /// The numbers that dim `d` gets when dim `merged` is taken apart.
  SmallVector<int64_t> expand(int64_t d, int64_t merged = 0) const {
    int64_t count = lead.size();
    if (d < merged)
      return {d};
    if (d > merged)
      return {d + count - 1};
    return llvm::to_vector(llvm::seq(d, d + count));
  }
  SmallVector<int64_t> expand(ArrayRef<int64_t> dims,
                              int64_t merged = 0) const {
    SmallVector<int64_t> result;
    for (int64_t d : dims)
      llvm::append_range(result, expand(d, merged));
    return result;
  }
};

Value createReshape(OpBuilder &builder, Location loc, Value value,
                    ArrayRef<int64_t> shape) {
  return builder.createOrFold<ReshapeOp>(loc, value, shape);
}

/// A copy of `op` on other operands, its results with dim 0 taken apart, each
/// followed by the reshape that merges dim 0 again.
void replaceUnflattened(PatternRewriter &rewriter, Operation *op,
                        const Flattening &flattening, ValueRange operands) {
  Operation *copy = rewriter.clone(*op);
  copy->setOperands(operands);
  SmallVector<Value> merged;
  for (Value result : copy->getResults()) {
    auto type = typeOf(result);
    result.setType(type.clone(flattening.unflatten(type.getShape())));
    merged.push_back(
        createReshape(rewriter, op->getLoc(), result, type.getShape()));
  }
  rewriter.replaceOp(op, merged);
}

//===----------------------------------------------------------------------===//
// Ops that keep dim 0
//===----------------------------------------------------------------------===//

/// Elementwise ops: all operands of the merged extent are taken apart alike.
struct SinkThroughElementwise
    : OpInterfaceRewritePattern<ElementwiseOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(ElementwiseOpInterface op,
                                PatternRewriter &rewriter) const override {
    auto result = typeOf(op->getResult(0));
    std::optional<Flattening> flattening;
    for (Value operand : op->getOperands())
      if (typeOf(operand).getRank() == result.getRank() && !flattening)
        flattening = Flattening::match(operand);
    if (!flattening || result.getDimSize(0) != flattening->extent())
      return failure();

    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      ArrayRef<int64_t> shape = typeOf(operand).getShape();
      if (int64_t(shape.size()) < result.getRank()) {
        operands.push_back(operand);
        continue;
      }
      SmallVector<int64_t> apart;
      if (shape[0] == flattening->extent())
        apart = flattening->unflatten(shape);
      else
        apart.assign(shape.begin(), shape.end()); // 1: broadcasts as it is
      operands.push_back(createReshape(rewriter, op.getLoc(), operand, apart));
    }
    replaceUnflattened(rewriter, op, *flattening, operands);
    return success();
  }
};

/// Ops whose first operand's dim 0 is that of all results, and whose other
/// operands do not have it.
template <typename OpT>
struct SinkThroughRows : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    unsigned index = std::is_same_v<OpT, EmbeddingOp> ? 1 : 0;
    Value operand = op->getOperand(index);
    auto flattening = Flattening::match(operand);
    if (!flattening || !keepsRows(op))
      return failure();
    SmallVector<Value> operands(op->getOperands());
    operands[index] =
        createReshape(rewriter, op.getLoc(), operand,
                      flattening->unflatten(typeOf(operand).getShape()));
    replaceUnflattened(rewriter, op, *flattening, operands);
    return success();
  }

  static bool keepsRows(OpT op) {
    // Softmax and the norms work along the last dim.
    if constexpr (std::is_same_v<OpT, EmbeddingOp> ||
                  std::is_same_v<OpT, DropoutOp>)
      return true;
    else
      return typeOf(op->getOperand(0)).getRank() > 1;
  }
};

/// Ops with dims in their attributes: rebuilt with other numbers.
struct SinkThroughTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening)
      return failure();
    Value apart = createReshape(
        rewriter, op.getLoc(), op.getOperand(),
        flattening->unflatten(typeOf(op.getOperand()).getShape()));
    Value result = rewriter.createOrFold<TransposeOp>(
        op.getLoc(), apart, flattening->expand(op.getPermutation()));
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, result, op.getType().getShape());
    return success();
  }
};

struct SinkThroughReduce : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening || llvm::is_contained(op.getDims(), 0))
      return failure();
    Value apart = createReshape(
        rewriter, op.getLoc(), op.getOperand(),
        flattening->unflatten(typeOf(op.getOperand()).getShape()));
    Value result =
        ReduceOp::create(rewriter, op.getLoc(), op.getKind(), apart,
                         flattening->expand(op.getDims()), op.getKeep());
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, result,
                                           typeOf(op.getResult()).getShape());
    return success();
  }
};

struct SinkThroughSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening || op.getSizes()[0] != flattening->extent() ||
        op.getStrides()[0] != 1)
      return failure();
    Value apart = createReshape(
        rewriter, op.getLoc(), op.getOperand(),
        flattening->unflatten(typeOf(op.getOperand()).getShape()));
    SmallVector<int64_t> offsets(flattening->lead.size(), 0);
    SmallVector<int64_t> strides(flattening->lead.size(), 1);
    llvm::append_range(offsets, op.getOffsets().drop_front());
    llvm::append_range(strides, op.getStrides().drop_front());
    Value result =
        SliceOp::create(rewriter, op.getLoc(), apart, offsets,
                        flattening->unflatten(op.getSizes()), strides);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, result, op.getType().getShape());
    return success();
  }
};

struct SinkThroughConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Flattening> flattening;
    for (Value part : op.getParts())
      if (!flattening)
        flattening = Flattening::match(part);
    if (!flattening || op.getDim() == 0)
      return failure();
    SmallVector<Value> parts;
    for (Value part : op.getParts())
      parts.push_back(
          createReshape(rewriter, op.getLoc(), part,
                        flattening->unflatten(typeOf(part).getShape())));
    Value result = ConcatOp::create(rewriter, op.getLoc(), parts,
                                    int64_t(op.getDim()) +
                                        int64_t(flattening->lead.size()) - 1);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, result,
                                           typeOf(op.getResult()).getShape());
    return success();
  }
};

struct SinkThroughBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto operand = typeOf(op.getOperand());
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening || operand.getRank() != op.getType().getRank() ||
        op.getShape()[0] != flattening->extent())
      return failure();
    Value apart = createReshape(rewriter, op.getLoc(), op.getOperand(),
                                flattening->unflatten(operand.getShape()));
    Value result = BroadcastOp::create(rewriter, op.getLoc(), apart,
                                       flattening->unflatten(op.getShape()));
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, result, op.getType().getShape());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

/// One side of a matmul, for patterns that treat both alike.
struct Side {
  Value value;
  SmallVector<int64_t> batch, contract;

  static std::pair<Side, Side> of(MatmulOp op) {
    return {Side{op.getLhs(), llvm::to_vector(op.getLhsBatch()),
                 llvm::to_vector(op.getLhsContract())},
            Side{op.getRhs(), llvm::to_vector(op.getRhsBatch()),
                 llvm::to_vector(op.getRhsContract())}};
  }
  void takeApart(OpBuilder &builder, Location loc, const Flattening &flattening,
                 int64_t dim) {
    batch = flattening.expand(batch, dim);
    contract = flattening.expand(contract, dim);
    value = createReshape(builder, loc, value,
                          flattening.unflatten(typeOf(value).getShape(), dim));
  }
};

MatmulOp createMatmul(OpBuilder &builder, Location loc, const Side &lhs,
                      const Side &rhs) {
  return MatmulOp::create(builder, loc, lhs.value, rhs.value, lhs.batch,
                          rhs.batch, lhs.contract, rhs.contract);
}

/// A merged dim that is kept: alone, or paired as a batch dim, in which case
/// the other side's is taken apart too.
struct SinkThroughMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    auto [lhs, rhs] = Side::of(op);
    for (bool left : {true, false}) {
      Side &side = left ? lhs : rhs, &other = left ? rhs : lhs;
      auto flattening = Flattening::match(side.value);
      if (!flattening || llvm::is_contained(side.contract, 0))
        continue;
      auto *pair = llvm::find(side.batch, 0);
      if (pair != side.batch.end())
        other.takeApart(rewriter, op.getLoc(), *flattening,
                        other.batch[pair - side.batch.begin()]);
      side.takeApart(rewriter, op.getLoc(), *flattening, 0);
      Value result = createMatmul(rewriter, op.getLoc(), lhs, rhs);
      rewriter.replaceOpWithNewOp<ReshapeOp>(op, result,
                                             typeOf(op.getResult()).getShape());
      return success();
    }
    return failure();
  }
};

/// matmul(transpose(x), y) -> matmul(x, y), other dims paired; as long as the
/// kept dims of x stay in order, for theirs is the result's.
struct FoldTransposeIntoMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    auto [lhs, rhs] = Side::of(op);
    bool left = fold(lhs), right = fold(rhs);
    if (!left && !right)
      return failure();
    rewriter.replaceOp(op, createMatmul(rewriter, op.getLoc(), lhs, rhs));
    return success();
  }

  static bool fold(Side &side) {
    auto transpose = side.value.getDefiningOp<TransposeOp>();
    if (!transpose)
      return false;
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    int64_t last = -1;
    for (auto [dim, from] : llvm::enumerate(permutation)) {
      if (llvm::is_contained(side.batch, int64_t(dim)) ||
          llvm::is_contained(side.contract, int64_t(dim)))
        continue;
      if (from < last)
        return false;
      last = from;
    }
    for (int64_t &dim : side.batch)
      dim = permutation[dim];
    for (int64_t &dim : side.contract)
      dim = permutation[dim];
    side.value = transpose.getOperand();
    return true;
  }
};

struct Unflatten : autohet::impl::UnflattenBase<Unflatten> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkThroughElementwise, SinkThroughRows<SoftmaxOp>,
                 SinkThroughRows<LayerNormOp>, SinkThroughRows<RmsNormOp>,
                 SinkThroughRows<DropoutOp>, SinkThroughRows<EmbeddingOp>,
                 SinkThroughTranspose, SinkThroughReduce, SinkThroughSlice,
                 SinkThroughConcat, SinkThroughBroadcast, SinkThroughMatmul,
                 FoldTransposeIntoMatmul>(&getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
