//===- HetShapeFolds.cpp - folds of ops that move data --------------------===//
//
// Two kinds: constants are moved at compile time, and chains of views become
// one (or none), so that GPT-2's flattening before and after each product
// vanishes.
//
//===----------------------------------------------------------------------===//

#include "ConstantTensor.h"
#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet::het;

/// The operand as a constant, where operand and result are small enough.
static std::optional<ConstantTensor> operandToMove(Attribute operand,
                                                   RankedTensorType result) {
  if (!isFoldable(result))
    return std::nullopt;
  return ConstantTensor::get(operand);
}

/// A result whose element i is element `source(position of i)` of `operand`.
template <typename Source>
static Attribute moveElements(const ConstantTensor &operand,
                              RankedTensorType type, Source source) {
  if (operand.storedElements() == 1 && type.getNumElements() > 0) {
    ConstantTensor splat = operand;
    splat.type = type;
    return splat.toAttribute();
  }
  ConstantTensor result = ConstantTensor::create(type);
  ArrayRef<int64_t> shape = type.getShape();
  llvm::SmallVector<int64_t> position(shape.size(), 0);
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    int64_t from = source(ArrayRef<int64_t>(position));
    if (from < 0)
      return {};
    result.copyElement(i, operand, from);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++position[d] < shape[d])
        break;
      position[d] = 0;
    }
  }
  return result.toAttribute();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(adaptor.getOperand()))
    return dense.reshape(cast<ShapedType>(getResult().getType()));
  // A reshape of a reshape: the one in between does not matter.
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    if (getOperand().getType() == getResult().getType())
      return getOperand();
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  if (llvm::all_of(llvm::enumerate(permutation), [](auto entry) {
        return entry.value() == int64_t(entry.index());
      }))
    return getOperand();
  auto type = cast<RankedTensorType>(getResult().getType());
  if (auto operand = operandToMove(adaptor.getOperand(), type)) {
    llvm::SmallVector<int64_t> strides =
        rowMajorStrides(operand->type.getShape());
    return moveElements(*operand, type, [&](ArrayRef<int64_t> position) {
      int64_t from = 0;
      for (size_t d = 0; d < position.size(); ++d)
        from += position[d] * strides[permutation[d]];
      return from;
    });
  }
  if (auto inner = getOperand().getDefiningOp<TransposeOp>()) {
    llvm::SmallVector<int64_t> composed;
    for (int64_t dim : permutation)
      composed.push_back(inner.getPermutation()[dim]);
    setPermutation(composed);
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getResult().getType())
    return getOperand();
  auto type = cast<RankedTensorType>(getResult().getType());
  auto operand = operandToMove(adaptor.getOperand(), type);
  if (!operand || (operand->storedElements() != 1 &&
                   type.getNumElements() > kBroadcastFoldLimit))
    return {};
  std::vector<int64_t> indices;
  if (operand->storedElements() != 1)
    indices = broadcastIndices(operand->type.getShape(), type.getShape());
  size_t next = 0;
  return moveElements(*operand, type,
                      [&](ArrayRef<int64_t>) { return indices[next++]; });
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  // A full slice that is not reversed.
  if (getOperand().getType() == getResult().getType() &&
      llvm::all_of(getOffsets(), [](int64_t offset) { return offset == 0; }) &&
      llvm::all_of(getStrides(), [](int64_t stride) { return stride == 1; }))
    return getOperand();
  auto type = cast<RankedTensorType>(getResult().getType());
  auto operand = operandToMove(adaptor.getOperand(), type);
  if (!operand)
    return {};
  llvm::SmallVector<int64_t> strides =
      rowMajorStrides(operand->type.getShape());
  return moveElements(*operand, type, [&](ArrayRef<int64_t> position) {
    int64_t from = 0;
    for (size_t d = 0; d < position.size(); ++d)
      from += (getOffsets()[d] + position[d] * getStrides()[d]) * strides[d];
    return from;
  });
}

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getNumOperands() == 1)
    return getOperand(0);
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!isFoldable(type))
    return {};
  llvm::SmallVector<ConstantTensor, 4> parts;
  for (Attribute attribute : adaptor.getOperands()) {
    auto part = ConstantTensor::get(attribute);
    if (!part)
      return {};
    parts.push_back(std::move(*part));
  }
  // Outer index by outer index, each part contributes one run of elements.
  int64_t dim = getDim() < 0 ? getDim() + type.getRank() : getDim();
  int64_t outer = 1;
  for (int64_t extent : type.getShape().take_front(dim))
    outer *= extent;
  ConstantTensor result = ConstantTensor::create(type);
  int64_t to = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (const ConstantTensor &part : parts) {
      int64_t run = part.type.getNumElements() / outer;
      for (int64_t i = 0; i < run; ++i)
        result.copyElement(to++, part, o * run + i);
    }
  return result.toAttribute();
}

