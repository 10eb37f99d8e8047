//===- LowerShape.cpp - reshape, transpose, slice and the like ------------===//
//
// What only moves elements is written as a linalg.generic that reads through an
// indexing map, so that it can be merged into whoever consumes it.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

/// result[i..] = operand[map(i..)].
Value readThrough(OpBuilder &b, Location loc, Value operand, AffineMap map,
                  ArrayRef<int64_t> shape) {
  return buildMap(b, loc, operand, map, shape,
                  getElementTypeOrSelf(operand.getType()),
                  [](OpBuilder &, Location, ValueRange s) { return s[0]; });
}

ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

struct LowerReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &b) const override {
    b.replaceOp(op, reshapeTensor(b, op.getLoc(), op.getOperand(),
                                  shapeOf(op.getResult())));
    return success();
  }
};

struct LowerTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &b) const override {
    SmallVector<unsigned> permutation(op.getPermutation());
    AffineMap map = inversePermutation(
        AffineMap::getPermutationMap(permutation, b.getContext()));
    b.replaceOp(op, readThrough(b, op.getLoc(), op.getOperand(), map,
                                shapeOf(op.getResult())));
    return success();
  }
};

struct LowerBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &b) const override {
    ArrayRef<int64_t> shape = shapeOf(op.getResult());
    AffineMap map =
        broadcastMap(b.getContext(), shapeOf(op.getOperand()), shape);
    b.replaceOp(op, readThrough(b, op.getLoc(), op.getOperand(), map, shape));
    return success();
  }
};

/// Offsets and strides of a part, walked forwards: slices know no negative
/// strides. `mirror` is the map that restores the direction, null if none was
/// negative.
struct ForwardPart {
  ForwardPart(OpBuilder &b, ArrayRef<int64_t> offsets,
              ArrayRef<int64_t> strides, ArrayRef<int64_t> sizes)
      : offsets(offsets), strides(strides) {
    SmallVector<AffineExpr> exprs;
    bool reversed = false;
    for (auto [d, size] : llvm::enumerate(sizes)) {
      AffineExpr dim = b.getAffineDimExpr(d);
      if (size < 2) {
        // Of what has no element, or one, these may be any numbers.
        this->offsets[d] = size ? offsets[d] : 0;
        this->strides[d] = 1;
      } else if (strides[d] < 0) {
        this->offsets[d] += (size - 1) * strides[d];
        this->strides[d] = -strides[d];
        dim = -dim + (size - 1);
        reversed = true;
      }
      exprs.push_back(dim);
    }
    if (reversed)
      mirror = AffineMap::get(exprs.size(), 0, exprs, b.getContext());
  }
  SmallVector<int64_t> offsets, strides;
  AffineMap mirror;
};

struct LowerSlice : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &b) const override {
    Location loc = op.getLoc();
    MLIRContext *context = b.getContext();
    ArrayRef<int64_t> sizes = shapeOf(op.getResult());
    ForwardPart part(b, op.getOffsets(), op.getStrides(), sizes);
    Value result = tensor::ExtractSliceOp::create(
        b, loc, op.getOperand(), getAsIndexOpFoldResult(context, part.offsets),
        getAsIndexOpFoldResult(context, sizes),
        getAsIndexOpFoldResult(context, part.strides));
    if (part.mirror)
      result = readThrough(b, loc, result, part.mirror, sizes);
    b.replaceOp(op, result);
    return success();
  }
};

struct LowerSliceBackward : OpRewritePattern<SliceBackwardOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceBackwardOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    MLIRContext *context = b.getContext();
    Value gradient = op.getGradient();
    ArrayRef<int64_t> sizes = shapeOf(gradient);
    ForwardPart part(b, op.getOffsets(), op.getStrides(), sizes);
    if (part.mirror)
      gradient = readThrough(b, loc, gradient, part.mirror, sizes);
    Value zeros = zeroTensor(b, loc, shapeOf(op.getResult()),
                             getElementTypeOrSelf(gradient.getType()));
    b.replaceOpWithNewOp<tensor::InsertSliceOp>(
        op, gradient, zeros, getAsIndexOpFoldResult(context, part.offsets),
        getAsIndexOpFoldResult(context, sizes),
        getAsIndexOpFoldResult(context, part.strides));
    return success();
  }
};

struct LowerConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &b) const override {
    Location loc = op.getLoc();
    MLIRContext *context = b.getContext();
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Value result = emptyTensor(b, loc, type.getShape(), type.getElementType());
    SmallVector<int64_t> offsets(type.getRank(), 0), ones(type.getRank(), 1);
    for (Value operand : op->getOperands()) {
      ArrayRef<int64_t> sizes = shapeOf(operand);
      result = tensor::InsertSliceOp::create(
          b, loc, operand, result, getAsIndexOpFoldResult(context, offsets),
          getAsIndexOpFoldResult(context, sizes),
          getAsIndexOpFoldResult(context, ones));
      offsets[op.getDim()] += sizes[op.getDim()];
    }
    b.replaceOp(op, result);
    return success();
  }
};

} // namespace

void autohet::populateShapeLowering(RewritePatternSet &patterns) {
  patterns.add<LowerReshape, LowerTranspose, LowerBroadcast, LowerSlice,
               LowerSliceBackward, LowerConcat>(patterns.getContext());
}
