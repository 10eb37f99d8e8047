//===- ConstantTensor.h - a small tensor to compute with -------*- C++ -*-===//
//
// Folding evaluates ops exactly as a device would: integers in 64 bits, floats
// rounded to their own type after each operation. Private to the dialect.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_DIALECTS_HET_CONSTANTTENSOR_H
#define AUTOHET_DIALECTS_HET_CONSTANTTENSOR_H

#include "autohet/Support/Extents.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>
#include <vector>

namespace autohet::het {

/// No result with more elements than this is folded. Causal masks of 2,048
/// positions still are, which lets one pattern recognise them all.
inline constexpr int64_t kFoldLimit = int64_t(1) << 22;

/// Whether `type` has so few. An op is folded before it is verified: there may
/// be more elements than an integer counts.
inline bool isFoldable(mlir::RankedTensorType type) {
  std::optional<int64_t> elements =
      type ? countElements(type.getShape()) : std::nullopt;
  return elements && *elements <= kFoldLimit;
}

/// Repeating a tensor is cheaper at run time than in the program: only results
/// this small are folded, unless all elements are equal.
inline constexpr int64_t kBroadcastFoldLimit = int64_t(1) << 16;

/// The elements of a constant, in row-major order. One vector is in use, by
/// element type; it has a single element where the constant is a splat.
struct ConstantTensor {
  mlir::RankedTensorType type;
  std::vector<int64_t> ints;
  std::vector<double> floats;

  /// Nothing where the attribute is null, too large or of an odd type.
  static std::optional<ConstantTensor> get(mlir::Attribute attribute);

  /// An uninitialised tensor (or splat) of `type`.
  static ConstantTensor create(mlir::RankedTensorType type, bool splat = false);

  bool isFloat() const;
  bool isSplat() const;
  size_t storedElements() const {
    return isFloat() ? floats.size() : ints.size();
  }

  /// Copies element `from` of `source`, which has this element type.
  void copyElement(int64_t to, const ConstantTensor &source, int64_t from);

  /// Rounds to the element type; recognises splats.
  mlir::DenseElementsAttr toAttribute() const;
};

/// Where element i of `result` comes from in a tensor of shape `operand` that
/// is broadcast to it.
std::vector<int64_t> broadcastIndices(llvm::ArrayRef<int64_t> operand,
                                      llvm::ArrayRef<int64_t> result);

/// Row-major strides, in elements.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

} // namespace autohet::het

#endif
