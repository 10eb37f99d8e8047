//===- HetFolds.cpp - elementwise ops and reductions of constants ---------===//
//
// Models compute their shapes and masks: Shape, Gather, Concat, Range, Where.
// Once the dims are bound, all of that is arithmetic on constants, and these
// folds carry it out. Ops that move data are in HetShapeFolds.cpp.
//
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "autohet/Dialect/Het/Het.h"

#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace autohet::het;

namespace {

/// The value after rounding to `type`; f32 arithmetic done in double and
/// rounded once is f32 arithmetic, for + - * / and square roots.
double roundTo(Type type, double value) {
  return type.isF32() ? double(float(value)) : value;
}

/// The type of a fold's result, or null where it is not to be folded.
RankedTensorType foldableType(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return isFoldable(type) ? type : RankedTensorType();
}

/// Element `i` of the result, read from an operand through its broadcast.
struct Reader {
  const ConstantTensor &tensor;
  std::vector<int64_t> indices;

  Reader(const ConstantTensor &tensor, ArrayRef<int64_t> resultShape)
      : tensor(tensor) {
    if (tensor.storedElements() != 1 && tensor.type.getShape() != resultShape)
      indices = broadcastIndices(tensor.type.getShape(), resultShape);
  }
  int64_t at(int64_t i) const {
    if (tensor.storedElements() == 1)
      return 0;
    return indices.empty() ? i : indices[i];
  }
  double real(int64_t i) const { return tensor.floats[at(i)]; }
  int64_t integer(int64_t i) const { return tensor.ints[at(i)]; }
};

/// Evaluates an elementwise op: `compute(readers, i, result)` fills element i.
template <typename Compute>
Attribute foldElementwise(Operation *op, ArrayRef<Attribute> operands,
                          Compute compute) {
  RankedTensorType type = foldableType(op);
  if (!type)
    return {};
  llvm::SmallVector<ConstantTensor, 3> tensors;
  for (Attribute operand : operands) {
    auto tensor = ConstantTensor::get(operand);
    if (!tensor)
      return {};
    tensors.push_back(std::move(*tensor));
  }
  bool splat = type.getNumElements() > 0 &&
               llvm::all_of(tensors, [](const ConstantTensor &tensor) {
                 return tensor.storedElements() == 1;
               });
  llvm::SmallVector<Reader, 3> readers;
  for (const ConstantTensor &tensor : tensors)
    readers.emplace_back(tensor, type.getShape());
  ConstantTensor result = ConstantTensor::create(type, splat);
  int64_t count = result.storedElements();
  for (int64_t i = 0; i < count; ++i)
    if (!compute(readers, i, result))
      return {};
  return result.toAttribute();
}

Attribute foldUnary(Operation *op, Attribute operand,
                    llvm::function_ref<double(double)> real,
                    llvm::function_ref<int64_t(int64_t)> integer = nullptr) {
  return foldElementwise(
      op, operand, [&](auto &readers, int64_t i, ConstantTensor &result) {
        if (result.isFloat())
          result.floats[i] =
              roundTo(result.type.getElementType(), real(readers[0].real(i)));
        else if (integer)
          result.ints[i] = integer(readers[0].integer(i));
        else
          return false;
        return true;
      });
}

/// `integer` may refuse (division by zero) by returning nothing.
Attribute foldBinary(
    Operation *op, ArrayRef<Attribute> operands,
    llvm::function_ref<double(double, double)> real,
    llvm::function_ref<std::optional<int64_t>(int64_t, int64_t)> integer) {
  return foldElementwise(
      op, operands, [&](auto &readers, int64_t i, ConstantTensor &result) {
        if (result.isFloat()) {
          result.floats[i] =
              roundTo(result.type.getElementType(),
                      real(readers[0].real(i), readers[1].real(i)));
          return true;
        }
        auto value = integer(readers[0].integer(i), readers[1].integer(i));
        if (value)
          result.ints[i] = *value;
        return value.has_value();
      });
}

/// Whether the attribute holds `value` in every element.
bool isSplatOf(Attribute attribute, double value) {
  auto dense = dyn_cast_if_present<DenseElementsAttr>(attribute);
  if (!dense || !dense.isSplat())
    return false;
  auto tensor = ConstantTensor::get(attribute);
  if (!tensor || tensor->storedElements() != 1)
    return false;
  return tensor->isFloat() ? tensor->floats[0] == value
                           : tensor->ints[0] == int64_t(value);
}

/// `operand`, where the op may be replaced by it: broadcasting does nothing.
OpFoldResult ifSameType(Operation *op, Value operand) {
  return operand.getType() == op->getResult(0).getType() ? OpFoldResult(operand)
                                                         : OpFoldResult();
}

int64_t wrap(uint64_t value) { return int64_t(value); }

} // namespace

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  return foldUnary(
      *this, adaptor.getOperand(), [](double x) { return -x; },
      [](int64_t x) { return wrap(-uint64_t(x)); });
}
OpFoldResult AbsOp::fold(FoldAdaptor adaptor) {
  return foldUnary(
      *this, adaptor.getOperand(), [](double x) { return std::fabs(x); },
      [](int64_t x) { return x < 0 ? wrap(-uint64_t(x)) : x; });
}

