//===- ExpandMath.cpp - transcendental functions as polynomials -----------===//
//
// Left to LLVM, a vector of exponentials becomes sixteen calls of expf.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace autohet {
#define GEN_PASS_DEF_EXPANDMATH
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

struct ExpandMath : autohet::impl::ExpandMathBase<ExpandMath> {
  void runOnOperation() override {
    // The functions whose approximations are accurate to a few units in the
    // last place over the whole range. Those of sin and cos are not where
    // positions are in the hundreds; they fill tables only, and stay calls.
    auto wanted = [](StringRef name) {
      return llvm::is_contained(
          {math::ExpOp::getOperationName(), math::LogOp::getOperationName(),
           math::Log1pOp::getOperationName(), math::ExpM1Op::getOperationName(),
           math::TanhOp::getOperationName(), math::ErfOp::getOperationName(),
           math::SinOp::getOperationName(), math::CosOp::getOperationName()},
          name);
    };
    // Upstream adds those of sin and cos unasked.
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](Operation *op) {
      rewriter.setInsertionPoint(op);
      if (auto sine = dyn_cast<math::SinOp>(op))
        rewriter.replaceOpWithNewOp<LLVM::SinOp>(op, sine.getOperand());
      else if (auto cosine = dyn_cast<math::CosOp>(op))
        rewriter.replaceOpWithNewOp<LLVM::CosOp>(op, cosine.getOperand());
    });
    callErf();
    RewritePatternSet patterns(&getContext());
    // Conversions that LLVM leaves to a library, which few machines have.
    arith::populateExpandBFloat16Patterns(patterns);
    populateMathF32ExpansionPatterns(patterns, wanted);
    populateMathPolynomialApproximationPatterns(patterns, wanted);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

  /// LLVM knows no erf, and the approximation is of single precision.
  void callErf() {
    SmallVector<math::ErfOp> calls;
    getOperation().walk([&](math::ErfOp op) {
      if (op.getType().isF64())
        calls.push_back(op);
    });
    for (math::ErfOp op : calls) {
      OpBuilder b(op);
      auto module = op->getParentOfType<ModuleOp>();
      auto erf = module.lookupSymbol<func::FuncOp>("erf");
      if (!erf) {
        OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
        erf = func::FuncOp::create(
            top, op.getLoc(), "erf",
            top.getFunctionType({op.getType()}, {op.getType()}));
        erf.setPrivate();
      }
      op.replaceAllUsesWith(
          func::CallOp::create(b, op.getLoc(), erf, op.getOperand())
              .getResult(0));
      op.erase();
    }
  }
};

} // namespace
