//===- FuseElementwise.cpp - chains of elementwise ops into one loop ------===//
//
// Upstream's fusion under our rule of when it pays. Its own default asks for a
// producer with a single use, which a value used twice by one consumer (x times
// sigmoid of x) is not.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace autohet {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

int64_t iterationCount(linalg::LinalgOp op) {
  int64_t count = 1;
  for (int64_t extent : op.getStaticLoopRanges())
    count *= extent;
  return count;
}

/// Whether the body only hands an element on.
bool onlyMoves(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  return body->getOperations().size() == 1;
}

bool shouldFuse(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  if (!producer || !consumer || producer->getBlock() != consumer->getBlock())
    return false;
  // Another user needs the value in memory anyway.
  for (Operation *user : producer->getUsers())
    if (user != consumer.getOperation())
      return false;
  return onlyMoves(producer) ||
         iterationCount(consumer) <= iterationCount(producer);
}

struct FuseElementwise : autohet::impl::FuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
