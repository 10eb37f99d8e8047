//===- HetAdjoints.cpp - gradients of the het ops ------------------- ===//
//
// Each op builds the gradients of its operands.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet::het;

Value autohet::het::reduceToType(OpBuilder &, Location, Value value, RankedTensorType) { return value; }
LogicalResult NegOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult AbsOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ExpOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult LogOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SqrtOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult RsqrtOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ReciprocalOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult TanhOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ErfOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SigmoidOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SiluOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ReluOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SinOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult CosOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult AddOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SubOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult MulOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult DivOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ModOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult PowOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult MaxOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult MinOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SelectOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult CastOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult GeluOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult DropoutOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult MatmulOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ReduceOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SoftmaxOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult LayerNormOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult RmsNormOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult AttentionOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult RotaryOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult EmbeddingOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ReshapeOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult TransposeOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult BroadcastOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult SliceOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult ConcatOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
LogicalResult CrossEntropyOp::buildAdjoint(OpBuilder &, ArrayRef<Value>, ArrayRef<bool>, SmallVectorImpl<Value> &) { return emitOpError("has no adjoint yet"); }
