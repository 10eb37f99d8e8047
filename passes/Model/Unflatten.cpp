//===- Unflatten.cpp - keep the batch a dim of its own --------------------===//
//
// GPT-2's Conv1D is a Gemm on [batch * sequence, hidden] between two reshapes,
// and bmm wants [batch * heads, ...]; PyTorch's nn.MultiheadAttention has
// [sequence, batch * heads, head_dim]. A merged batch dim cannot be cut into
// microbatches. So each reshape that merges dim 0 with others, or the batch
// wherever it is, moves down, past the op that uses it, until it meets the
// reshape that undoes it.
//
// Transposes go into the matmul that uses them: any order of dims is one op.
//
//===----------------------------------------------------------------------===//

#include "BatchPlaces.h"
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

/// On a reshape that merges the batch: in which dim. Found before patterns run.
constexpr llvm::StringLiteral kMergedDimAttr = "het.merged_dim";

/// Whether an op's batch is 1, or not known: then a 1 may be the batch.
bool holdsOneSample(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  auto size = function ? function->getAttrOfType<IntegerAttr>(kBatchSizeAttr)
                       : IntegerAttr();
  return !size || size.getInt() == 1;
}

/// A reshape whose dim `dim` is the product of `factors`, two or more.
///   reshape [2, 12, 4, 8] to [24, 32]: dim 0, factors [2, 12],
///   unflattened [2, 12, 32]
struct Flattening {
  ReshapeOp reshape;
  int64_t dim;
  SmallVector<int64_t> factors;

  static std::optional<Flattening> match(Value value) {
    auto reshape = value.getDefiningOp<ReshapeOp>();
    if (!reshape || reshape.getShape().empty())
      return std::nullopt;
    if (auto dim = reshape->getAttrOfType<IntegerAttr>(kMergedDimAttr)) {
      SmallVector<int64_t> factors = factorsOf(reshape, dim.getInt());
      if (factors.size() > 1)
        return Flattening{reshape, dim.getInt(), std::move(factors)};
    }
    // Dim 0 of whole dims is taken apart whatever it is.
    ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
    int64_t product = 1;
    for (size_t k = 0; k < from.size(); ++k) {
      product *= from[k];
      if (product != reshape.getShape()[0])
        continue;
      // A 1 that is dropped is no merge, unless it is the batch.
      if (k == 0 || (!holdsOneSample(reshape) &&
                     llvm::count_if(from.take_front(k + 1), [](int64_t extent) {
                       return extent > 1;
                     }) < 2))
        return std::nullopt;
      return Flattening{reshape, 0, llvm::to_vector(from.take_front(k + 1))};
    }
    return std::nullopt;
  }

  int64_t extent() const {
    return const_cast<ReshapeOp &>(reshape).getShape()[dim];
  }

  /// `shape` with dim `merged`, which has the merged extent, taken apart.
  SmallVector<int64_t> unflatten(ArrayRef<int64_t> shape,
                                 int64_t merged) const {
    return replace(shape, merged, factors);
  }
  SmallVector<int64_t> unflatten(ArrayRef<int64_t> shape) const {
    return unflatten(shape, dim);
  }

  /// `values`, one a dim, with `instead` for dim `merged`.
  static SmallVector<int64_t> replace(ArrayRef<int64_t> values, int64_t merged,
                                      ArrayRef<int64_t> instead) {
    SmallVector<int64_t> result(values.take_front(merged));
    llvm::append_range(result, instead);
    llvm::append_range(result, values.drop_front(merged + 1));
    return result;
  }

  /// The numbers that `dims` get when dim `merged` is taken apart.
  SmallVector<int64_t> expand(ArrayRef<int64_t> dims, int64_t merged) const {
    SmallVector<int64_t> result;
    int64_t more = int64_t(factors.size()) - 1;
    for (int64_t d : dims)
      llvm::append_range(result,
                         llvm::seq_inclusive(d > merged ? d + more : d,
                                             d < merged ? d : d + more));
    return result;
  }
  SmallVector<int64_t> expand(ArrayRef<int64_t> dims) const {
    return expand(dims, dim);
  }
};

Value createReshape(OpBuilder &builder, Location loc, Value value,
                    ArrayRef<int64_t> shape) {
  return builder.createOrFold<ReshapeOp>(loc, value, shape);
}

/// The value that `flattening` merges, with its dim taken apart.
Value takeApart(OpBuilder &builder, Location loc,
                const Flattening &flattening) {
  Value merged = const_cast<ReshapeOp &>(flattening.reshape).getResult();
  return createReshape(builder, loc, merged,
                       flattening.unflatten(typeOf(merged).getShape()));
}