OpFoldResult GatherOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto operand = operandToMove(adaptor.getOperand(), type);
  auto indices = ConstantTensor::get(adaptor.getIndices());
  if (!operand || !indices)
    return {};
  int64_t dim = getDim();
  int64_t extent = operand->type.getDimSize(dim);
  int64_t indexRank = indices->type.getRank();
  llvm::SmallVector<int64_t> strides =
      rowMajorStrides(operand->type.getShape());
  llvm::SmallVector<int64_t> indexStrides =
      rowMajorStrides(indices->type.getShape());
  return moveElements(
      *operand, type, [&](ArrayRef<int64_t> position) -> int64_t {
        int64_t at = 0;
        for (int64_t d = 0; d < indexRank; ++d)
          at += position[dim + d] * indexStrides[d];
        int64_t index = indices->ints[indices->storedElements() == 1 ? 0 : at];
        if (index < 0)
          index += extent;
        if (index < 0 || index >= extent)
          return -1; // the run-time error names it
        int64_t from = index * strides[dim];
        for (int64_t d = 0; d < dim; ++d)
          from += position[d] * strides[d];
        for (int64_t d = dim + 1; d < operand->type.getRank(); ++d)
          from += position[d + indexRank - 1] * strides[d];
        return from;
      });
}

OpFoldResult GatherNdOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto operand = operandToMove(adaptor.getOperand(), type);
  auto indices = ConstantTensor::get(adaptor.getIndices());
  if (!operand || !indices)
    return {};
  ArrayRef<int64_t> shape = operand->type.getShape();
  int64_t batchDims = getBatchDims();
  int64_t tupleRank = indices->type.getRank() - 1;
  int64_t tuple = indices->type.getShape().back();
  llvm::SmallVector<int64_t> strides = rowMajorStrides(shape);
  llvm::SmallVector<int64_t> indexStrides =
      rowMajorStrides(indices->type.getShape());
  return moveElements(
      *operand, type, [&](ArrayRef<int64_t> position) -> int64_t {
        int64_t at = 0, from = 0;
        for (int64_t d = 0; d < tupleRank; ++d)
          at += position[d] * indexStrides[d];
        for (int64_t d = 0; d < batchDims; ++d)
          from += position[d] * strides[d];
        for (int64_t t = 0; t < tuple; ++t) {
          int64_t index =
              indices->ints[indices->storedElements() == 1 ? 0 : at + t];
          int64_t extent = shape[batchDims + t];
          if (index < 0)
            index += extent;
          if (index < 0 || index >= extent)
            return -1;
          from += index * strides[batchDims + t];
        }
        for (int64_t d = batchDims + tuple; d < operand->type.getRank(); ++d)
          from += position[tupleRank + d - batchDims - tuple] * strides[d];
        return from;
      });
}

OpFoldResult IotaOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!isFoldable(type))
    return {};
  ConstantTensor result = ConstantTensor::create(type);
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    auto value = int64_t(getStart() + uint64_t(i) * getStep()); // wraps
    if (result.isFloat())
      result.floats[i] = double(value);
    else
      result.ints[i] = value;
  }
  return result.toAttribute();
}
