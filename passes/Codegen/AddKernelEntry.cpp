//===- AddKernelEntry.cpp - the runtime's calling convention --------------===//
//
// Kernels are called through a table of equal pointers, so each gets an entry
// that unpacks the array of operands. The body stays a function of its own: its
// `noalias` arguments are what LLVM's vectoriser relies on.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace autohet {
#define GEN_PASS_DEF_ADDKERNELENTRY
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using autohet::ContextField;

namespace {

Value errorField(OpBuilder &b, Location loc, Value context) {
  return LLVM::GEPOp::create(
      b, loc, context.getType(), b.getI64Type(), context,
      ArrayRef<LLVM::GEPArg>{int32_t(ContextField::ErrorIndex)});
}

void addEntry(LLVM::LLVMFuncOp body) {
  OpBuilder b(body);
  Location loc = body.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  std::string name = body.getSymName().str();
  body.setSymName(name + ".body");
  body.setLinkage(LLVM::Linkage::Internal);
  body.setNoInline(true);
  bool mayFail = body->hasAttr(autohet::kMayFailAttr);

  auto entry = LLVM::LLVMFuncOp::create(
      b, loc, name, LLVM::LLVMFunctionType::get(i64, {pointer, pointer}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  Value operands = block->getArgument(0), context = block->getArgument(1);
  Value none = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(-1));
  if (mayFail)
    LLVM::StoreOp::create(b, loc, none, errorField(b, loc, context));
  // Inputs and results each have an operand; temporaries share the last one.
  ArrayRef<int64_t> offsets;
  if (auto scratch =
          body->getAttrOfType<DenseI64ArrayAttr>(autohet::kScratchOffsetsAttr))
    offsets = scratch;
  SmallVector<Value> arguments;
  auto operandAt = [&](unsigned i) -> Value {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, operands,
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
    return LLVM::LoadOp::create(b, loc, pointer, slot);
  };
  unsigned count = body.getNumArguments() - 1 - offsets.size();
  for (unsigned i = 0; i < count; ++i)
    arguments.push_back(operandAt(i));
  Value scratch = offsets.empty() ? Value() : operandAt(count);
  for (int64_t offset : offsets) {
    Value bytes =
        LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(offset));
    arguments.push_back(LLVM::GEPOp::create(b, loc, pointer, b.getI8Type(),
                                            scratch,
                                            ArrayRef<LLVM::GEPArg>{bytes}));
  }
  arguments.push_back(context);
  LLVM::CallOp::create(b, loc, body, arguments);
  Value status = LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(0));
  if (mayFail) {
    Value index =
        LLVM::LoadOp::create(b, loc, i64, errorField(b, loc, context));
    Value failed =
        LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, index, none);
    status = LLVM::ZExtOp::create(b, loc, i64, failed);
  }
  LLVM::ReturnOp::create(b, loc, status);
}

struct AddKernelEntry : autohet::impl::AddKernelEntryBase<AddKernelEntry> {
  void runOnOperation() override {
    SmallVector<LLVM::LLVMFuncOp> bodies;
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>())
      if (!function.isExternal())
        bodies.push_back(function);
    for (LLVM::LLVMFuncOp body : bodies)
      addEntry(body);
  }
};

} // namespace
