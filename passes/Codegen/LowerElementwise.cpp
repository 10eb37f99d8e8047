//===- LowerElementwise.cpp - elementwise het ops to linalg ---------------===//
//
// One pattern for all of them: broadcasting becomes indexing maps, the body is
// the op's own scalar form. Chains are merged later by upstream's fusion.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

struct LowerElementwise : OpInterfaceRewritePattern<ElementwiseOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(ElementwiseOpInterface op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<AffineMap> maps;
    for (Value operand : op->getOperands())
      maps.push_back(
          broadcastMap(rewriter.getContext(),
                       cast<RankedTensorType>(operand.getType()).getShape(),
                       type.getShape()));
    Value result =
        buildMap(rewriter, op->getLoc(), op->getOperands(), maps,
                 type.getShape(), type.getElementType(),
                 [&](OpBuilder &b, Location loc, ValueRange scalars) {
                   return op.buildScalar(b, loc, scalars);
                 });
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LowerConstant : OpRewritePattern<ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConstantOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getNumElements() == 0) {
      rewriter.replaceOp(op, emptyTensor(rewriter, op.getLoc(), type.getShape(),
                                         type.getElementType()));
      return success();
    }
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, cast<TypedAttr>(op.getValue()));
    return success();
  }
};

} // namespace

void autohet::populateElementwiseLowering(RewritePatternSet &patterns) {
  patterns.add<LowerElementwise, LowerConstant>(patterns.getContext());
}
