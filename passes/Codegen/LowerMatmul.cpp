//===- LowerMatmul.cpp - het.matmul inside a kernel to linalg -------------===//
//
// Most products are GEMM commands and never become kernels. One that is part of
// a fused kernel becomes linalg.contract, and a call of the platform's matrix
// library after bufferization (kernel-lower-products).
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

struct LowerMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &b) const override {
    RankedTensorType type = typeOf(op.getResult());
    unsigned lhsRank = typeOf(op.getLhs()).getRank();
    unsigned rhsRank = typeOf(op.getRhs()).getRank();
    // Loops: the result's dims in their order, then the contracted ones.
    unsigned loops = type.getRank() + op.getLhsContract().size();
    SmallVector<AffineExpr> lhs(lhsRank), rhs(rhsRank);
    unsigned next = 0;
    for (auto [l, r] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch()))
      lhs[l] = rhs[r] = b.getAffineDimExpr(next++);
    unsigned contracted = type.getRank();
    for (auto [l, r] :
         llvm::zip_equal(op.getLhsContract(), op.getRhsContract()))
      lhs[l] = rhs[r] = b.getAffineDimExpr(contracted++);
    for (AffineExpr &expr : lhs)
      if (!expr)
        expr = b.getAffineDimExpr(next++);
    for (AffineExpr &expr : rhs)
      if (!expr)
        expr = b.getAffineDimExpr(next++);
    MLIRContext *context = b.getContext();
    // Also where the result is a number, and the map of no dims.
    AffineMap result =
        AffineMap::get(loops, 0,
                       AffineMap::getMultiDimIdentityMap(loops, context)
                           .getResults()
                           .take_front(type.getRank()),
                       context);
    Value zeros =
        zeroTensor(b, op.getLoc(), type.getShape(), type.getElementType());
    b.replaceOp(
        op, buildContract(b, op.getLoc(), op.getLhs(), op.getRhs(), zeros,
                          {AffineMap::get(loops, 0, lhs, context),
                           AffineMap::get(loops, 0, rhs, context), result}));
    return success();
  }
};

} // namespace

void autohet::populateMatmulLowering(RewritePatternSet &patterns) {
  patterns.add<LowerMatmul>(patterns.getContext());
}
