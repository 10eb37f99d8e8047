//===- SplitProjections.cpp - a fused projection is several products ------===//
//
// One weight [hidden, 3 * heads * head_dim] makes queries, keys and values at
// once. Sharding it needs its three parts: each becomes a product of its own
// with a view of the one parameter. The slices move up, from the result to the
// weight and the bias.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "autohet/Passes/Model/Passes.h"

using namespace mlir;
using namespace autohet::het;

namespace autohet {
#define GEN_PASS_DEF_SPLITPROJECTIONS
#include "autohet/Passes/Model/Passes.h.inc"
} // namespace autohet

using namespace autohet;

namespace {

/// Whether `value` is a product with a parameter, perhaps plus a bias, perhaps
/// under another shape, perhaps cleared in places.
bool isProjection(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto matmul = dyn_cast_if_present<MatmulOp>(op))
    return matmul.getLhs().getDefiningOp<ParameterOp>() ||
           matmul.getRhs().getDefiningOp<ParameterOp>();
  if (auto add = dyn_cast_if_present<AddOp>(op))
    return (isProjection(add.getLhs()) &&
            add.getRhs().getDefiningOp<ParameterOp>()) ||
           (isProjection(add.getRhs()) &&
            add.getLhs().getDefiningOp<ParameterOp>());
  if (auto select = dyn_cast_if_present<SelectOp>(op))
    return isProjection(select.getLhs()) &&
           select.getRhs().getDefiningOp<ConstantOp>();
  if (isa_and_present<ReshapeOp, TransposeOp>(op))
    return isProjection(op->getOperand(0));
  return false;
}

/// The one dim in which all uses of `value` are slices of it, disjoint ones:
/// then each element is still computed once after the split.
std::optional<int64_t> matchSlicedDim(Value value) {
  std::optional<int64_t> sliced;
  SmallVector<std::pair<int64_t, int64_t>> parts;
  for (Operation *user : value.getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice || llvm::any_of(slice.getStrides(),
                               [](int64_t stride) { return stride != 1; }))
      return std::nullopt;
    std::optional<int64_t> dim;
    for (auto [d, size] : llvm::enumerate(slice.getSizes())) {
      if (size == typeOf(value).getDimSize(d))
        continue;
      if (dim)
        return std::nullopt;
      dim = d;
    }
    if (!dim || (sliced && *sliced != *dim))
      return std::nullopt;
    sliced = dim;
    parts.emplace_back(slice.getOffsets()[*dim], slice.getSizes()[*dim]);
  }
  llvm::sort(parts);
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i - 1].first + parts[i - 1].second > parts[i].first)
      return std::nullopt;
  return sliced;
}

/// The part [offset, offset + size) of dim `dim`.
Value createSlice(OpBuilder &builder, Location loc, Value value, int64_t dim,
                  int64_t offset, int64_t size) {
  auto type = typeOf(value);
  SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
  SmallVector<int64_t> sizes(type.getShape());
  offsets[dim] = offset;
  sizes[dim] = size;
  return builder.createOrFold<SliceOp>(loc, value, offsets, sizes, strides);
}

/// A slice of what `OpT` makes of a projection, to be moved above it.
template <typename OpT>
struct MoveSliceUp : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getOperand().getDefiningOp<OpT>();
    if (!producer || !isProjection(op.getOperand()))
      return failure();
    auto dim = matchSlicedDim(op.getOperand());
    if (!dim)
      return failure();
    Value moved = move(producer, *dim, op.getOffsets()[*dim],
                       op.getSizes()[*dim], op.getType(), rewriter);
    if (!moved)
      return failure();
    rewriter.replaceOp(op, moved);
    return success();
  }

  static Value move(OpT producer, int64_t dim, int64_t offset, int64_t size,
                    RankedTensorType type, OpBuilder &builder);
};

/// Of an elementwise op's operand, the part that makes a part of its result:
/// where the operand broadcasts, it stays whole.
Value slicePart(OpBuilder &builder, Location loc, Value operand, int64_t dim,
                int64_t offset, int64_t size, RankedTensorType result) {
  int64_t own = dim - (result.getRank() - typeOf(operand).getRank());
  if (own < 0 || typeOf(operand).getDimSize(own) == 1)
    return operand;
  return createSlice(builder, loc, operand, own, offset, size);
}

template <>
Value MoveSliceUp<AddOp>::move(AddOp add, int64_t dim, int64_t offset,
                               int64_t size, RankedTensorType type,
                               OpBuilder &builder) {
  auto part = [&](Value operand) {
    return slicePart(builder, add.getLoc(), operand, dim, offset, size, type);
  };
  Value lhs = part(add.getLhs()), rhs = part(add.getRhs());
  return AddOp::create(builder, add.getLoc(), lhs, rhs);
}