#define UNARY_FLOAT(OP, EXPRESSION)                                            \
  OpFoldResult OP::fold(FoldAdaptor adaptor) {                                 \
    return foldUnary(*this, adaptor.getOperand(),                              \
                     [](double x) -> double { return EXPRESSION; });           \
  }
UNARY_FLOAT(ExpOp, std::exp(x))
UNARY_FLOAT(LogOp, std::log(x))
UNARY_FLOAT(SqrtOp, std::sqrt(x))
UNARY_FLOAT(RsqrtOp, 1 / std::sqrt(x))
UNARY_FLOAT(ReciprocalOp, 1 / x)
UNARY_FLOAT(TanhOp, std::tanh(x))
UNARY_FLOAT(ErfOp, std::erf(x))
UNARY_FLOAT(SigmoidOp, 1 / (1 + std::exp(-x)))
UNARY_FLOAT(SiluOp, x / (1 + std::exp(-x)))
UNARY_FLOAT(ReluOp, std::isnan(x) ? x : std::fmax(x, 0))
UNARY_FLOAT(SinOp, std::sin(x))
UNARY_FLOAT(CosOp, std::cos(x))
UNARY_FLOAT(FloorOp, std::floor(x))
UNARY_FLOAT(CeilOp, std::ceil(x))
UNARY_FLOAT(RoundOp, std::nearbyint(x))
#undef UNARY_FLOAT

// Not worth evaluating: they never act on constants.
OpFoldResult GeluOp::fold(FoldAdaptor) { return {}; }
OpFoldResult GeluBackwardOp::fold(FoldAdaptor) { return {}; }
OpFoldResult SiluBackwardOp::fold(FoldAdaptor) { return {}; }

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  return foldUnary(
      *this, adaptor.getOperand(), [](double x) { return x; },
      [](int64_t x) -> int64_t { return !x; });
}

OpFoldResult IsNanOp::fold(FoldAdaptor adaptor) {
  return foldElementwise(*this, adaptor.getOperand(),
                         [](auto &readers, int64_t i, ConstantTensor &result) {
                           result.ints[i] = std::isnan(readers[0].real(i));
                           return true;
                         });
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  // Rounding to the small types is the kernels'.
  auto isSmall = [](Type type) {
    return type.getIntOrFloatBitWidth() < 16 && !type.isInteger(1) &&
           !type.isInteger(8);
  };
  if (isSmall(getTo()))
    return {};
  return foldElementwise(*this, adaptor.getOperand(),
                         [](auto &readers, int64_t i, ConstantTensor &result) {
                           bool fromFloat = readers[0].tensor.isFloat();
                           Type to = result.type.getElementType();
                           if (result.isFloat()) {
                             double value = fromFloat
                                                ? readers[0].real(i)
                                                : double(readers[0].integer(i));
                             result.floats[i] = roundTo(to, value);
                             return true;
                           }
                           if (to.isInteger(1)) {
                             result.ints[i] = fromFloat
                                                  ? readers[0].real(i) != 0
                                                  : readers[0].integer(i) != 0;
                             return true;
                           }
                           if (!fromFloat) {
                             result.ints[i] = readers[0].integer(i);
                             return true;
                           }
                           // Out of range is undefined on devices: leave it to
                           // them.
                           double value = std::trunc(readers[0].real(i));
                           if (!(std::fabs(value) < 9.2e18))
                             return false;
                           result.ints[i] = int64_t(value);
                           return true;
                         });
}

