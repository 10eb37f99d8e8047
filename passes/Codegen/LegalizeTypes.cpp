//===- LegalizeTypes.cpp - element types that kernels compute in ----------===//
//
// The model may be of types that no arithmetic here is done in. Halves are
// computed in f32 and rounded after each op, as a machine without half
// arithmetic does; bf16 is reached from f32 only. Unsigned integers become
// signless ones, and the ops whose meaning depends on the sign remember it.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

namespace {

Type elementOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getElementType() : Type();
}
bool isHalf(Type type) {
  Type element = elementOf(type);
  return element && (element.isF16() || element.isBF16());
}
Type withElement(Type type, Type element) {
  return cast<RankedTensorType>(type).clone(element);
}

/// Ops that only move elements, of whatever type.
bool moves(Operation *op) {
  return isa<ConstantOp, ReshapeOp, TransposeOp, BroadcastOp, SliceOp,
             SliceBackwardOp, ConcatOp, GatherOp, GatherNdOp, SelectOp>(op);
}

/// half -> f32 -> anything, and anything -> f32 -> half.
void routeCast(CastOp op) {
  OpBuilder b(op);
  Type f32 = b.getF32Type();
  Type from = elementOf(op.getOperand().getType());
  if (isHalf(op.getOperand().getType()) && op.getTo() != f32)
    op.getOperandMutable().assign(
        CastOp::create(b, op.getLoc(), op.getOperand(), f32).getResult());
  else if (isHalf(op.getType()) && from != f32)
    op.getOperandMutable().assign(
        CastOp::create(b, op.getLoc(), op.getOperand(), f32).getResult());
}

/// The op in f32, between casts.
void promote(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Type f32 = b.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    if (isHalf(operand.get().getType()))
      operand.set(CastOp::create(b, loc, operand.get(), f32));
  b.setInsertionPointAfter(op);
  if (auto iota = dyn_cast<IotaOp>(op))
    iota.setElement(f32);
  for (Value result : op->getResults()) {
    Type type = result.getType();
    if (!isHalf(type))
      continue;
    result.setType(withElement(type, f32));
    auto rounded = CastOp::create(b, loc, result, elementOf(type));
    result.replaceAllUsesExcept(rounded, rounded);
  }
}

bool isUnsigned(Type type) {
  Type element = elementOf(type);
  return element && element.isUnsignedInteger();
}
/// The type that `type` is in memory.
Type signless(Type type) {
  if (Type element = elementOf(type);
      element && element.isIntOrFloat() && isStoredOnly(element))
    return withElement(type, IntegerType::get(type.getContext(), 8));
  if (!isUnsigned(type))
    return type;
  return withElement(type,
                     IntegerType::get(type.getContext(),
                                      elementOf(type).getIntOrFloatBitWidth()));
}
void dropSign(Value value) { value.setType(signless(value.getType())); }

void dropSigns(Operation *op) {
  UnitAttr unit = UnitAttr::get(op->getContext());
  if (llvm::any_of(op->getOperandTypes(), isUnsigned))
    op->setAttr(kUnsignedAttr, unit);
  if (auto cast = dyn_cast<CastOp>(op);
      cast && cast.getTo().isUnsignedInteger()) {
    op->setAttr(kToUnsignedAttr, unit);
    cast.setTo(elementOf(signless(cast.getType())));
  }
  if (auto iota = dyn_cast<IotaOp>(op);
      iota && iota.getElement().isUnsignedInteger())
    iota.setElement(elementOf(signless(iota.getType())));
  if (auto constant = dyn_cast<ConstantOp>(op))
    if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
        dense && isUnsigned(dense.getType()))
      constant.setValueAttr(
          dense.bitcast(elementOf(signless(dense.getType()))));
}

} // namespace

void autohet::legalizeTypes(func::FuncOp kernel) {
  SmallVector<std::pair<CastOp, Type>> smallCasts; // and what they cast from
  kernel.walk([&](CastOp op) {
    Type from = elementOf(op.getOperand().getType());
    if (isStoredOnly(op.getTo()) || isStoredOnly(from))
      smallCasts.push_back({op, from});
  });
  for (auto [op, from] : smallCasts)
    lowerSmallCast(op, from, op.getTo());
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (isa_and_present<HetDialect>(op->getDialect()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto cast = dyn_cast<CastOp>(op))
      routeCast(cast);
    else if (!moves(op) && (llvm::any_of(op->getOperandTypes(), isHalf) ||
                            llvm::any_of(op->getResultTypes(), isHalf)))
      promote(op);
  }
  // Signs are read off the operands of all ops before any type changes.
  kernel.walk([](Operation *op) {
    if (isa_and_present<HetDialect>(op->getDialect()))
      dropSigns(op);
  });
  for (BlockArgument argument : kernel.getArguments())
    dropSign(argument);
  kernel.walk([](Operation *op) {
    for (Value result : op->getResults())
      dropSign(result);
  });
  kernel.setFunctionType(FunctionType::get(
      kernel.getContext(), kernel.getBody().getArgumentTypes(),
      kernel.getBody().front().getTerminator()->getOperandTypes()));
}
