//===- ExpandCopies.cpp - strided copies as loops -------------------------===//
//
// MLIR lowers a strided copy to a call of its own runtime library, element by
// element; a loop is faster and links to nothing.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace autohet {
#define GEN_PASS_DEF_EXPANDCOPIES
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

bool isContiguous(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return type.getLayout().isIdentity();
}

struct ExpandCopies : autohet::impl::ExpandCopiesBase<ExpandCopies> {
  void runOnOperation() override {
    SmallVector<memref::CopyOp> copies;
    getOperation().walk([&](memref::CopyOp op) { copies.push_back(op); });
    for (memref::CopyOp op : copies) {
      if (isContiguous(op.getSource()) && isContiguous(op.getTarget()))
        continue;
      OpBuilder b(op);
      linalg::makeMemRefCopyOp(b, op.getLoc(), op.getSource(), op.getTarget());
      op.erase();
    }
  }
};

} // namespace
