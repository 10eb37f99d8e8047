//===- HetElementwise.cpp - scalar forms of the elementwise ops -------------===//
//
// Every elementwise op says once what it does to scalars, with arith and math
// ops. Kernels, and nothing else, are built from this.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace autohet::het;

/// A scalar constant of `type`.
static Value constant(OpBuilder &b, Location loc, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  return arith::ConstantOp::create(b, loc,
                                   b.getIntegerAttr(type, int64_t(value)));
}

/// Booleans are 0 and 1, not 0 and -1.
bool autohet::het::isUnsignedOp(Operation *op) {
  if (op->hasAttr(kUnsignedAttr))
    return true;
  auto type = op->getNumOperands()
                  ? dyn_cast<RankedTensorType>(op->getOperand(0).getType())
                  : RankedTensorType();
  return type && (type.getElementType().isUnsignedInteger() ||
                  type.getElementType().isInteger(1));
}

static bool isFloat(Value v) { return isa<FloatType>(v.getType()); }

/// 1 / (1 + exp(-x)). exp(-x) overflows to inf for x below -88, and 1/inf is
/// the right 0, so no clamp is needed.
static Value sigmoid(OpBuilder &b, Location loc, Value x) {
  Value one = constant(b, loc, x.getType(), 1);
  Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
  return arith::DivFOp::create(b, loc, one,
                               arith::AddFOp::create(b, loc, one, e));
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

Value NegOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  if (isFloat(s[0]))
    return arith::NegFOp::create(b, loc, s[0]);
  return arith::SubIOp::create(b, loc, constant(b, loc, s[0].getType(), 0),
                               s[0]);
}
Value AbsOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  if (isFloat(s[0]))
    return math::AbsFOp::create(b, loc, s[0]);
  if (isUnsignedOp(*this))
    return s[0];
  return math::AbsIOp::create(b, loc, s[0]);
}

#define UNARY_MATH(OP, MATH)                                                   \
  Value OP::buildScalar(OpBuilder &b, Location loc, ValueRange s) {            \
    return math::MATH::create(b, loc, s[0]);                                   \
  }
UNARY_MATH(ExpOp, ExpOp)
UNARY_MATH(LogOp, LogOp)
UNARY_MATH(SqrtOp, SqrtOp)
UNARY_MATH(TanhOp, TanhOp)
UNARY_MATH(ErfOp, ErfOp)
UNARY_MATH(SinOp, SinOp)
UNARY_MATH(CosOp, CosOp)
UNARY_MATH(FloorOp, FloorOp)
UNARY_MATH(CeilOp, CeilOp)
UNARY_MATH(RoundOp, RoundEvenOp)
#undef UNARY_MATH

Value RsqrtOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  // Division of a true square root: PyTorch's rounding, not the estimate's.
  return arith::DivFOp::create(b, loc, constant(b, loc, s[0].getType(), 1),
                               math::SqrtOp::create(b, loc, s[0]));
}
Value ReciprocalOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::DivFOp::create(b, loc, constant(b, loc, s[0].getType(), 1),
                               s[0]);
}
Value SigmoidOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return sigmoid(b, loc, s[0]);
}
Value SiluOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::MulFOp::create(b, loc, s[0], sigmoid(b, loc, s[0]));
}
Value ReluOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::MaximumFOp::create(b, loc, s[0],
                                   constant(b, loc, s[0].getType(), 0));
}
Value NotOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::XOrIOp::create(b, loc, s[0],
                               constant(b, loc, s[0].getType(), 1));
}
Value IsNanOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, s[0], s[0]);
}

//===----------------------------------------------------------------------===//
// Gelu
//===----------------------------------------------------------------------===//

// tanh(u) = 1 - 2 / (1 + exp(2u)), so x/2 (1 + tanh u) = x / (1 + exp(-2u)):
// one exponential, and no cancellation for negative x.
static Value geluTanhArgument(OpBuilder &b, Location loc, Value x) {
  Type t = x.getType();
  Value square = arith::MulFOp::create(b, loc, x, x);
  Value inner = arith::AddFOp::create(
      b, loc, constant(b, loc, t, 1),
      arith::MulFOp::create(b, loc, constant(b, loc, t, 0.044715), square));
  // 2 sqrt(2/pi) x (1 + 0.044715 x^2)
  return arith::MulFOp::create(
      b, loc,
      arith::MulFOp::create(b, loc, constant(b, loc, t, 1.5957691216057308), x),
      inner);
}

/// The normal distribution's cumulative function, (1 + erf(x / sqrt 2)) / 2.
static Value normalCdf(OpBuilder &b, Location loc, Value x) {
  Type t = x.getType();
  Value e = math::ErfOp::create(
      b, loc,
      arith::MulFOp::create(b, loc, x,
                            constant(b, loc, t, 0.70710678118654752)));
  return arith::MulFOp::create(
      b, loc, constant(b, loc, t, 0.5),
      arith::AddFOp::create(b, loc, constant(b, loc, t, 1), e));
}