/// `value` under the shape that an op had before it was moved above the
/// reshape: merged in dim `dim`, where that is the batch.
Value mergeAgain(PatternRewriter &rewriter, const Flattening &flattening,
                 Value value, RankedTensorType type, int64_t dim) {
  Value merged =
      createReshape(rewriter, value.getLoc(), value, type.getShape());
  auto reshape = merged.getDefiningOp<ReshapeOp>();
  if (reshape &&
      const_cast<ReshapeOp &>(flattening.reshape)->hasAttr(kMergedDimAttr))
    reshape->setAttr(kMergedDimAttr, rewriter.getI64IntegerAttr(dim));
  return merged;
}

/// A copy of `op` on other operands, its results with the merged dim taken
/// apart, each followed by the reshape that merges it again.
void replaceUnflattened(PatternRewriter &rewriter, Operation *op,
                        const Flattening &flattening, ValueRange operands) {
  Operation *copy = rewriter.clone(*op);
  copy->setOperands(operands);
  SmallVector<Value> merged;
  for (Value result : copy->getResults()) {
    auto type = typeOf(result);
    result.setType(type.clone(flattening.unflatten(type.getShape())));
    merged.push_back(
        mergeAgain(rewriter, flattening, result, type, flattening.dim));
  }
  rewriter.replaceOp(op, merged);
}

//===----------------------------------------------------------------------===//
// Ops that keep the merged dim
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
    if (!flattening ||
        result.getDimSize(flattening->dim) != flattening->extent())
      return failure();

    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      ArrayRef<int64_t> shape = typeOf(operand).getShape();
      // Operands are aligned at the last dim.
      int64_t own =
          flattening->dim - (result.getRank() - int64_t(shape.size()));
      if (own < 0 || (own == 0 && shape[0] == 1)) {
        operands.push_back(operand); // broadcasts as it is
        continue;
      }
      SmallVector<int64_t> ones(flattening->factors.size(), 1);
      operands.push_back(
          createReshape(rewriter, op.getLoc(), operand,
                        shape[own] == 1 ? Flattening::replace(shape, own, ones)
                                        : flattening->unflatten(shape, own)));
    }
    replaceUnflattened(rewriter, op, *flattening, operands);
    return success();
  }
};

/// Ops whose first operand's dims but the last are those of all results, and
/// whose other operands do not have them.
template <typename OpT>
struct SinkThroughRows : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op,
                                PatternRewriter &rewriter) const override {
    unsigned index = std::is_same_v<OpT, EmbeddingOp> ? 1 : 0;
    auto flattening = Flattening::match(op->getOperand(index));
    if (!flattening || !keepsDim(op, flattening->dim))
      return failure();
    SmallVector<Value> operands(op->getOperands());
    operands[index] = takeApart(rewriter, op.getLoc(), *flattening);
    replaceUnflattened(rewriter, op, *flattening, operands);
    return success();
  }

  static bool keepsDim(OpT op, int64_t dim) {
    // Softmax, the norms and the choice of k work along the last dim.
    if constexpr (std::is_same_v<OpT, EmbeddingOp> ||
                  std::is_same_v<OpT, DropoutOp>)
      return true;
    else
      return dim + 1 < typeOf(op->getOperand(0)).getRank();
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
    Value result = rewriter.createOrFold<TransposeOp>(
        op.getLoc(), takeApart(rewriter, op.getLoc(), *flattening),
        flattening->expand(op.getPermutation()));
    const auto *to = llvm::find(op.getPermutation(), flattening->dim);
    rewriter.replaceOp(op,
                       mergeAgain(rewriter, *flattening, result, op.getType(),
                                  to - op.getPermutation().begin()));
    return success();
  }
};

/// The rows that merged indices choose: [batch * sequence] of them give
/// [batch * sequence, row].
struct SinkThroughGather : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getIndices());
    if (!flattening)
      return failure();
    int64_t dim = op.getDim();
    Value result =
        GatherOp::create(rewriter, op.getLoc(), op.getOperand(),
                         takeApart(rewriter, op.getLoc(), *flattening), dim);
    rewriter.replaceOp(op, mergeAgain(rewriter, *flattening, result,
                                      typeOf(op.getResult()),
                                      dim + flattening->dim));
    return success();
  }
};

/// Lookups within each row of a merged dim, which operand and indices pair.
struct SinkThroughGatherNd : OpRewritePattern<GatherNdOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNdOp op,
                                PatternRewriter &rewriter) const override {
    int64_t paired = op.getBatchDims();
    for (Value side : op->getOperands()) {
      auto flattening = Flattening::match(side);
      if (!flattening || flattening->dim >= paired)
        continue;
      SmallVector<Value> apart;
      for (Value operand : op->getOperands())
        apart.push_back(
            createReshape(rewriter, op.getLoc(), operand,
                          flattening->unflatten(typeOf(operand).getShape())));
      Value result =
          GatherNdOp::create(rewriter, op.getLoc(), apart[0], apart[1],
                             paired + int64_t(flattening->factors.size()) - 1);
      rewriter.replaceOp(op,
                         mergeAgain(rewriter, *flattening, result,
                                    typeOf(op.getResult()), flattening->dim));
      return success();
    }
    return failure();
  }
};

