//===- WidenBooleans.cpp - booleans in memory are bytes -------------------===//
//
// LLVM does not vectorise a loop that touches single bits in memory, though
// each has a byte of its own; one mask would make a whole attention row scalar.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace autohet {
#define GEN_PASS_DEF_WIDENBOOLEANS
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

/// The type of bytes for a buffer of booleans; null for any other type.
MemRefType widened(Type type) {
  auto buffer = dyn_cast<MemRefType>(type);
  if (!buffer || !buffer.getElementType().isInteger(1))
    return nullptr;
  return MemRefType::Builder(buffer).setElementType(
      IntegerType::get(type.getContext(), 8));
}

void widen(Value value) {
  if (MemRefType type = widened(value.getType()))
    value.setType(type);
}

/// A constant table and its initial values.
void widen(memref::GlobalOp global) {
  MemRefType type = widened(global.getType());
  if (!type)
    return;
  global.setType(type);
  auto values =
      dyn_cast_if_present<DenseElementsAttr>(global.getInitialValueAttr());
  if (!values)
    return;
  SmallVector<int8_t> bytes;
  for (bool value : values.getValues<bool>())
    bytes.push_back(value);
  auto tensor = RankedTensorType::get(type.getShape(), type.getElementType());
  global.setInitialValueAttr(
      DenseElementsAttr::get(tensor, ArrayRef<int8_t>(bytes)));
}

struct WidenBooleans : autohet::impl::WidenBooleansBase<WidenBooleans> {
  void runOnOperation() override {
    for (auto global : getOperation().getOps<memref::GlobalOp>())
      widen(global);
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      run(kernel);
  }

  void run(func::FuncOp kernel) {
    // First the types of all buffers, which loads and stores then meet.
    kernel.walk([](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value argument : block.getArguments())
            widen(argument);
      for (Value result : op->getResults())
        widen(result);
    });
    if (!kernel.isDeclaration())
      kernel.setFunctionType(FunctionType::get(
          kernel.getContext(), kernel.getBody().getArgumentTypes(),
          kernel.getResultTypes()));
    OpBuilder b(kernel.getContext());
    kernel.walk([&](Operation *op) {
      b.setInsertionPointAfter(op);
      if (auto load = dyn_cast<memref::LoadOp>(op);
          load && load.getType().isInteger(1)) {
        Location loc = load.getLoc();
        Value byte =
            memref::LoadOp::create(b, loc, load.getMemRef(), load.getIndices());
        Value zero = arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0));
        load.replaceAllUsesWith(
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, byte, zero)
                .getResult());
        load.erase();
      } else if (auto store = dyn_cast<memref::StoreOp>(op);
                 store && store.getValueToStore().getType().isInteger(1)) {
        b.setInsertionPoint(op);
        Value byte = arith::ExtUIOp::create(b, store.getLoc(), b.getI8Type(),
                                            store.getValueToStore());
        store.getValueMutable().assign(byte);
      }
    });
  }
};

} // namespace