Value GeluOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  Value x = s[0];
  if (getForm() == GeluForm::tanh)
    return arith::MulFOp::create(b, loc, x,
                                 sigmoid(b, loc, geluTanhArgument(b, loc, x)));
  return arith::MulFOp::create(b, loc, x, normalCdf(b, loc, x));
}

Value GeluBackwardOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  Value x = s[0], gradient = s[1];
  Type t = x.getType();
  Value slope;
  if (getForm() == GeluForm::tanh) {
    // d/dx x s(v) = s + x s (1 - s) v', v' = 2 sqrt(2/pi) (1 + 3 * 0.044715
    // x^2)
    Value sg = sigmoid(b, loc, geluTanhArgument(b, loc, x));
    Value square = arith::MulFOp::create(b, loc, x, x);
    Value derivative = arith::MulFOp::create(
        b, loc, constant(b, loc, t, 1.5957691216057308),
        arith::AddFOp::create(
            b, loc, constant(b, loc, t, 1),
            arith::MulFOp::create(b, loc, constant(b, loc, t, 0.134145),
                                  square)));
    Value rest = arith::SubFOp::create(b, loc, constant(b, loc, t, 1), sg);
    Value bend = arith::MulFOp::create(
        b, loc, arith::MulFOp::create(b, loc, x, derivative),
        arith::MulFOp::create(b, loc, sg, rest));
    slope = arith::AddFOp::create(b, loc, sg, bend);
  } else {
    // Phi(x) + x phi(x), phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
    Value square = arith::MulFOp::create(b, loc, x, x);
    Value e = math::ExpOp::create(
        b, loc,
        arith::MulFOp::create(b, loc, constant(b, loc, t, -0.5), square));
    Value density = arith::MulFOp::create(
        b, loc, constant(b, loc, t, 0.39894228040143268), e);
    slope = arith::AddFOp::create(b, loc, normalCdf(b, loc, x),
                                  arith::MulFOp::create(b, loc, x, density));
  }
  return arith::MulFOp::create(b, loc, gradient, slope);
}

Value SiluBackwardOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  // d/dx x s(x) = s (1 + x (1 - s))
  Value x = s[0];
  Value one = constant(b, loc, x.getType(), 1);
  Value sg = sigmoid(b, loc, x);
  Value bend =
      arith::MulFOp::create(b, loc, x, arith::SubFOp::create(b, loc, one, sg));
  Value slope = arith::MulFOp::create(b, loc, sg,
                                      arith::AddFOp::create(b, loc, one, bend));
  return arith::MulFOp::create(b, loc, s[1], slope);
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

#define BINARY(OP, FLOAT, INT)                                                 \
  Value OP::buildScalar(OpBuilder &b, Location loc, ValueRange s) {            \
    if (isFloat(s[0]))                                                         \
      return FLOAT::create(b, loc, s[0], s[1]);                                \
    return INT::create(b, loc, s[0], s[1]);                                    \
  }
BINARY(AddOp, arith::AddFOp, arith::AddIOp)
BINARY(SubOp, arith::SubFOp, arith::SubIOp)
BINARY(MulOp, arith::MulFOp, arith::MulIOp)
BINARY(PowOp, math::PowFOp, math::IPowIOp)
#undef BINARY

#define BINARY_BY_SIGN(OP, FLOAT, SIGNED, UNSIGNED)                            \
  Value OP::buildScalar(OpBuilder &b, Location loc, ValueRange s) {            \
    if (isFloat(s[0]))                                                         \
      return FLOAT::create(b, loc, s[0], s[1]);                                \
    if (isUnsignedOp(*this))                                                   \
      return UNSIGNED::create(b, loc, s[0], s[1]);                             \
    return SIGNED::create(b, loc, s[0], s[1]);                                 \
  }
BINARY_BY_SIGN(DivOp, arith::DivFOp, arith::DivSIOp, arith::DivUIOp)
BINARY_BY_SIGN(MaxOp, arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp)
BINARY_BY_SIGN(MinOp, arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp)
#undef BINARY_BY_SIGN