struct SinkThroughReduce : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening || llvm::is_contained(op.getDims(), flattening->dim))
      return failure();
    Value result =
        ReduceOp::create(rewriter, op.getLoc(), op.getKind(),
                         takeApart(rewriter, op.getLoc(), *flattening),
                         flattening->expand(op.getDims()), op.getKeep());
    int64_t gone = op.getKeep() ? 0 : llvm::count_if(op.getDims(), [&](auto d) {
      return d < flattening->dim;
    });
    rewriter.replaceOp(op, mergeAgain(rewriter, *flattening, result,
                                      typeOf(op.getResult()),
                                      flattening->dim - gone));
    return success();
  }
};

struct SinkThroughSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening)
      return failure();
    int64_t dim = flattening->dim;
    if (op.getSizes()[dim] != flattening->extent() || op.getStrides()[dim] != 1)
      return failure();
    size_t count = flattening->factors.size();
    Value result = SliceOp::create(
        rewriter, op.getLoc(), takeApart(rewriter, op.getLoc(), *flattening),
        Flattening::replace(op.getOffsets(), dim,
                            SmallVector<int64_t>(count, 0)),
        flattening->unflatten(op.getSizes()),
        Flattening::replace(op.getStrides(), dim,
                            SmallVector<int64_t>(count, 1)));
    rewriter.replaceOp(
        op, mergeAgain(rewriter, *flattening, result, op.getType(), dim));
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
    if (!flattening || int64_t(op.getDim()) == flattening->dim)
      return failure();
    SmallVector<Value> parts;
    for (Value part : op.getParts())
      parts.push_back(
          createReshape(rewriter, op.getLoc(), part,
                        flattening->unflatten(typeOf(part).getShape())));
    Value result =
        ConcatOp::create(rewriter, op.getLoc(), parts,
                         flattening->expand({int64_t(op.getDim())}).front());
    rewriter.replaceOp(op, mergeAgain(rewriter, *flattening, result,
                                      typeOf(op.getResult()), flattening->dim));
    return success();
  }
};

struct SinkThroughBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto flattening = Flattening::match(op.getOperand());
    if (!flattening ||
        typeOf(op.getOperand()).getRank() != op.getType().getRank() ||
        op.getShape()[flattening->dim] != flattening->extent())
      return failure();
    Value result = BroadcastOp::create(
        rewriter, op.getLoc(), takeApart(rewriter, op.getLoc(), *flattening),
        flattening->unflatten(op.getShape()));
    rewriter.replaceOp(op, mergeAgain(rewriter, *flattening, result,
                                      op.getType(), flattening->dim));
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
      if (!flattening || llvm::is_contained(side.contract, flattening->dim))
        continue;
      int64_t dim = *resultDim(op, left ? 0 : 1, flattening->dim);
      auto *pair = llvm::find(side.batch, flattening->dim);
      if (pair != side.batch.end())
        other.takeApart(rewriter, op.getLoc(), *flattening,
                        other.batch[pair - side.batch.begin()]);
      side.takeApart(rewriter, op.getLoc(), *flattening, flattening->dim);
      Value result = createMatmul(rewriter, op.getLoc(), lhs, rhs);
      rewriter.replaceOp(op, mergeAgain(rewriter, *flattening, result,
                                        typeOf(op.getResult()), dim));
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
    func::FuncOp function = getOperation();
    // A reshape that was folded into another has to be found again.
    for (bool changed = true; changed;) {
      markMerged(function);
      RewritePatternSet patterns(&getContext());
      patterns.add<SinkThroughElementwise, SinkThroughRows<SoftmaxOp>,
                   SinkThroughRows<LayerNormOp>, SinkThroughRows<RmsNormOp>,
                   SinkThroughRows<DropoutOp>, SinkThroughRows<EmbeddingOp>,
                   SinkThroughRows<TopKOp>, SinkThroughGather,
                   SinkThroughGatherNd, SinkThroughTranspose, SinkThroughReduce,
                   SinkThroughSlice, SinkThroughConcat, SinkThroughBroadcast,
                   SinkThroughMatmul, FoldTransposeIntoMatmul>(&getContext());
      if (failed(applyModelPatterns(function, std::move(patterns), &changed)))
        return signalPassFailure();
    }
    function.walk([](ReshapeOp op) { op->removeAttr(kMergedDimAttr); });
  }

  static void markMerged(func::FuncOp function) {
    BatchPlaces places(function);
    Builder builder(function.getContext());
    function.walk([&](ReshapeOp op) {
      if (auto merged = places.getMerged(op))
        op->setAttr(kMergedDimAttr, builder.getI64IntegerAttr(merged->dim));
      else
        op->removeAttr(kMergedDimAttr);
    });
  }
};

} // namespace
