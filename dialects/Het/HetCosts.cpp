//===- HetCosts.cpp - what the het ops cost
//---------------------------------===//
//
// Arithmetic and traffic of one execution, as a kernel that fuses nothing has
// them: each operand is read once, each result written once. What only renames
// or reshapes costs nothing; fused groups are priced by who fuses.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

static double elementsOf(Value v) { return double(typeOf(v).getNumElements()); }
static double bytesOf(Value v) {
  // i1 is stored as a byte.
  unsigned bits = typeOf(v).getElementType().getIntOrFloatBitWidth();
  return elementsOf(v) * double((bits + 7) / 8);
}

/// All operands in, all results out, `flops` of other arithmetic.
static OpCost streaming(Operation *op, double flops) {
  OpCost cost;
  cost.otherFlops = flops;
  for (Value operand : op->getOperands())
    cost.bytesRead += bytesOf(operand);
  for (Value result : op->getResults())
    cost.bytesWritten += bytesOf(result);
  return cost;
}

//===----------------------------------------------------------------------===//
// Free
//===----------------------------------------------------------------------===//

// Names and views: no command is executed for them.
#define FREE(OP)                                                               \
  OpCost OP::getCost() { return {}; }
FREE(ConstantOp)
FREE(ParameterOp)
FREE(GradientOp)
FREE(ReshapeOp)
#undef FREE

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

// Operations of each result element's formula in HetElementwise.cpp.
#define ELEMENTWISE(OP, FLOPS)                                                 \
  OpCost OP::getCost() {                                                       \
    return streaming(*this, FLOPS * elementsOf(getResult()));                  \
  }
ELEMENTWISE(NegOp, 1)
ELEMENTWISE(AbsOp, 1)
ELEMENTWISE(ExpOp, 1)
ELEMENTWISE(LogOp, 1)
ELEMENTWISE(SqrtOp, 1)
ELEMENTWISE(RsqrtOp, 2)
ELEMENTWISE(ReciprocalOp, 1)
ELEMENTWISE(TanhOp, 1)
ELEMENTWISE(ErfOp, 1)
ELEMENTWISE(SigmoidOp, 4)
ELEMENTWISE(SiluOp, 5)
ELEMENTWISE(SiluBackwardOp, 9)
ELEMENTWISE(ReluOp, 1)
ELEMENTWISE(SinOp, 1)
ELEMENTWISE(CosOp, 1)
ELEMENTWISE(FloorOp, 1)
ELEMENTWISE(CeilOp, 1)
ELEMENTWISE(RoundOp, 1)
ELEMENTWISE(RemOp, 2)
ELEMENTWISE(ShiftLeftOp, 1)
ELEMENTWISE(ShiftRightOp, 1)
ELEMENTWISE(AddOp, 1)
ELEMENTWISE(SubOp, 1)
ELEMENTWISE(MulOp, 1)
ELEMENTWISE(DivOp, 1)
ELEMENTWISE(ModOp, 3)
ELEMENTWISE(PowOp, 1)
ELEMENTWISE(MaxOp, 1)
ELEMENTWISE(MinOp, 1)
ELEMENTWISE(AndOp, 1)
ELEMENTWISE(OrOp, 1)
ELEMENTWISE(XorOp, 1)
ELEMENTWISE(NotOp, 1)
ELEMENTWISE(IsNanOp, 1)
ELEMENTWISE(CompareOp, 1)
ELEMENTWISE(SelectOp, 1)
ELEMENTWISE(CastOp, 1)
ELEMENTWISE(GeluOp, (getForm() == GeluForm::erf ? 5 : 10))
ELEMENTWISE(GeluBackwardOp, (getForm() == GeluForm::erf ? 11 : 17))
// Philox: ten rounds of two products and four other operations for four
// elements.
ELEMENTWISE(DropoutOp, 17)
#undef ELEMENTWISE

//===----------------------------------------------------------------------===//
// Products, reductions, norms
//===----------------------------------------------------------------------===//

OpCost MatmulOp::getCost() {
  OpCost cost = streaming(*this, 0);
  double contracted = 1;
  for (int64_t dim : getLhsContract())
    contracted *= double(typeOf(getLhs()).getDimSize(dim));
  cost.matmulFlops = 2 * elementsOf(getResult()) * contracted;
  return cost;
}

OpCost ReduceOp::getCost() {
  return streaming(*this, elementsOf(getOperand()));
}

