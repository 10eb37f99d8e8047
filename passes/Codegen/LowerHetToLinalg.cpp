//===- LowerHetToLinalg.cpp - a kernel's het ops to linalg on tensors -----===//
//
// The pass only gathers the patterns, which live in one file per family, and
// sees to it that nothing is left over.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace autohet {
#define GEN_PASS_DEF_LOWERHETTOLINALG
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

struct LowerHetToLinalg
    : autohet::impl::LowerHetToLinalgBase<LowerHetToLinalg> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (kernel.isDeclaration())
      return;
    MLIRContext *context = &getContext();
    if (failed(kernel.insertArgument(kernel.getNumArguments(),
                                     LLVM::LLVMPointerType::get(context), {},
                                     kernel.getLoc())))
      return signalPassFailure();
    autohet::legalizeTypes(kernel);
    RewritePatternSet patterns(context);
    autohet::populateElementwiseLowering(patterns);
    autohet::populateReductionLowering(patterns);
    autohet::populateNormLowering(patterns);
    autohet::populateSoftmaxLowering(patterns);
    autohet::populateLossLowering(patterns);
    autohet::populateMatmulLowering(patterns);
    autohet::populateAttentionLowering(patterns);
    autohet::populateRotaryLowering(patterns);
    autohet::populateDropoutLowering(patterns);
    autohet::populateIndexLowering(patterns);
    autohet::populateShapeLowering(patterns);
    autohet::populateOrderLowering(patterns);
    // One walk is enough: no lowering makes het ops.
    walkAndApplyPatterns(kernel, std::move(patterns));
    WalkResult left = kernel.walk([](Operation *op) {
      if (!isa_and_present<autohet::het::HetDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("has no lowering to kernels for CPUs");
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
