//===- HetToLinalgHelpers.cpp - what the lowerings of het ops share -------===//
//
// Small builders; the reasons are in HetToLinalg.h.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace autohet;

//===----------------------------------------------------------------------===//
// Building linalg
//===----------------------------------------------------------------------===//

SmallVector<Value> autohet::buildGeneric(OpBuilder &b, Location loc,
                                         ValueRange inputs, ValueRange outputs,
                                         ArrayRef<AffineMap> maps,
                                         ArrayRef<bool> isReduction,
                                         BodyBuilder body) {
  SmallVector<utils::IteratorType> iterators;
  for (bool reduction : isReduction)
    iterators.push_back(reduction ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, loc, outputs.getTypes(), inputs, outputs, maps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange scalars) {
        linalg::YieldOp::create(b, loc, body(b, loc, scalars));
      });
  return SmallVector<Value>(generic.getResults());
}

Value autohet::buildMap(
    OpBuilder &b, Location loc, ValueRange inputs, ArrayRef<AffineMap> maps,
    ArrayRef<int64_t> shape, Type element,
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(b.getMultiDimIdentityMap(shape.size()));
  SmallVector<bool> parallel(shape.size(), false);
  return buildGeneric(b, loc, inputs, emptyTensor(b, loc, shape, element), all,
                      parallel,
                      [&](OpBuilder &b, Location loc, ValueRange scalars) {
                        return SmallVector<Value>{
                            body(b, loc, scalars.take_front(inputs.size()))};
                      })
      .front();
}

Value autohet::buildContract(OpBuilder &b, Location loc, Value lhs, Value rhs,
                             Value acc, ArrayRef<AffineMap> maps) {
  return linalg::ContractOp::create(b, loc, TypeRange(acc.getType()),
                                    ValueRange{lhs, rhs}, ValueRange(acc),
                                    b.getAffineMapArrayAttr(maps))
      .getResult(0);
}

AffineMap autohet::broadcastMap(MLIRContext *context, ArrayRef<int64_t> shape,
                                ArrayRef<int64_t> result) {
  SmallVector<AffineExpr> exprs;
  unsigned missing = result.size() - shape.size();
  for (auto [i, extent] : llvm::enumerate(shape)) {
    bool repeated = extent == 1 && result[missing + i] != 1;
    exprs.push_back(repeated ? getAffineConstantExpr(0, context)
                             : getAffineDimExpr(missing + i, context));
  }
  return AffineMap::get(result.size(), 0, exprs, context);
}

AffineMap autohet::rowMap(MLIRContext *context, unsigned rank) {
  return AffineMap::getMultiDimIdentityMap(rank, context).dropResult(rank - 1);
}

AffineMap autohet::columnMap(MLIRContext *context, unsigned rank) {
  return AffineMap::get(rank, 0, getAffineDimExpr(rank - 1, context));
}

Value autohet::emptyTensor(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                           Type element) {
  return tensor::EmptyOp::create(b, loc, shape, element);
}

