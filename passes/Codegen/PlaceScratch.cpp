//===- PlaceScratch.cpp - where a kernel's temporaries live ---------------===//
//
// Rows belong on the stack; what is larger comes out of memory that the memory
// planner knows about. Each of those is an argument of its own, which LLVM
// knows to overlap no other; the kernel's entry cuts them out of the one buffer
// that the runtime hands over. They do not share space: they are few, and large
// ones are a sign that a kernel should be tiled.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

namespace autohet {
#define GEN_PASS_DEF_PLACESCRATCH
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

constexpr int64_t kAlignment = 64; // a cache line, and the widest vector

int64_t sizeInBytes(MemRefType type) {
  int64_t width =
      type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
  return type.getNumElements() * int64_t(llvm::divideCeil(width, 8));
}

struct PlaceScratch : autohet::impl::PlaceScratchBase<PlaceScratch> {
  using PlaceScratchBase::PlaceScratchBase;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (kernel.isDeclaration())
      return;
    SmallVector<memref::AllocOp> allocations;
    kernel.walk([&](memref::AllocOp op) { allocations.push_back(op); });
    for (memref::AllocOp op : allocations) {
      if (!op.getType().hasStaticShape() ||
          !op.getType().getLayout().isIdentity()) {
        op.emitOpError("of a kernel is not static");
        return signalPassFailure();
      }
    }
    // Small ones first: they gain most from the stack.
    llvm::stable_sort(allocations, [](memref::AllocOp a, memref::AllocOp b) {
      return sizeInBytes(a.getType()) < sizeInBytes(b.getType());
    });
    int64_t onStack = 0, inScratch = 0;
    SmallVector<std::pair<memref::AllocOp, int64_t>> large;
    OpBuilder b(&getContext());
    for (memref::AllocOp op : allocations) {
      int64_t bytes = llvm::alignTo(sizeInBytes(op.getType()), kAlignment);
      if (onStack + bytes <= stackBytes) {
        onStack += bytes;
        b.setInsertionPointToStart(&kernel.getBody().front());
        Value place = memref::AllocaOp::create(b, op.getLoc(), op.getType(),
                                               b.getI64IntegerAttr(kAlignment));
        op.replaceAllUsesWith(place);
        op.erase();
        continue;
      }
      large.push_back({op, inScratch});
      inScratch += bytes;
    }
    if (large.empty())
      return;
    auto noalias =
        b.getDictionaryAttr(b.getNamedAttr("llvm.noalias", b.getUnitAttr()));
    SmallVector<int64_t> offsets;
    for (auto [op, offset] : large) {
      unsigned position = kernel.getNumArguments() - 1;
      if (failed(kernel.insertArgument(position, op.getType(), noalias,
                                       op.getLoc())))
        return signalPassFailure();
      op.replaceAllUsesWith(kernel.getArgument(position));
      op.erase();
      offsets.push_back(offset);
    }
    kernel->setAttr(autohet::kScratchOffsetsAttr,
                    b.getDenseI64ArrayAttr(offsets));
    kernel->setAttr(autohet::exec::kScratchBytesAttr,
                    b.getI64IntegerAttr(inScratch));
  }
};

} // namespace
