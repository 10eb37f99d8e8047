//===- HetOrderFolds.cpp - order and places of constants ------------------===//
//
// Running sums, largest elements and scattered updates of what was computed
// from shapes. Sums of floats are left to the device, whose order they depend
// on, and so is what a NaN makes of an order.
//
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "autohet/Dialect/Het/Het.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace autohet::het;

namespace {

/// A constant in which each element can be asked for, splat or not.
struct Elements {
  ConstantTensor tensor;

  /// Nothing where the attribute is no constant, or has a NaN.
  static std::optional<Elements> get(Attribute attribute) {
    auto tensor = ConstantTensor::get(attribute);
    if (!tensor || llvm::any_of(tensor->floats,
                                [](double value) { return std::isnan(value); }))
      return std::nullopt;
    return Elements{std::move(*tensor)};
  }

  int64_t at(int64_t i) const { return tensor.storedElements() == 1 ? 0 : i; }
  int64_t integer(int64_t i) const { return tensor.ints[at(i)]; }
  bool isLess(int64_t a, int64_t b) const {
    return tensor.isFloat() ? tensor.floats[at(a)] < tensor.floats[at(b)]
                            : tensor.ints[at(a)] < tensor.ints[at(b)];
  }
};

/// The elements of a tensor as lines along one dim: element i of line l is
/// element `first(l) + i * step`.
struct Lines {
  int64_t count = 1, extent, step = 1;

  Lines(ArrayRef<int64_t> shape, int64_t dim) : extent(shape[dim]) {
    for (auto [d, size] : llvm::enumerate(shape)) {
      if (int64_t(d) != dim)
        count *= size;
      if (int64_t(d) > dim)
        step *= size;
    }
  }
  int64_t first(int64_t line) const {
    return line / step * extent * step + line % step;
  }
};

bool isSmall(Value result) {
  return isFoldable(cast<RankedTensorType>(result.getType()));
}

} // namespace

OpFoldResult ArgReduceOp::fold(FoldAdaptor adaptor) {
  auto operand = Elements::get(adaptor.getOperand());
  if (!operand || !isSmall(getResult()))
    return {};
  auto result =
      ConstantTensor::create(cast<RankedTensorType>(getResult().getType()));
  Lines lines(operand->tensor.type.getShape(), getDim());
  bool largest = getKind() == ReduceKind::max;
  for (int64_t line = 0; line < lines.count; ++line) {
    int64_t best = 0, first = lines.first(line);
    for (int64_t i = 1; i < lines.extent; ++i) {
      int64_t now = first + i * lines.step, before = first + best * lines.step;
      bool better =
          largest ? operand->isLess(before, now) : operand->isLess(now, before);
      bool worse =
          largest ? operand->isLess(now, before) : operand->isLess(before, now);
      if (better || (getLast() && !worse))
        best = i;
    }
    result.ints[line] = best;
  }
  return result.toAttribute();
}

OpFoldResult CumulativeSumOp::fold(FoldAdaptor adaptor) {
  auto operand = Elements::get(adaptor.getOperand());
  if (!operand || operand->tensor.isFloat() || !isSmall(getResult()))
    return {};
  ConstantTensor result = ConstantTensor::create(operand->tensor.type);
  Lines lines(operand->tensor.type.getShape(), getDim());
  for (int64_t line = 0; line < lines.count; ++line) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < lines.extent; ++i) {
      int64_t place = getReverse() ? lines.extent - 1 - i : i;
      int64_t at = lines.first(line) + place * lines.step;
      uint64_t before = sum;
      sum += uint64_t(operand->integer(at));
      result.ints[at] = int64_t(getExclusive() ? before : sum);
    }
  }
  return result.toAttribute();
}

LogicalResult TopKOp::fold(FoldAdaptor adaptor,
                           SmallVectorImpl<OpFoldResult> &results) {
  auto operand = Elements::get(adaptor.getOperand());
  if (!operand || !isSmall(getOperand()))
    return failure();
  auto values =
      ConstantTensor::create(cast<RankedTensorType>(getValues().getType()));
  auto places =
      ConstantTensor::create(cast<RankedTensorType>(getIndices().getType()));
  ArrayRef<int64_t> shape = operand->tensor.type.getShape();
  Lines lines(shape, int64_t(shape.size()) - 1);
  int64_t k = getK();
  std::vector<int64_t> order(lines.extent);
  for (int64_t line = 0; line < lines.count; ++line) {
    int64_t first = lines.first(line);
    std::iota(order.begin(), order.end(), int64_t(0));
    // Of equal elements the first comes first: places decide then.
    llvm::sort(order, [&](int64_t a, int64_t b) {
      int64_t x = first + a, y = first + b;
      if (operand->isLess(x, y) || operand->isLess(y, x))
        return getLargest() ? operand->isLess(y, x) : operand->isLess(x, y);
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      values.copyElement(line * k + i, operand->tensor, first + order[i]);
      places.ints[line * k + i] = order[i];
    }
  }
  results.assign({values.toAttribute(), places.toAttribute()});
  return success();
}

OpFoldResult ScatterNdOp::fold(FoldAdaptor adaptor) {
  auto operand = Elements::get(adaptor.getOperand());
  auto indices = Elements::get(adaptor.getIndices());
  auto updates = Elements::get(adaptor.getUpdates());
  if (!operand || !indices || !updates ||
      (operand->tensor.isFloat() && getKind() != ScatterKind::replace))
    return {};
  RankedTensorType type = operand->tensor.type;
  ConstantTensor result = ConstantTensor::create(type);
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i)
    result.copyElement(i, operand->tensor, i);
  int64_t tuple = indices->tensor.type.getShape().back(), slice = 1;
  for (int64_t extent : type.getShape().drop_front(tuple))
    slice *= extent;
  llvm::SmallVector<int64_t> strides = rowMajorStrides(type.getShape());
  int64_t tuples = 1;
  for (int64_t extent : indices->tensor.type.getShape().drop_back())
    tuples *= extent;
  for (int64_t i = 0; i < tuples; ++i) {
    int64_t to = 0;
    for (int64_t t = 0; t < tuple; ++t) {
      int64_t index = indices->integer(i * tuple + t);
      int64_t extent = type.getDimSize(t);
      index += index < 0 ? extent : 0;
      if (index < 0 || index >= extent)
        return {}; // the run-time error names it
      to += index * strides[t];
    }
    for (int64_t j = 0; j < slice; ++j) {
      int64_t from = i * slice + j;
      if (getKind() == ScatterKind::replace) {
        result.copyElement(to + j, updates->tensor, from);
        continue;
      }
      int64_t &into = result.ints[to + j];
      int64_t update = updates->integer(from);
      switch (getKind()) {
      case ScatterKind::add:
        into = int64_t(uint64_t(into) + uint64_t(update));
        break;
      case ScatterKind::mul:
        into = int64_t(uint64_t(into) * uint64_t(update));
        break;
      case ScatterKind::max:
        into = std::max(into, update);
        break;
      case ScatterKind::min:
        into = std::min(into, update);
        break;
      case ScatterKind::replace:
        llvm_unreachable("copied above");
      }
    }
  }
  return result.toAttribute();
}
