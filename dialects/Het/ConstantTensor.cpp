//===- ConstantTensor.cpp - a small tensor to compute with ----------------===//
//
// Conversion between DenseElementsAttr and plain vectors.
//
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"

#include "mlir/IR/BuiltinTypeInterfaces.h"

using namespace mlir;
using namespace autohet::het;

bool ConstantTensor::isFloat() const {
  return isa<FloatType>(type.getElementType());
}

bool ConstantTensor::isSplat() const {
  return storedElements() == 1 && type.getNumElements() != 1;
}

std::optional<ConstantTensor> ConstantTensor::get(Attribute attribute) {
  auto dense = dyn_cast_if_present<DenseElementsAttr>(attribute);
  if (!dense)
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(dense.getType());
  if (!isFoldable(type))
    return std::nullopt;
  ConstantTensor result{type, {}, {}};
  Type element = type.getElementType();
  if (element.isF32()) {
    // A splat's iterator repeats its one value; one copy is enough here.
    if (dense.isSplat())
      result.floats.push_back(dense.getSplatValue<float>());
    else
      for (float value : dense.getValues<float>())
        result.floats.push_back(value);
    return result;
  }
  if (isa<FloatType>(element)) {
    auto convert = [](APFloat value) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      return value.convertToDouble();
    };
    if (dense.isSplat())
      result.floats.push_back(convert(dense.getSplatValue<APFloat>()));
    else
      for (const APFloat &value : dense.getValues<APFloat>())
        result.floats.push_back(convert(value));
    return result;
  }
  auto integer = dyn_cast<IntegerType>(element);
  // The upper half of 64 unsigned bits would be negative numbers here.
  if (!integer || integer.getWidth() > 64 ||
      (integer.isUnsigned() && integer.getWidth() == 64))
    return std::nullopt;
  // i1 is 0 or 1, not -1.
  bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
  auto convert = [&](const APInt &value) {
    return isUnsigned ? int64_t(value.getZExtValue()) : value.getSExtValue();
  };
  if (dense.isSplat())
    result.ints.push_back(convert(dense.getSplatValue<APInt>()));
  else if (integer.getWidth() == 64)
    for (int64_t value : dense.getValues<int64_t>())
      result.ints.push_back(value);
  else
    for (const APInt &value : dense.getValues<APInt>())
      result.ints.push_back(convert(value));
  return result;
}

ConstantTensor ConstantTensor::create(RankedTensorType type, bool splat) {
  ConstantTensor result{type, {}, {}};
  size_t size = splat ? 1 : type.getNumElements();
  if (result.isFloat())
    result.floats.resize(size);
  else
    result.ints.resize(size);
  return result;
}

void ConstantTensor::copyElement(int64_t to, const ConstantTensor &source,
                                 int64_t from) {
  if (source.storedElements() == 1)
    from = 0;
  if (isFloat())
    floats[to] = source.floats[from];
  else
    ints[to] = source.ints[from];
}

/// Bitwise, so that -0 is not 0 and NaN is itself.
static bool sameBits(double a, double b) {
  return llvm::bit_cast<uint64_t>(a) == llvm::bit_cast<uint64_t>(b);
}

DenseElementsAttr ConstantTensor::toAttribute() const {
  Type element = type.getElementType();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    bool splat = !floats.empty() && llvm::all_of(floats, [&](double value) {
      return sameBits(value, floats[0]);
    });
    llvm::ArrayRef<double> values(floats);
    if (splat)
      values = values.take_front();
    if (element.isF32()) {
      std::vector<float> rounded(values.begin(), values.end());
      return DenseElementsAttr::get(type, llvm::ArrayRef<float>(rounded));
    }
    std::vector<APFloat> rounded;
    for (double value : values) {
      APFloat number(value);
      bool losesInfo;
      number.convert(floatType.getFloatSemantics(),
                     APFloat::rmNearestTiesToEven, &losesInfo);
      rounded.push_back(number);
    }
    return DenseElementsAttr::get(type, rounded);
  }
  bool splat = !ints.empty() && llvm::all_equal(ints);
  llvm::ArrayRef<int64_t> values(ints);
  if (splat)
    values = values.take_front();
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 64)
    return DenseElementsAttr::get(type, values);
  std::vector<APInt> truncated;
  truncated.reserve(values.size());
  for (int64_t value : values)
    truncated.push_back(APInt(width, uint64_t(value), /*isSigned=*/false,
                              /*implicitTrunc=*/true));
  return DenseElementsAttr::get(type, truncated);
}

llvm::SmallVector<int64_t>
autohet::het::rowMajorStrides(ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::vector<int64_t> autohet::het::broadcastIndices(ArrayRef<int64_t> operand,
                                                    ArrayRef<int64_t> result) {
  llvm::SmallVector<int64_t> operandStrides = rowMajorStrides(operand);
  size_t offset = result.size() - operand.size();
  // Strides of the operand, seen from the result: 0 where it is repeated.
  llvm::SmallVector<int64_t> strides(result.size(), 0);
  for (size_t i = 0; i < operand.size(); ++i)
    strides[offset + i] = operand[i] == 1 ? 0 : operandStrides[i];

  int64_t count = 1;
  for (int64_t extent : result)
    count *= extent;
  std::vector<int64_t> indices(count);
  llvm::SmallVector<int64_t> position(result.size(), 0);
  int64_t current = 0;
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = current;
    for (size_t d = result.size(); d-- > 0;) {
      current += strides[d];
      if (++position[d] < result[d])
        break;
      current -= strides[d] * result[d];
      position[d] = 0;
    }
  }
  return indices;
}