Value ModOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  // The sign of the divisor: add it where the remainder's sign differs.
  Value zero = constant(b, loc, s[0].getType(), 0);
  if (isFloat(s[0])) {
    Value r = arith::RemFOp::create(b, loc, s[0], s[1]);
    Value nonzero =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, r, zero);
    Value signR =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, r, zero);
    Value signD =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, s[1], zero);
    Value differ = arith::AndIOp::create(
        b, loc, nonzero, arith::XOrIOp::create(b, loc, signR, signD));
    return arith::SelectOp::create(b, loc, differ,
                                   arith::AddFOp::create(b, loc, r, s[1]), r);
  }
  if (isUnsignedOp(*this))
    return arith::RemUIOp::create(b, loc, s[0], s[1]);
  Value r = arith::RemSIOp::create(b, loc, s[0], s[1]);
  Value nonzero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, r, zero);
  Value signR =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, r, zero);
  Value signD =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, s[1], zero);
  Value differ = arith::AndIOp::create(
      b, loc, nonzero, arith::XOrIOp::create(b, loc, signR, signD));
  return arith::SelectOp::create(b, loc, differ,
                                 arith::AddIOp::create(b, loc, r, s[1]), r);
}

Value RemOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  if (isFloat(s[0]))
    return arith::RemFOp::create(b, loc, s[0], s[1]);
  if (isUnsignedOp(*this))
    return arith::RemUIOp::create(b, loc, s[0], s[1]);
  return arith::RemSIOp::create(b, loc, s[0], s[1]);
}
Value ShiftLeftOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::ShLIOp::create(b, loc, s[0], s[1]);
}
Value ShiftRightOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  if (isUnsignedOp(*this))
    return arith::ShRUIOp::create(b, loc, s[0], s[1]);
  return arith::ShRSIOp::create(b, loc, s[0], s[1]);
}

Value AndOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::AndIOp::create(b, loc, s[0], s[1]);
}
Value OrOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::OrIOp::create(b, loc, s[0], s[1]);
}
Value XorOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::XOrIOp::create(b, loc, s[0], s[1]);
}

Value CompareOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  bool isUnsigned = isUnsignedOp(*this);
  switch (getPredicate()) {
#define CASE(NAME, FLOAT, SIGNED, UNSIGNED)                                    \
  case ComparePredicate::NAME:                                                 \
    if (isFloat(s[0]))                                                         \
      return arith::CmpFOp::create(b, loc, F::FLOAT, s[0], s[1]);              \
    return arith::CmpIOp::create(b, loc, isUnsigned ? I::UNSIGNED : I::SIGNED, \
                                 s[0], s[1]);
    CASE(eq, OEQ, eq, eq)
    CASE(ne, UNE, ne, ne)
    CASE(lt, OLT, slt, ult)
    CASE(le, OLE, sle, ule)
    CASE(gt, OGT, sgt, ugt)
    CASE(ge, OGE, sge, uge)
#undef CASE
  }
  llvm_unreachable("all predicates are listed");
}

Value SelectOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  return arith::SelectOp::create(b, loc, s[0], s[1], s[2]);
}

/// Narrow integers are reached through 32 bits, so that a number outside their
/// range wraps, as it does on the machines that models come from.
static Value castToInteger(OpBuilder &b, Location loc, Value x, Type to,
                           bool toUnsigned) {
  if (to.getIntOrFloatBitWidth() < 32) {
    Value wide = arith::FPToSIOp::create(b, loc, b.getI32Type(), x);
    return arith::TruncIOp::create(b, loc, to, wide);
  }
  if (toUnsigned)
    return arith::FPToUIOp::create(b, loc, to, x);
  return arith::FPToSIOp::create(b, loc, to, x);
}

Value CastOp::buildScalar(OpBuilder &b, Location loc, ValueRange s) {
  Value x = s[0];
  Type from = x.getType(), to = getTo();
  if (from == to)
    return x;
  if (to.isInteger(1)) {
    Value zero = constant(b, loc, from, 0);
    if (isFloat(x))
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, zero);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, zero);
  }
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  unsigned toWidth = to.getIntOrFloatBitWidth();
  bool fromUnsigned = isUnsignedOp(*this);
  bool toUnsigned = to.isUnsignedInteger() || (*this)->hasAttr(kToUnsignedAttr);
  if (isa<FloatType>(from) && isa<FloatType>(to)) {
    if (fromWidth < toWidth)
      return arith::ExtFOp::create(b, loc, to, x);
    return arith::TruncFOp::create(b, loc, to, x);
  }
  if (isa<FloatType>(from))
    return castToInteger(b, loc, x, to, toUnsigned);
  if (isa<FloatType>(to)) {
    if (fromUnsigned)
      return arith::UIToFPOp::create(b, loc, to, x);
    return arith::SIToFPOp::create(b, loc, to, x);
  }
  if (fromWidth > toWidth)
    return arith::TruncIOp::create(b, loc, to, x);
  if (fromWidth == toWidth)
    return x; // another sign of the same bits
  if (fromUnsigned)
    return arith::ExtUIOp::create(b, loc, to, x);
  return arith::ExtSIOp::create(b, loc, to, x);
}
