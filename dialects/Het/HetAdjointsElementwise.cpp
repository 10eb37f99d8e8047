//===- HetAdjointsElementwise.cpp - gradients of the elementwise ops
//--------===//
//
// Written in terms of the op's result where that saves arithmetic. At the
// points where no derivative exists they give what PyTorch gives:
//
//   abs   at 0           0
//   relu  at 0           0
//   max, min of equals   half of the gradient to each
//   pow   exponent 0     0
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet::het;

using Gradients = SmallVectorImpl<Value>;

namespace {
/// Short names for the arithmetic that adjoints consist of.
struct Arithmetic {
  OpBuilder &b;
  Location loc;

  Value neg(Value x) { return NegOp::create(b, loc, x); }
  Value add(Value x, Value y) { return AddOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return SubOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return DivOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) {
    // The chain starts with a gradient of 1: no product for that.
    if (isScalar(x) && matchPattern(x, m_OneFloat()))
      return y;
    return MulOp::create(b, loc, x, y);
  }
  Value mul(Value x, double y) {
    return MulOp::create(b, loc, x, scalar(x, y));
  }
  Value select(Value c, Value x, Value y) {
    return SelectOp::create(b, loc, c, x, y);
  }
  Value compare(ComparePredicate p, Value x, Value y) {
    return CompareOp::create(b, loc, p, x, y);
  }
  /// A rank-0 constant, which broadcasts against anything.
  Value scalar(Value like, double value) {
    auto type = cast<RankedTensorType>(like.getType());
    return createSplat(b, loc, RankedTensorType::get({}, type.getElementType()),
                       value);
  }
  Value reduceTo(Value gradient, Value operand) {
    return reduceToType(b, loc, gradient,
                        cast<RankedTensorType>(operand.getType()));
  }
  static bool isScalar(Value x) {
    return cast<RankedTensorType>(x.getType()).getRank() == 0;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

// x is the operand, y the result, g the gradient by the result.
#define UNARY(OP, GRADIENT)                                                    \
  LogicalResult OP::buildAdjoint(OpBuilder &builder,                           \
                                 ArrayRef<Value> gradients,                    \
                                 ArrayRef<bool> wanted, Gradients &out) {      \
    Arithmetic a{builder, getLoc()};                                           \
    Value g = gradients[0], x = getOperand(), y = getResult();                 \
    (void)a, (void)x, (void)y;                                                 \
    if (wanted[0])                                                             \
      out[0] = GRADIENT;                                                       \
    return success();                                                          \
  }
UNARY(NegOp, a.neg(g))
UNARY(AbsOp,
      a.select(a.compare(ComparePredicate::gt, x, a.scalar(x, 0)), g,
               a.select(a.compare(ComparePredicate::lt, x, a.scalar(x, 0)),
                        a.neg(g), a.scalar(g, 0))))
UNARY(ExpOp, a.mul(g, y))
UNARY(LogOp, a.div(g, x))
UNARY(SqrtOp, a.div(a.mul(g, 0.5), y))
UNARY(RsqrtOp, a.mul(a.mul(g, -0.5), a.mul(y, a.mul(y, y))))
UNARY(ReciprocalOp, a.neg(a.mul(g, a.mul(y, y))))
UNARY(TanhOp, a.mul(g, a.sub(a.scalar(y, 1), a.mul(y, y))))
// 2 / sqrt(pi) exp(-x^2)
UNARY(ErfOp,
      a.mul(g, a.mul(ExpOp::create(builder, getLoc(), a.neg(a.mul(x, x))),
                     1.1283791670955126)))
UNARY(SigmoidOp, a.mul(g, a.mul(y, a.sub(a.scalar(y, 1), y))))
UNARY(SiluOp, SiluBackwardOp::create(builder, getLoc(), x, g))
UNARY(ReluOp, a.select(a.compare(ComparePredicate::gt, y, a.scalar(y, 0)), g,
                       a.scalar(g, 0)))
UNARY(SinOp, a.mul(g, CosOp::create(builder, getLoc(), x)))
UNARY(CosOp, a.neg(a.mul(g, SinOp::create(builder, getLoc(), x))))
UNARY(GeluOp, GeluBackwardOp::create(builder, getLoc(), getForm(), x, g))
// The same mask: it is a function of the op's id and the element's index.
UNARY(DropoutOp,
      DropoutOp::create(builder, getLoc(), g, getPAttr(), getOpIdAttr(),
                        getOffsetsAttr(), getGlobalShapeAttr()))
// Only casts between floats are ever asked: integers have no gradient.
UNARY(CastOp,
      CastOp::create(builder, getLoc(), g,
                     cast<RankedTensorType>(x.getType()).getElementType()))
#undef UNARY

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

#define BINARY(OP, BY_LHS, BY_RHS)                                             \
  LogicalResult OP::buildAdjoint(OpBuilder &builder,                           \
                                 ArrayRef<Value> gradients,                    \
                                 ArrayRef<bool> wanted, Gradients &out) {      \
    Arithmetic a{builder, getLoc()};                                           \
    Value g = gradients[0], l = getLhs(), r = getRhs(), y = getResult();       \
    (void)y;                                                                   \
    if (wanted[0])                                                             \
      out[0] = a.reduceTo(BY_LHS, l);                                          \
    if (wanted[1])                                                             \
      out[1] = a.reduceTo(BY_RHS, r);                                          \
    return success();                                                          \
  }
BINARY(AddOp, g, g)
BINARY(SubOp, g, a.neg(g))
BINARY(MulOp, a.mul(g, r), a.mul(g, l))
BINARY(DivOp, a.div(g, r), a.neg(a.mul(g, a.div(y, r))))
#undef BINARY

/// The gradient of max or min by `mine`: all of it where `mine` was chosen,
/// half where both are equal. `loses` is the comparison under which `mine` was
/// not.
static Value shareExtreme(Arithmetic a, ComparePredicate loses, Value g,
                          Value mine, Value other) {
  Value shared =
      a.select(a.compare(ComparePredicate::eq, mine, other), a.mul(g, 0.5), g);
  return a.reduceTo(
      a.select(a.compare(loses, mine, other), a.scalar(g, 0), shared), mine);
}

#define EXTREME(OP, LOSES)                                                     \
  LogicalResult OP::buildAdjoint(OpBuilder &builder,                           \
                                 ArrayRef<Value> gradients,                    \
                                 ArrayRef<bool> wanted, Gradients &out) {      \
    Arithmetic a{builder, getLoc()};                                           \
    if (wanted[0])                                                             \
      out[0] = shareExtreme(a, ComparePredicate::LOSES, gradients[0],          \
                            getLhs(), getRhs());                               \
    if (wanted[1])                                                             \
      out[1] = shareExtreme(a, ComparePredicate::LOSES, gradients[0],          \
                            getRhs(), getLhs());                               \
    return success();                                                          \
  }
EXTREME(MaxOp, lt)
EXTREME(MinOp, gt)
#undef EXTREME

LogicalResult ModOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> gradients,
                                  ArrayRef<bool> wanted, Gradients &out) {
  if (wanted[1])
    return emitOpError(
        "has no adjoint by its right operand, which depends on a "
        "trained parameter");
  Arithmetic a{builder, getLoc()};
  if (wanted[0])
    out[0] = a.reduceTo(gradients[0], getLhs());
  return success();
}

/// The value of a constant that is the same everywhere.
static std::optional<double> splatValue(Value v) {
  DenseFPElementsAttr elements;
  if (!matchPattern(v, m_Constant(&elements)) || !elements.isSplat())
    return std::nullopt;
  APFloat value = elements.getSplatValue<APFloat>();
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

/// e x^(e-1), without a call of pow for the exponents that models have: powers
/// of a negative base stay exact and finite.
static Value powerSlope(Arithmetic a, Value x, Value exponent, Value result) {
  std::optional<double> e = splatValue(exponent);
  if (e && *e == 0)
    return a.scalar(x, 0);
  if (e && *e == 1)
    return a.scalar(x, 1);
  if (e && *e == 2)
    return a.mul(x, 2);
  if (e && *e == 3)
    return a.mul(a.mul(x, x), 3);
  if (e && *e == 0.5) // the result is the square root
    return a.div(a.scalar(x, 0.5), result);
  if (e)
    return a.mul(PowOp::create(a.b, a.loc, x, a.scalar(x, *e - 1)), *e);
  Value less = a.sub(exponent, a.scalar(exponent, 1));
  Value slope = a.mul(exponent, PowOp::create(a.b, a.loc, x, less));
  // 0 * x^-1 would be NaN at x = 0.
  return a.select(
      a.compare(ComparePredicate::eq, exponent, a.scalar(exponent, 0)),
      a.scalar(x, 0), slope);
}

LogicalResult PowOp::buildAdjoint(OpBuilder &builder, ArrayRef<Value> gradients,
                                  ArrayRef<bool> wanted, Gradients &out) {
  Arithmetic a{builder, getLoc()};
  Value g = gradients[0], x = getLhs(), e = getRhs();
  if (wanted[0])
    out[0] = a.reduceTo(
        MulOp::create(builder, getLoc(), g, powerSlope(a, x, e, getResult())),
        x);
  if (wanted[1]) {
    // x^e ln x; at x = 0 the power wins over the logarithm (e > 0).
    Value zero = a.compare(ComparePredicate::eq, x, a.scalar(x, 0));
    Value slope = a.mul(getResult(), LogOp::create(builder, getLoc(), x));
    out[1] = a.reduceTo(a.mul(g, a.select(zero, a.scalar(x, 0), slope)), e);
  }
  return success();
}

LogicalResult SelectOp::buildAdjoint(OpBuilder &builder,
                                     ArrayRef<Value> gradients,
                                     ArrayRef<bool> wanted, Gradients &out) {
  Arithmetic a{builder, getLoc()};
  Value g = gradients[0];
  if (wanted[1])
    out[1] = a.reduceTo(a.select(getCondition(), g, a.scalar(g, 0)), getLhs());
  if (wanted[2])
    out[2] = a.reduceTo(a.select(getCondition(), a.scalar(g, 0), g), getRhs());
  return success();
}
