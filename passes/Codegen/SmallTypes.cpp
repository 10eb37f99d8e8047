//===- SmallTypes.cpp - conversions of types that are only stored ---------===//
//
// Floats of 8 and 4 bits and integers of 4 and 2 are a byte an element in
// memory. No machine here computes in them, so all there is to do is convert:
// from floats of few bits by a table of all values, to them by counting how
// many of the midpoints between neighbours a number lies above.
//
//===----------------------------------------------------------------------===//

#include "HetToLinalg.h"

#include <cmath>

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

bool autohet::isStoredOnly(Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  return isa<FloatType>(element) ? width < 16 : width == 2 || width == 4;
}

namespace {

/// het ops over whole tensors.
class TensorOps {
public:
  TensorOps(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value cast(Value v, Type to) { return CastOp::create(b, loc, v, to); }
  Value number(Value like, double value) {
    return createSplat(b, loc,
                       RankedTensorType::get({}, typeOf(like).getElementType()),
                       value);
  }
  Value table(ArrayRef<float> values) {
    auto type = RankedTensorType::get({int64_t(values.size())}, b.getF32Type());
    return ConstantOp::create(b, loc, DenseElementsAttr::get(type, values));
  }
  Value compare(ComparePredicate predicate, Value lhs, double rhs) {
    return CompareOp::create(b, loc, predicate, lhs, number(lhs, rhs));
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return SelectOp::create(b, loc, condition, lhs, rhs);
  }
  template <typename OpT>
  Value binary(Value lhs, Value rhs) {
    return OpT::create(b, loc, lhs, rhs);
  }
  OpBuilder &b;
  Location loc;
};

/// All values of a type, by their bits.
std::vector<float> valuesOf(FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  std::vector<float> values;
  for (unsigned bits = 0; bits < 1u << type.getWidth(); ++bits) {
    APFloat value(semantics, APInt(type.getWidth(), bits));
    bool losesInfo;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    values.push_back(value.convertToFloat());
  }
  return values;
}

/// Where each step up from 0 begins: just below a midpoint whose upper
/// neighbour is the even one, else at it.
std::vector<float> stepsOf(FloatType type) {
  std::vector<float> values = valuesOf(type), steps;
  for (unsigned code = 1; code < values.size() / 2; ++code) {
    if (!std::isfinite(values[code]))
      break;
    float middle = (values[code - 1] + values[code]) / 2;
    steps.push_back(code % 2 ? middle : std::nextafterf(middle, -INFINITY));
  }
  return steps;
}

Value fromSmallFloat(TensorOps build, Value bits, FloatType type) {
  Value index = build.cast(bits, build.b.getI64Type());
  index.getDefiningOp()->setAttr(kUnsignedAttr, build.b.getUnitAttr());
  return GatherOp::create(build.b, build.loc, build.table(valuesOf(type)),
                          index, 0);
}

Value toSmallFloat(TensorOps build, Value x, FloatType type) {
  OpBuilder &b = build.b;
  using P = ComparePredicate;
  x = build.cast(x, b.getF32Type());
  Value size = AbsOp::create(b, build.loc, x);
  SmallVector<int64_t> column(typeOf(x).getShape());
  int64_t last = column.size();
  column.push_back(1);
  Value isAbove = CompareOp::create(
      b, build.loc, P::gt, ReshapeOp::create(b, build.loc, size, column),
      build.table(stepsOf(type)));
  Value code = ReduceOp::create(b, build.loc, ReduceKind::sum,
                                build.cast(isAbove, b.getI32Type()),
                                ArrayRef<int64_t>(last), /*keep=*/false);
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  auto codeOf = [&](const APFloat &value) {
    return build.number(code, double(value.bitcastToAPInt().getZExtValue()));
  };
  bool hasNan = APFloat::semanticsHasNaN(semantics);
  bool hasInf = APFloat::semanticsHasInf(semantics);
  Value nan = hasNan ? codeOf(APFloat::getNaN(semantics)) : Value();
  if (hasInf || hasNan)
    code =
        build.select(build.compare(P::eq, size, INFINITY),
                     hasInf ? codeOf(APFloat::getInf(semantics)) : nan, code);
  // -0 is below 0 by its reciprocal only.
  Value isNegative = build.binary<OrOp>(
      build.compare(P::lt, x, 0),
      build.binary<AndOp>(
          build.compare(P::eq, x, 0),
          build.compare(P::lt, ReciprocalOp::create(b, build.loc, x), 0)));
  if (APFloat(semantics, APInt::getSignMask(type.getWidth())).isNaN())
    isNegative =
        build.binary<AndOp>(isNegative, build.compare(P::ne, code, 0)); // no -0
  double sign = double(1u << (type.getWidth() - 1));
  Value negative = build.binary<AddOp>(code, build.number(code, sign));
  // A NaN may be the very code of -0.
  if (hasNan && !hasInf &&
      APFloat(semantics, APInt::getSignMask(type.getWidth())).isNaN())
    negative =
        build.select(build.compare(P::eq, size, INFINITY), nan, negative);
  code = build.select(isNegative, negative, code);
  // Types without a NaN give -0, as NumPy's do.
  code = build.select(IsNanOp::create(b, build.loc, x),
                      hasNan ? nan : build.number(code, sign), code);
  return build.cast(code, b.getI8Type());
}

/// The lowest bits, extended as the type's sign says.
Value toSmallInteger(TensorOps build, Value x, IntegerType type) {
  Type wide = IntegerType::get(build.b.getContext(), 32,
                               type.isUnsigned() ? IntegerType::Unsigned
                                                 : IntegerType::Signless);
  if (isa<FloatType>(typeOf(x).getElementType()))
    x = build.cast(x, build.b.getI32Type());
  x = build.cast(x, wide);
  Value bits = build.number(x, 32 - type.getWidth());
  x = build.binary<ShiftRightOp>(build.binary<ShiftLeftOp>(x, bits), bits);
  return build.cast(x, build.b.getI8Type());
}

} // namespace

void autohet::lowerSmallCast(CastOp op, Type from, Type to) {
  OpBuilder b(op);
  TensorOps build(b, op.getLoc());
  Value x = op.getOperand();
  if (auto small = dyn_cast<FloatType>(from); small && isStoredOnly(from))
    x = fromSmallFloat(build, x, small);
  if (!isStoredOnly(to))
    x = build.cast(x, to);
  else if (auto small = dyn_cast<FloatType>(to))
    x = toSmallFloat(build, x, small);
  else
    x = toSmallInteger(build, x, cast<IntegerType>(to));
  op.replaceAllUsesWith(x);
  op.erase();
}