//===----------------------------------------------------------------------===//
// Binary
//===----------------------------------------------------------------------===//

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(), [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b) { return wrap(uint64_t(a) + uint64_t(b)); });
}
OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(), [](double a, double b) { return a - b; },
      [](int64_t a, int64_t b) { return wrap(uint64_t(a) - uint64_t(b)); });
}
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1))
    if (OpFoldResult same = ifSameType(*this, getLhs()))
      return same;
  if (isSplatOf(adaptor.getLhs(), 1))
    if (OpFoldResult same = ifSameType(*this, getRhs()))
      return same;
  return foldBinary(
      *this, adaptor.getOperands(), [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b) { return wrap(uint64_t(a) * uint64_t(b)); });
}
OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1))
    if (OpFoldResult same = ifSameType(*this, getLhs()))
      return same;
  return foldBinary(
      *this, adaptor.getOperands(), [](double a, double b) { return a / b; },
      [](int64_t a, int64_t b) -> std::optional<int64_t> {
        if (b == 0 || b == -1)
          return b ? std::optional<int64_t>(wrap(-uint64_t(a))) : std::nullopt;
        return a / b;
      });
}
OpFoldResult ModOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(),
      [](double a, double b) {
        double r = std::fmod(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      },
      [](int64_t a, int64_t b) -> std::optional<int64_t> {
        if (b == 0)
          return std::nullopt;
        if (b == -1)
          return 0;
        int64_t r = a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      });
}
OpFoldResult RemOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(),
      [](double a, double b) { return std::fmod(a, b); },
      [](int64_t a, int64_t b) -> std::optional<int64_t> {
        if (b == 0)
          return std::nullopt;
        return b == -1 ? 0 : a % b;
      });
}
// Negative numbers, and shifts by more than there are bits, are the device's.
OpFoldResult ShiftLeftOp::fold(FoldAdaptor adaptor) {
  return foldBinary(*this, adaptor.getOperands(), nullptr,
                    [](int64_t a, int64_t b) -> std::optional<int64_t> {
                      if (a < 0 || b < 0 || b > 63)
                        return std::nullopt;
                      return wrap(uint64_t(a) << b);
                    });
}
OpFoldResult ShiftRightOp::fold(FoldAdaptor adaptor) {
  return foldBinary(*this, adaptor.getOperands(), nullptr,
                    [](int64_t a, int64_t b) -> std::optional<int64_t> {
                      if (a < 0 || b < 0 || b > 63)
                        return std::nullopt;
                      return a >> b;
                    });
}

OpFoldResult PowOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(),
      [](double a, double b) { return std::pow(a, b); },
      [](int64_t a, int64_t b) -> std::optional<int64_t> {
        if (b < 0 || b > 62)
          return std::nullopt;
        uint64_t power = 1;
        for (int64_t i = 0; i < b; ++i)
          power *= uint64_t(a);
        return wrap(power);
      });
}
OpFoldResult MaxOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(),
      [](double a, double b) {
        return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
      },
      [](int64_t a, int64_t b) { return std::max(a, b); });
}
OpFoldResult MinOp::fold(FoldAdaptor adaptor) {
  return foldBinary(
      *this, adaptor.getOperands(),
      [](double a, double b) {
        return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
      },
      [](int64_t a, int64_t b) { return std::min(a, b); });
}

//===----------------------------------------------------------------------===//
// Booleans and choice
//===----------------------------------------------------------------------===//

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getLhs(), 1))
    if (OpFoldResult same = ifSameType(*this, getRhs()))
      return same;
  if (isSplatOf(adaptor.getRhs(), 1))
    if (OpFoldResult same = ifSameType(*this, getLhs()))
      return same;
  return foldBinary(*this, adaptor.getOperands(), nullptr,
                    [](int64_t a, int64_t b) { return a & b; });
}
OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getLhs(), 0))
    if (OpFoldResult same = ifSameType(*this, getRhs()))
      return same;
  if (isSplatOf(adaptor.getRhs(), 0))
    if (OpFoldResult same = ifSameType(*this, getLhs()))
      return same;
  return foldBinary(*this, adaptor.getOperands(), nullptr,
                    [](int64_t a, int64_t b) { return a | b; });
}
OpFoldResult XorOp::fold(FoldAdaptor adaptor) {
  return foldBinary(*this, adaptor.getOperands(), nullptr,
                    [](int64_t a, int64_t b) { return a ^ b; });
}

template <typename T>
static bool compare(ComparePredicate predicate, T a, T b) {
  switch (predicate) {
  case ComparePredicate::eq:
    return a == b;
  case ComparePredicate::ne:
    return a != b;
  case ComparePredicate::lt:
    return a < b;
  case ComparePredicate::le:
    return a <= b;
  case ComparePredicate::gt:
    return a > b;
  case ComparePredicate::ge:
    return a >= b;
  }
  llvm_unreachable("unknown predicate");
}