Value autohet::filledTensor(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                            Attribute value) {
  auto typed = cast<TypedAttr>(value);
  Value scalar = arith::ConstantOp::create(b, loc, typed);
  Value empty = emptyTensor(b, loc, shape, typed.getType());
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

Value autohet::zeroTensor(OpBuilder &b, Location loc, ArrayRef<int64_t> shape,
                          Type element) {
  return filledTensor(b, loc, shape, b.getZeroAttr(element));
}

Value autohet::reshapeTensor(OpBuilder &b, Location loc, Value tensor,
                             ArrayRef<int64_t> shape) {
  auto from = cast<RankedTensorType>(tensor.getType());
  auto to = RankedTensorType::get(shape, from.getElementType());
  if (from == to)
    return tensor;
  if (auto groups = getReassociationIndicesForReshape(from, to)) {
    if (from.getRank() > to.getRank())
      return tensor::CollapseShapeOp::create(b, loc, to, tensor, *groups);
    return tensor::ExpandShapeOp::create(b, loc, to, tensor, *groups);
  }
  // No grouping of dims relates the shapes: go through the flat form.
  auto flat =
      RankedTensorType::get({from.getNumElements()}, from.getElementType());
  ReassociationIndices all;
  for (int64_t i = 0; i < from.getRank(); ++i)
    all.push_back(i);
  tensor = tensor::CollapseShapeOp::create(
      b, loc, flat, tensor, SmallVector<ReassociationIndices>{all});
  all.clear();
  for (int64_t i = 0; i < to.getRank(); ++i)
    all.push_back(i);
  return tensor::ExpandShapeOp::create(b, loc, to, tensor,
                                       SmallVector<ReassociationIndices>{all});
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

arith::FastMathFlags autohet::sumFlags() {
  return arith::FastMathFlags::reassoc | arith::FastMathFlags::contract |
         arith::FastMathFlags::nsz;
}

arith::FastMathFlags autohet::maxFlags() {
  return arith::FastMathFlags::nnan | arith::FastMathFlags::nsz;
}

Value autohet::floatConstant(OpBuilder &b, Location loc, Type type,
                             double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

Value autohet::indexConstant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value autohet::intConstant(OpBuilder &b, Location loc, Type type,
                           int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
}

Value autohet::sum(OpBuilder &b, Location loc, Value acc, Value value) {
  return arith::AddFOp::create(b, loc, acc, value, sumFlags());
}

Value autohet::maximum(OpBuilder &b, Location loc, Value acc, Value value) {
  return arith::MaximumFOp::create(b, loc, acc, value, maxFlags());
}

Value autohet::product(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  return arith::MulFOp::create(b, loc, lhs, rhs,
                               arith::FastMathFlags::contract);
}

//===----------------------------------------------------------------------===//
// The kernel's context
//===----------------------------------------------------------------------===//

Value autohet::getKernelContext(Operation *op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  assert(kernel && "het ops are lowered inside kernels");
  Value context = kernel.getArguments().back();
  assert(isa<LLVM::LLVMPointerType>(context.getType()) &&
         "the last argument of a kernel is its context");
  return context;
}

static Value contextField(OpBuilder &b, Location loc, Value context,
                          ContextField field) {
  return LLVM::GEPOp::create(b, loc, context.getType(), b.getI64Type(), context,
                             ArrayRef<LLVM::GEPArg>{int32_t(field)});
}

Value autohet::loadContext(OpBuilder &b, Location loc, Value context,
                           ContextField field) {
  return LLVM::LoadOp::create(b, loc, b.getI64Type(),
                              contextField(b, loc, context, field));
}

void autohet::checkIndices(OpBuilder &b, Location loc, Operation *op,
                           Value indices, int64_t lower, int64_t upper,
                           std::optional<int64_t> except) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  kernel->setAttr(kMayFailAttr, b.getUnitAttr());
  Value context = getKernelContext(op);
  auto type = cast<RankedTensorType>(indices.getType());
  Value flat = reshapeTensor(b, loc, indices, {type.getNumElements()});
  Type element = type.getElementType();
  Value low = intConstant(b, loc, element, lower);
  Value high = intConstant(b, loc, element, upper);
  auto loop = scf::ForOp::create(b, loc, indexConstant(b, loc, 0),
                                 indexConstant(b, loc, type.getNumElements()),
                                 indexConstant(b, loc, 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  Value index = tensor::ExtractOp::create(b, loc, flat, i);
  Value below =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, low);
  Value above =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, index, high);
  Value bad = arith::OrIOp::create(b, loc, below, above);
  if (except) {
    Value other = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, index,
                                        intConstant(b, loc, element, *except));
    bad = arith::AndIOp::create(b, loc, bad, other);
  }
  auto branch = scf::IfOp::create(b, loc, bad, /*withElseRegion=*/false);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), i);
  Value value = index;
  if (element.getIntOrFloatBitWidth() < 64)
    value = arith::ExtSIOp::create(b, loc, b.getI64Type(), index);
  LLVM::StoreOp::create(
      b, loc, number, contextField(b, loc, context, ContextField::ErrorIndex));
  LLVM::StoreOp::create(
      b, loc, value, contextField(b, loc, context, ContextField::ErrorValue));
}
