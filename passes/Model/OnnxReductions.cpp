//===- OnnxReductions.cpp - dims folded away ------------------------------===//
//
// Axes are a field, from opset 18 (ReduceSum: 13) on an operand; none given
// means all, unless `noop_with_empty_axes` says that it means none.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

#include <limits>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;
using Kind = het::ReduceKind;

namespace {

/// Which dims a node folds away, and whether they stay as 1.
struct Reduction {
  SmallVector<int64_t> dims;
  bool keep;
};

FailureOr<Reduction> reductionOf(OnnxNode &node) {
  if (failed(node.needOperands(1)))
    return failure();
  auto axes = node.fieldOrOperand("axes", 1);
  if (failed(axes))
    return failure();
  Reduction result{{}, bool(node.intField("keepdims", 1))};
  if (*axes && !(*axes)->empty()) {
    auto normal = node.normalizeAxes(**axes, node.rank(0));
    if (failed(normal))
      return failure();
    result.dims = *normal;
  } else if (!node.intField("noop_with_empty_axes", 0)) {
    result.dims = llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  }
  return result;
}

/// What a step before, and one after, make of a reduction.
using Formula = Value (*)(const OnnxMath &, Value, const Reduction &);

template <Formula formula>
LogicalResult convertReduce(OnnxNode &node, Results &results) {
  auto reduction = reductionOf(node);
  if (failed(reduction))
    return failure();
  results.push_back(formula(OnnxMath(node), node.operand(0), *reduction));
  return success();
}

template <Kind kind>
Value plain(const OnnxMath &math, Value x, const Reduction &r) {
  return math.reduce(kind, x, r.dims, r.keep);
}
Value l1(const OnnxMath &math, Value x, const Reduction &r) {
  return math.sum(math.abs(x), r.dims, r.keep);
}
Value sumSquare(const OnnxMath &math, Value x, const Reduction &r) {
  return math.sum(math.mul(x, x), r.dims, r.keep);
}
/// Roots and logarithms of integers are taken in floats.
Value inFloats(const OnnxMath &math, Value x,
               llvm::function_ref<Value(Value)> compute) {
  if (isFloatTensor(x))
    return compute(x);
  Value wide = math.cast(x, Float64Type::get(x.getContext()));
  return math.castLike(compute(wide), x);
}
Value l2(const OnnxMath &math, Value x, const Reduction &r) {
  return inFloats(math, x, [&](Value y) {
    return math.sqrt(math.sum(math.mul(y, y), r.dims, r.keep));
  });
}
Value logSum(const OnnxMath &math, Value x, const Reduction &r) {
  return inFloats(
      math, x, [&](Value y) { return math.log(math.sum(y, r.dims, r.keep)); });
}
Value logSumExp(const OnnxMath &math, Value x, const Reduction &r) {
  return inFloats(math, x, [&](Value y) {
    // Shifted by the largest, unless that is an infinity.
    Value most = math.largest(y, r.dims, /*keep=*/true);
    Value isFinite = math.compare(het::ComparePredicate::lt, math.abs(most),
                                  std::numeric_limits<double>::infinity());
    Value shift = math.select(isFinite, most, math.like(most, 0));
    Value sum = math.sum(math.exp(math.sub(y, shift)), r.dims, /*keep=*/true);
    // Both have their dims folded to 1 now: what is left is a reshape.
    Value result = math.add(math.log(sum), shift);
    return r.keep ? result : math.sum(result, r.dims, /*keep=*/false);
  });
}

} // namespace

void autohet::addReductionHandlers(OnnxHandlers &handlers) {
  handlers["ReduceSum"] = convertReduce<plain<Kind::sum>>;
  handlers["ReduceMean"] = convertReduce<plain<Kind::mean>>;
  handlers["ReduceMax"] = convertReduce<plain<Kind::max>>;
  handlers["ReduceMin"] = convertReduce<plain<Kind::min>>;
  handlers["ReduceProd"] = convertReduce<plain<Kind::prod>>;
  handlers["ReduceL1"] = convertReduce<l1>;
  handlers["ReduceL2"] = convertReduce<l2>;
  handlers["ReduceSumSquare"] = convertReduce<sumSquare>;
  handlers["ReduceLogSum"] = convertReduce<logSum>;
  handlers["ReduceLogSumExp"] = convertReduce<logSumExp>;
}