OpFoldResult CompareOp::fold(FoldAdaptor adaptor) {
  ComparePredicate predicate = getPredicate();
  return foldElementwise(*this, {adaptor.getLhs(), adaptor.getRhs()},
                         [&](auto &readers, int64_t i, ConstantTensor &result) {
                           result.ints[i] =
                               readers[0].tensor.isFloat()
                                   ? compare(predicate, readers[0].real(i),
                                             readers[1].real(i))
                                   : compare(predicate, readers[0].integer(i),
                                             readers[1].integer(i));
                           return true;
                         });
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getCondition(), 1))
    if (OpFoldResult same = ifSameType(*this, getLhs()))
      return same;
  if (isSplatOf(adaptor.getCondition(), 0))
    if (OpFoldResult same = ifSameType(*this, getRhs()))
      return same;
  return foldElementwise(*this, adaptor.getOperands(),
                         [](auto &readers, int64_t i, ConstantTensor &result) {
                           const Reader &chosen =
                               readers[0].integer(i) ? readers[1] : readers[2];
                           result.copyElement(i, chosen.tensor, chosen.at(i));
                           return true;
                         });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// What of the operand falls on which element of the result, in the operand's
/// order, until `reduce` says no: (target, element, whether it is the target's
/// first). Whether all did, and every target has one.
static bool
forEachReduced(ReduceOp op, const ConstantTensor &operand,
               llvm::function_ref<bool(int64_t, size_t, bool)> reduce) {
  ArrayRef<int64_t> shape = operand.type.getShape();
  llvm::SmallVector<int64_t> kept(shape);
  for (int64_t dim : op.getDims())
    kept[dim] = 1;
  std::vector<int64_t> targets = broadcastIndices(kept, shape);
  std::vector<bool> seen(
      cast<RankedTensorType>(op.getResult().getType()).getNumElements());
  for (auto [i, target] : llvm::enumerate(targets)) {
    if (!reduce(target, operand.storedElements() == 1 ? 0 : i, !seen[target]))
      return false;
    seen[target] = true;
  }
  return !targets.empty();
}

/// Sums of floats depend on an order that only the device knows, unless all of
/// them are whole numbers that the type holds: extents on their way through
/// floats.
static Attribute foldWholeNumbers(ReduceOp op, const ConstantTensor &operand) {
  Type element = operand.type.getElementType();
  if (!element.isF32() && !element.isF64())
    return {};
  double exact = element.isF32() ? 0x1p24 : 0x1p53;
  auto isWhole = [&](double value) {
    return std::trunc(value) == value && std::fabs(value) <= exact;
  };
  ConstantTensor result =
      ConstantTensor::create(cast<RankedTensorType>(op.getResult().getType()));
  bool areWhole =
      forEachReduced(op, operand, [&](int64_t target, size_t i, bool isFirst) {
        double &into = result.floats[target];
        double value = operand.floats[i];
        if (isFirst) {
          into = value;
        } else {
          switch (op.getKind()) {
          case ReduceKind::sum:
          case ReduceKind::mean:
            into += value;
            break;
          case ReduceKind::prod:
            into *= value;
            break;
          case ReduceKind::max:
            into = std::max(into, value);
            break;
          case ReduceKind::min:
            into = std::min(into, value);
            break;
          }
        }
        return isWhole(value) && isWhole(into);
      });
  if (!areWhole)
    return {};
  if (op.getKind() == ReduceKind::mean)
    for (double &value : result.floats)
      value = roundTo(element, value / (double(operand.type.getNumElements()) /
                                        double(result.floats.size())));
  return result.toAttribute();
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  if (getDims().empty())
    return ifSameType(*this, getOperand());
  RankedTensorType type = foldableType(*this);
  auto operand = ConstantTensor::get(adaptor.getOperand());
  if (!type || !operand)
    return {};
  if (operand->isFloat())
    return foldWholeNumbers(*this, *operand);
  if (getKind() == ReduceKind::mean)
    return {};
  ConstantTensor result = ConstantTensor::create(type);
  bool isAny = forEachReduced(*this, *operand,
                              [&](int64_t target, size_t i, bool isFirst) {
                                int64_t &into = result.ints[target];
                                int64_t value = operand->ints[i];
                                if (isFirst) {
                                  into = value;
                                  return true;
                                }
                                switch (getKind()) {
                                case ReduceKind::sum:
                                  into = wrap(uint64_t(into) + uint64_t(value));
                                  break;
                                case ReduceKind::prod:
                                  into = wrap(uint64_t(into) * uint64_t(value));
                                  break;
                                case ReduceKind::max:
                                  into = std::max(into, value);
                                  break;
                                case ReduceKind::min:
                                  into = std::min(into, value);
                                  break;
                                case ReduceKind::mean:
                                  llvm_unreachable("refused above");
                                }
                                return true;
                              });
  return isAny ? result.toAttribute() : Attribute();
}
