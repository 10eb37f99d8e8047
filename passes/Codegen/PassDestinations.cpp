//===- PassDestinations.cpp - results into the caller's buffers -----------===//
//
// Destinations are what lets bufferization work without a copy or an
// allocation. Each result is materialised in two steps: the step between
// tensors is where eliminate-empty-tensors finds the destination, the step into
// the buffer is what keeps the write alive.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Codegen/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace autohet {
#define GEN_PASS_DEF_PASSDESTINATIONS
#include "autohet/Passes/Codegen/Passes.h.inc"
} // namespace autohet

using namespace mlir;

namespace {

MemRefType bufferTypeOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// Strips reshapes off `result` and puts them on `buffer` instead: a reshaped
/// result would otherwise be computed aside and copied.
void reshapeBuffer(OpBuilder &b, Location loc, Value &result, Value &buffer) {
  while (true) {
    if (auto expand = result.getDefiningOp<tensor::ExpandShapeOp>()) {
      result = expand.getSrc();
      buffer = memref::CollapseShapeOp::create(
          b, loc, buffer, expand.getReassociationIndices());
    } else if (auto collapse =
                   result.getDefiningOp<tensor::CollapseShapeOp>()) {
      result = collapse.getSrc();
      buffer = memref::ExpandShapeOp::create(
          b, loc, bufferTypeOf(result.getType()).getShape(), buffer,
          collapse.getReassociationIndices());
    } else {
      return;
    }
  }
}

/// What lower-het-to-linalg leaves: one block, static tensors, the context
/// last.
LogicalResult verifyKernel(func::FuncOp kernel) {
  auto error = [&] { return kernel.emitOpError("is not a kernel: "); };
  if (!kernel.getBody().hasOneBlock())
    return error() << "its body has more than one block";
  if (!isa<func::ReturnOp>(kernel.getBody().front().back()))
    return error() << "its body does not end in 'func.return'";
  ArrayRef<Type> arguments = kernel.getArgumentTypes();
  if (arguments.empty() || !isa<LLVM::LLVMPointerType>(arguments.back()))
    return error() << "its last argument is not the context, an '!llvm.ptr'";
  for (Type type : llvm::concat<const Type>(arguments.drop_back(),
                                            kernel.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding() ||
        !MemRefType::isValidElementType(tensor.getElementType()))
      return error() << "it has a " << type << ", wanted static tensors";
  }
  return success();
}

struct PassDestinations
    : autohet::impl::PassDestinationsBase<PassDestinations> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (kernel.isDeclaration())
      return;
    if (failed(verifyKernel(kernel)))
      return signalPassFailure();
    Block &body = kernel.getBody().front();
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    auto noalias = b.getDictionaryAttr(b.getNamedAttr(
        LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr()));

    // Arguments: the buffer takes the tensor's place in the signature.
    for (unsigned i = 0; i + 1 < body.getNumArguments(); ++i) {
      BlockArgument argument = body.getArgument(i);
      Type tensorType = argument.getType();
      argument.setType(bufferTypeOf(tensorType));
      auto tensor = bufferization::ToTensorOp::create(
          b, argument.getLoc(), tensorType, argument, /*restrict=*/true);
      argument.replaceAllUsesExcept(tensor, tensor);
    }

    auto terminator = cast<func::ReturnOp>(body.getTerminator());
    for (Value result : terminator.getOperands()) {
      Location loc = result.getLoc();
      unsigned position = body.getNumArguments() - 1; // before the context
      Value buffer =
          body.insertArgument(position, bufferTypeOf(result.getType()), loc);
      // Reshapes of the buffer depend on nothing: they go first.
      reshapeBuffer(b, loc, result, buffer);
      auto destination = bufferization::ToTensorOp::create(
          b, loc, result.getType(), buffer, /*restrict=*/true,
          /*writable=*/true);
      OpBuilder end(terminator);
      Value inPlace = bufferization::MaterializeInDestinationOp::create(
                          end, loc, result.getType(), result, destination)
                          .getResult();
      bufferization::MaterializeInDestinationOp::create(
          end, loc, TypeRange(), inPlace, buffer, /*restrict=*/false,
          /*writable=*/true);
    }
    terminator->setOperands({});
    kernel.setFunctionType(
        b.getFunctionType(body.getArgumentTypes(), TypeRange()));
    SmallVector<DictionaryAttr> attributes(body.getNumArguments(), noalias);
    attributes.back() = b.getDictionaryAttr({});
    kernel.setAllArgAttrs(attributes);
    kernel.removeResAttrsAttr();
  }
};

} // namespace