template <>
Value MoveSliceUp<SelectOp>::move(SelectOp select, int64_t dim, int64_t offset,
                                  int64_t size, RankedTensorType type,
                                  OpBuilder &builder) {
  auto part = [&](Value operand) {
    return slicePart(builder, select.getLoc(), operand, dim, offset, size,
                     type);
  };
  Value condition = part(select.getCondition());
  Value lhs = part(select.getLhs()), rhs = part(select.getRhs());
  return SelectOp::create(builder, select.getLoc(), condition, lhs, rhs);
}

template <>
Value MoveSliceUp<TransposeOp>::move(TransposeOp transpose, int64_t dim,
                                     int64_t offset, int64_t size,
                                     RankedTensorType, OpBuilder &builder) {
  Value part = createSlice(builder, transpose.getLoc(), transpose.getOperand(),
                           transpose.getPermutation()[dim], offset, size);
  return TransposeOp::create(builder, transpose.getLoc(), part,
                             transpose.getPermutation());
}

/// Only where the slice is one of the operand too: `dim` is the outermost of
/// those that one dim of the operand was taken apart into.
template <>
Value MoveSliceUp<ReshapeOp>::move(ReshapeOp reshape, int64_t dim,
                                   int64_t offset, int64_t size,
                                   RankedTensorType type, OpBuilder &builder) {
  ArrayRef<int64_t> from = typeOf(reshape.getOperand()).getShape();
  ArrayRef<int64_t> to = reshape.getShape();
  auto product = [](ArrayRef<int64_t> extents) {
    int64_t result = 1;
    for (int64_t extent : extents)
      result *= extent;
    return result;
  };
  int64_t outer = product(to.take_front(dim));
  int64_t own = 0, rank = from.size();
  while (own < rank &&
         (product(from.take_front(own)) != outer || from[own] == 1))
    ++own;
  if (own == rank || from[own] % to[dim] != 0)
    return {};
  int64_t inner = from[own] / to[dim];
  Value part = createSlice(builder, reshape.getLoc(), reshape.getOperand(), own,
                           offset * inner, size * inner);
  return ReshapeOp::create(builder, reshape.getLoc(), part, type.getShape());
}

template <>
Value MoveSliceUp<MatmulOp>::move(MatmulOp matmul, int64_t dim, int64_t offset,
                                  int64_t size, RankedTensorType,
                                  OpBuilder &builder) {
  // Result dims: batch, then those that lhs keeps, then those that rhs keeps.
  SmallVector<std::pair<bool, int64_t>> kept;
  auto collect = [&](bool left, Value value, ArrayRef<int64_t> batch,
                     ArrayRef<int64_t> contract) {
    for (int64_t d = 0; d < typeOf(value).getRank(); ++d)
      if (!llvm::is_contained(batch, d) && !llvm::is_contained(contract, d))
        kept.emplace_back(left, d);
  };
  collect(true, matmul.getLhs(), matmul.getLhsBatch(), matmul.getLhsContract());
  collect(false, matmul.getRhs(), matmul.getRhsBatch(),
          matmul.getRhsContract());
  int64_t batch = matmul.getLhsBatch().size();
  if (dim < batch)
    return {};
  auto [left, own] = kept[dim - batch];
  Value operands[2] = {matmul.getLhs(), matmul.getRhs()};
  Value &operand = operands[left ? 0 : 1];
  if (!operand.getDefiningOp<ParameterOp>())
    return {};
  operand = createSlice(builder, matmul.getLoc(), operand, own, offset, size);
  return MatmulOp::create(builder, matmul.getLoc(), operands[0], operands[1],
                          matmul.getLhsBatch(), matmul.getRhsBatch(),
                          matmul.getLhsContract(), matmul.getRhsContract());
}

/// slice(parameter) -> a view of it.
struct SliceParameter : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const override {
    auto parameter = op.getOperand().getDefiningOp<ParameterOp>();
    if (!parameter || llvm::any_of(op.getStrides(),
                                   [](int64_t stride) { return stride != 1; }))
      return failure();
    SmallVector<int64_t> offsets(op.getOffsets());
    if (auto outer = parameter.getOffsets())
      for (auto [offset, of] : llvm::zip_equal(offsets, *outer))
        offset += of;
    rewriter.replaceOpWithNewOp<ParameterOp>(
        op, op.getType(), parameter.getNameAttr(), parameter.getUntrainedAttr(),
        rewriter.getDenseI64ArrayAttr(offsets),
        rewriter.getDenseI64ArrayAttr(parameter.getWholeShape()));
    return success();
  }
};

struct SplitProjections
    : autohet::impl::SplitProjectionsBase<SplitProjections> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MoveSliceUp<AddOp>, MoveSliceUp<SelectOp>,
                 MoveSliceUp<TransposeOp>, MoveSliceUp<ReshapeOp>,
                 MoveSliceUp<MatmulOp>, SliceParameter>(&getContext());
    if (failed(applyModelPatterns(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
