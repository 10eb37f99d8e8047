//===- OnnxMath.h - formulas over whole tensors -----------------*- C++ -*-===//
//
// Many nodes are a formula of others. Handlers write it down here as one would
// on paper; every step is folded as it is built.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_ONNXMATH_H
#define AUTOHET_PASSES_MODEL_ONNXMATH_H

#include "OnnxToHet.h"

namespace autohet {

/// A value with the arithmetic of its node's builder.
class OnnxMath {
public:
  using Value = mlir::Value;
  explicit OnnxMath(OnnxNode &node) : node(node) {}

  Value add(Value a, Value b) const { return node.create<het::AddOp>(a, b); }
  Value sub(Value a, Value b) const { return node.create<het::SubOp>(a, b); }
  Value mul(Value a, Value b) const { return node.create<het::MulOp>(a, b); }
  Value div(Value a, Value b) const { return node.create<het::DivOp>(a, b); }
  Value max(Value a, Value b) const { return node.create<het::MaxOp>(a, b); }
  Value min(Value a, Value b) const { return node.create<het::MinOp>(a, b); }
  Value add(Value a, double b) const { return add(a, like(a, b)); }
  Value sub(double a, Value b) const { return sub(like(b, a), b); }
  Value mul(Value a, double b) const { return b == 1 ? a : mul(a, like(a, b)); }
  Value div(Value a, double b) const { return div(a, like(a, b)); }
  Value max(Value a, double b) const { return max(a, like(a, b)); }
  Value min(Value a, double b) const { return min(a, like(a, b)); }

  Value neg(Value a) const { return node.create<het::NegOp>(a); }
  Value abs(Value a) const { return node.create<het::AbsOp>(a); }
  Value exp(Value a) const { return node.create<het::ExpOp>(a); }
  Value log(Value a) const { return node.create<het::LogOp>(a); }
  Value sqrt(Value a) const { return node.create<het::SqrtOp>(a); }
  Value tanh(Value a) const { return node.create<het::TanhOp>(a); }
  Value sigmoid(Value a) const { return node.create<het::SigmoidOp>(a); }

  using Predicate = het::ComparePredicate;
  Value compare(Predicate predicate, Value a, Value b) const {
    return node.create<het::CompareOp>(predicate, a, b);
  }
  Value compare(Predicate predicate, Value a, double b) const {
    return compare(predicate, a, like(a, b));
  }
  Value both(Value a, Value b) const { return node.create<het::AndOp>(a, b); }
  Value select(Value condition, Value a, Value b) const {
    return node.create<het::SelectOp>(condition, a, b);
  }
  Value cast(Value a, mlir::Type element) const {
    return node.create<het::CastOp>(a, element);
  }
  Value castLike(Value a, Value like) const {
    return cast(a, tensorType(like).getElementType());
  }

  Value reduce(het::ReduceKind kind, Value a, llvm::ArrayRef<int64_t> dims,
               bool keep) const {
    return dims.empty() ? a : node.create<het::ReduceOp>(kind, a, dims, keep);
  }
  Value sum(Value a, llvm::ArrayRef<int64_t> dims, bool keep = true) const {
    return reduce(het::ReduceKind::sum, a, dims, keep);
  }
  Value mean(Value a, llvm::ArrayRef<int64_t> dims, bool keep = true) const {
    return reduce(het::ReduceKind::mean, a, dims, keep);
  }
  Value largest(Value a, llvm::ArrayRef<int64_t> dims, bool keep = true) const {
    return reduce(het::ReduceKind::max, a, dims, keep);
  }

  Value logSoftmax(Value a, int64_t dim) const {
    Value shifted = sub(a, largest(a, dim));
    return sub(shifted, log(sum(exp(shifted), dim)));
  }

  /// 0, 1, .. count - 1, shaped to lie along dim `dim` of a tensor of `rank`.
  Value iota(int64_t count, mlir::Type element, int64_t dim = 0,
             int64_t rank = 1) const {
    Value line =
        node.create<het::IotaOp>(int64_t(0), int64_t(1), count, element);
    llvm::SmallVector<int64_t> shape(rank, 1);
    shape[dim] = count;
    return node.reshape(line, shape);
  }
  Value like(Value a, double number) const {
    return node.scalarLike(a, number);
  }
  Value slice(Value a, int64_t dim, int64_t offset, int64_t size,
              int64_t stride = 1) const {
    llvm::SmallVector<int64_t> offsets(tensorType(a).getRank(), 0),
        strides(tensorType(a).getRank(), 1), sizes(tensorType(a).getShape());
    offsets[dim] = offset, sizes[dim] = size, strides[dim] = stride;
    return node.create<het::SliceOp>(a, llvm::ArrayRef<int64_t>(offsets),
                                     llvm::ArrayRef<int64_t>(sizes),
                                     llvm::ArrayRef<int64_t>(strides));
  }
  Value concat(llvm::ArrayRef<Value> parts, int64_t dim) const {
    return parts.size() == 1
               ? parts.front()
               : node.create<het::ConcatOp>(mlir::ValueRange(parts), dim);
  }
  /// A tensor all of whose elements are `number`.
  Value splat(llvm::ArrayRef<int64_t> shape, mlir::Type element,
              double number) const {
    return het::createSplat(node.builder(), node.loc(),
                            mlir::RankedTensorType::get(shape, element),
                            number);
  }

private:
  OnnxNode &node;
};

} // namespace autohet

#endif
