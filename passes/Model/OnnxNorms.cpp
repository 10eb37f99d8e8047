//===- OnnxNorms.cpp - normalisations, softmax and dropout ----------------===//

#include "OnnxToHet.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

namespace {
/// het's norms act on the last dim; ONNX's on all dims from `axis` on.
struct NormShape {
  Value operand;
  Value scale;
  int64_t size;
  /// The shape of mean and rstd in ONNX: 1 where a dim is reduced.
  SmallVector<int64_t> statistics;
};
} // namespace

/// A scale or bias as [size]; ONNX lets it be of any shape that broadcasts, but
/// exporters write that of the normalised dims.
static FailureOr<Value> normVector(OnnxNode &node, unsigned index,
                                   int64_t axis) {
  if (failed(node.needFloats(index)))
    return failure();
  if (node.shape(index) != node.shape(0).drop_front(axis))
    return node.error() << "operand " << index << " has shape ["
                        << node.shape(index) << "], wanted ["
                        << node.shape(0).drop_front(axis)
                        << "], the normalised dims";
  return node.reshape(node.operand(index), {product(node.shape(index))});
}

static FailureOr<NormShape> normShape(OnnxNode &node) {
  if (failed(node.needFloats(0)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", -1), node.rank(0));
  if (failed(axis))
    return failure();
  auto scale = normVector(node, 1, *axis);
  if (failed(scale))
    return failure();
  NormShape result;
  result.scale = *scale;
  result.size = product(node.shape(0).drop_front(*axis));
  SmallVector<int64_t> flat(node.shape(0).take_front(*axis));
  result.statistics = flat;
  result.statistics.append(node.rank(0) - *axis, 1);
  flat.push_back(result.size);
  result.operand = node.reshape(node.operand(0), flat);
  return result;
}

static LogicalResult convertLayerNorm(OnnxNode &node, Results &results) {
  auto shape = normShape(node);
  if (failed(shape))
    return failure();
  Value bias;
  if (node.has(2)) {
    auto given = normVector(node, 2, node.rank(0) - node.rank(1));
    if (failed(given))
      return failure();
    bias = *given;
  } else {
    bias = het::createSplat(node.builder(), node.loc(),
                            tensorType(shape->scale), 0);
  }
  auto norm = het::LayerNormOp::create(
      node.builder(), node.loc(), shape->operand, shape->scale, bias,
      APFloat(node.floatField("epsilon", 1e-5)));
  results.push_back(node.reshape(norm.getResult(), node.shape(0)));
  for (Value statistic : {norm.getMean(), norm.getRstd()})
    if (results.size() < node.numResults())
      results.push_back(node.isUsed(results.size())
                            ? node.reshape(statistic, shape->statistics)
                            : Value());
  return success();
}

static LogicalResult convertRmsNorm(OnnxNode &node, Results &results) {
  auto shape = normShape(node);
  if (failed(shape))
    return failure();
  auto norm = het::RmsNormOp::create(node.builder(), node.loc(), shape->operand,
                                     shape->scale,
                                     APFloat(node.floatField("epsilon", 1e-5)));
  results.push_back(node.reshape(norm.getResult(), node.shape(0)));
  return success();
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Applies `compute` over the dims that the node's axis means: one dim, or,
/// before opset 13, all dims from axis 1 on taken together.
static LogicalResult alongAxis(OnnxNode &node, Results &results,
                               llvm::function_ref<Value(Value)> compute) {
  if (failed(node.needFloats(0)))
    return failure();
  bool coerced = node.opset() < 13;
  auto axis =
      node.normalizeAxis(node.intField("axis", coerced ? 1 : -1), node.rank(0));
  if (failed(axis))
    return failure();
  Value value = node.operand(0);
  int64_t last = node.rank(0) - 1;
  if (*axis == last) {
    results.push_back(compute(value));
    return success();
  }
  if (coerced) {
    Value flat =
        node.reshape(value, {product(node.shape(0).take_front(*axis)),
                             product(node.shape(0).drop_front(*axis))});
    results.push_back(node.reshape(compute(flat), node.shape(0)));
    return success();
  }
  auto swapped = llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  std::swap(swapped[*axis], swapped[last]);
  results.push_back(
      node.transpose(compute(node.transpose(value, swapped)), swapped));
  return success();
}

static LogicalResult convertSoftmax(OnnxNode &node, Results &results) {
  return alongAxis(node, results, [&](Value value) {
    return node.create<het::SoftmaxOp>(value, /*zero_empty_rows=*/false);
  });
}

static LogicalResult convertLogSoftmax(OnnxNode &node, Results &results) {
  return alongAxis(node, results, [&](Value value) {
    int64_t lastDim = tensorType(value).getRank() - 1;
    ArrayRef<int64_t> last(lastDim);
    Value max =
        node.create<het::ReduceOp>(het::ReduceKind::max, value, last, true);
    Value shifted = node.create<het::SubOp>(value, max);
    Value sum = node.create<het::ReduceOp>(
        het::ReduceKind::sum, node.create<het::ExpOp>(shifted), last, true);
    return node.create<het::SubOp>(shifted, node.create<het::LogOp>(sum));
  });
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

/// Active only in files exported in training mode. The ids count nodes, so they
/// are the same under every plan.
static LogicalResult convertDropout(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  bool training = false;
  double ratio = 0.5;
  if (node.opset() >= 12) {
    if (node.has(1)) {
      auto given = node.constantFloat(1, "ratio");
      if (failed(given))
        return failure();
      ratio = *given;
    }
    if (node.has(2)) {
      auto mode = node.constantInts(2, "training_mode");
      if (failed(mode))
        return failure();
      training = mode->size() == 1 && mode->front() != 0;
    }
  }
  if (node.isUsed(1))
    return node.error() << "its mask is used, which is not supported";
  Value value = node.operand(0);
  if (training) {
    if (!(ratio >= 0 && ratio < 1))
      return node.error() << "ratio is " << ratio
                          << ", wanted at least 0 and below 1";
    int64_t id = node.state().nextDropoutId++;
    if (ratio > 0)
      value = het::DropoutOp::create(node.builder(), node.loc(), value,
                                     APFloat(ratio), id, DenseI64ArrayAttr(),
                                     DenseI64ArrayAttr());
  }
  results.push_back(value);
  if (node.numResults() > 1)
    results.push_back({});
  return success();
}

void autohet::addNormHandlers(OnnxHandlers &handlers) {
  handlers["LayerNormalization"] = convertLayerNorm;
  handlers["RMSNormalization"] = convertRmsNorm;
  handlers["Softmax"] = convertSoftmax;
  handlers["LogSoftmax"] = convertLogSoftmax;
  handlers["Dropout"] = convertDropout;
}