// Passes over a row: maximum, difference, exponential, sum, quotient.
OpCost SoftmaxOp::getCost() {
  return streaming(*this, 5 * elementsOf(getResult()));
}
OpCost SoftmaxBackwardOp::getCost() {
  return streaming(*this, 4 * elementsOf(getResult()));
}
OpCost LayerNormOp::getCost() {
  return streaming(*this, 8 * elementsOf(getOperand()));
}
OpCost LayerNormBackwardOp::getCost() {
  return streaming(*this, 14 * elementsOf(getOperand()));
}
OpCost RmsNormOp::getCost() {
  return streaming(*this, 4 * elementsOf(getOperand()));
}
OpCost RmsNormBackwardOp::getCost() {
  return streaming(*this, 10 * elementsOf(getOperand()));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The (query, key) pairs that attention looks at: all, or those below the
/// causal diagonal, where key t is seen by query s if t <= s + T - S.
static double visiblePairs(RankedTensorType query, RankedTensorType key,
                           bool causal) {
  int64_t s = query.getDimSize(2), t = key.getDimSize(2);
  double pairs = 0;
  for (int64_t row = 0; row < s; ++row)
    pairs +=
        causal ? double(std::clamp<int64_t>(row + t - s + 1, 0, t)) : double(t);
  return pairs * double(query.getDimSize(0) * query.getDimSize(1));
}

OpCost AttentionOp::getCost() {
  OpCost cost = streaming(*this, 0);
  double pairs =
      visiblePairs(typeOf(getQuery()), typeOf(getKey()), getCausal());
  double d = double(typeOf(getQuery()).getDimSize(3));
  double dv = double(typeOf(getValue()).getDimSize(3));
  cost.matmulFlops = 2 * pairs * (d + dv); // scores, their product with values
  cost.otherFlops = pairs * (getDropoutP() ? 23 : 6);
  return cost;
}

OpCost AttentionBackwardOp::getCost() {
  OpCost cost = streaming(*this, 0);
  double pairs =
      visiblePairs(typeOf(getQuery()), typeOf(getKey()), getCausal());
  double d = double(typeOf(getQuery()).getDimSize(3));
  double dv = double(typeOf(getValue()).getDimSize(3));
  // Scores again, gradients of query and key; of probabilities and value.
  cost.matmulFlops = 2 * pairs * (3 * d + 2 * dv);
  cost.otherFlops = pairs * (getDropoutP() ? 25 : 8);
  return cost;
}

OpCost RotaryOp::getCost() {
  return streaming(*this, 3 * elementsOf(getOperand()));
}

//===----------------------------------------------------------------------===//
// Index and shape
//===----------------------------------------------------------------------===//

/// Only the part that is asked for is read.
static OpCost copying(Operation *op, Value index = {}) {
  OpCost cost;
  cost.bytesRead = cost.bytesWritten = bytesOf(op->getResult(0));
  if (index)
    cost.bytesRead += bytesOf(index);
  return cost;
}

OpCost EmbeddingOp::getCost() { return copying(*this, getIds()); }
OpCost EmbeddingBackwardOp::getCost() {
  return streaming(*this, elementsOf(getGradient()));
}
OpCost GatherOp::getCost() { return copying(*this, getIndices()); }
OpCost GatherNdOp::getCost() { return copying(*this, getIndices()); }
OpCost ArgReduceOp::getCost() {
  return streaming(*this, elementsOf(getOperand()));
}
OpCost CumulativeSumOp::getCost() {
  return streaming(*this, elementsOf(getOperand()));
}
// A pass over the row for each of the k.
OpCost TopKOp::getCost() {
  return streaming(*this, 2 * double(getK()) * elementsOf(getOperand()));
}
OpCost ScatterNdOp::getCost() {
  return streaming(*this, elementsOf(getUpdates()));
}
OpCost IotaOp::getCost() { return streaming(*this, elementsOf(getResult())); }
OpCost TransposeOp::getCost() { return copying(*this); }
OpCost BroadcastOp::getCost() { return streaming(*this, 0); }
OpCost SliceOp::getCost() { return copying(*this); }
OpCost SliceBackwardOp::getCost() { return streaming(*this, 0); }
OpCost ConcatOp::getCost() { return streaming(*this, 0); }

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

OpCost CrossEntropyOp::getCost() {
  return streaming(*this, 4 * elementsOf(getLogits()));
}
OpCost CrossEntropyPartOp::getCost() {
  return streaming(*this, 4 * elementsOf(getLogits()));
}
OpCost CrossEntropyBackwardOp::getCost() {
  return streaming(*this, 4 * elementsOf(getLogits()));
}
