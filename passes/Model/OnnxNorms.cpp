//===- OnnxNorms.cpp - normalisations, softmax and dropout ----------------===//

#include "OnnxMath.h"

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
  /// A scale that is no vector of the normalised dims: multiplied afterwards.
  Value outerScale;
  int64_t size;
  /// The shape of mean and rstd in ONNX: 1 where a dim is reduced.
  SmallVector<int64_t> statistics;
  /// What is computed in, and what the result is of: scale and bias may be of
  /// another type than the operand.
  Type computed, result;
};
} // namespace

/// A scale or bias as [size]; null where it is of another shape that broadcasts
/// to the operand.
static FailureOr<Value> normVector(OnnxNode &node, unsigned index,
                                   int64_t axis) {
  if (failed(node.needFloats(index)))
    return failure();
  if (node.shape(index) == node.shape(0).drop_front(axis))
    return node.reshape(node.operand(index), {product(node.shape(index))});
  auto both = het::broadcastShapes(node.shape(0), node.shape(index));
  if (failed(both) || ArrayRef<int64_t>(*both) != node.shape(0))
    return node.error() << "operand " << index << " has shape ["
                        << node.shape(index) << "], wanted ["
                        << node.shape(0).drop_front(axis)
                        << "], the normalised dims, or what broadcasts to ["
                        << node.shape(0) << "]";
  return Value();
}

/// The result is of the scale's type. Only ONNX's own LayerNormalization has
/// one type for all: what onnxruntime's optimiser writes below opset 17, and
/// RMS norms, have two.
static LogicalResult chooseTypes(OnnxNode &node, NormShape &shape) {
  Type operand = node.type(0).getElementType(),
       scale = node.type(1).getElementType();
  shape.result = scale;
  unsigned width = operand.getIntOrFloatBitWidth();
  unsigned resultWidth = scale.getIntOrFloatBitWidth();
  shape.computed = width > resultWidth ? operand : scale;
  if (operand == scale)
    return success();
  if (node.opType() == "LayerNormalization" && node.opset() >= 17)
    return node.error() << "its operand is of " << operand
                        << " and its scale of " << scale
                        << ", wanted one type from opset 17 on";
  if (width == resultWidth) // float16 and bfloat16
    shape.computed = node.builder().getF32Type();
  return success();
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
  if (failed(chooseTypes(node, result)))
    return failure();
  OnnxMath math(node);
  result.size = product(node.shape(0).drop_front(*axis));
  if (*scale) {
    result.scale = math.cast(*scale, result.computed);
  } else {
    result.outerScale = math.cast(node.operand(1), result.computed);
    result.scale = math.splat({result.size}, result.computed, 1);
  }
  SmallVector<int64_t> flat(node.shape(0).take_front(*axis));
  result.statistics = flat;
  result.statistics.append(node.rank(0) - *axis, 1);
  flat.push_back(result.size);
  result.operand =
      math.cast(node.reshape(node.operand(0), flat), result.computed);
  return result;
}

static LogicalResult convertLayerNorm(OnnxNode &node, Results &results) {
  auto shape = normShape(node);
  if (failed(shape))
    return failure();
  OnnxMath math(node);
  Value bias, outerBias;
  if (node.has(2)) {
    auto axis = node.normalizeAxis(node.intField("axis", -1), node.rank(0));
    auto given = normVector(node, 2, *axis);
    if (failed(given))
      return failure();
    if (*given)
      bias = math.cast(*given, shape->computed);
    // A bias is added behind the scale.
    if (!bias || shape->outerScale)
      outerBias = math.cast(node.operand(2), shape->computed);
  }
  if (!bias || outerBias)
    bias = het::createSplat(node.builder(), node.loc(),
                            tensorType(shape->scale), 0);
  auto norm = het::LayerNormOp::create(
      node.builder(), node.loc(), shape->operand, shape->scale, bias,
      APFloat(node.floatField("epsilon", 1e-5)));
  Value result = node.reshape(norm.getResult(), node.shape(0));
  if (shape->outerScale)
    result = math.mul(result, shape->outerScale);
  if (outerBias)
    result = math.add(result, outerBias);
  results.push_back(math.cast(result, shape->result));
  // Statistics are of the type in which they are computed.
  Type stash = onnxElementType(node.intField("stash_type", 1),
                               node.builder().getContext());
  for (Value statistic : {norm.getMean(), norm.getRstd()})
    if (results.size() < node.numResults())
      results.push_back(
          node.isUsed(results.size())
              ? math.cast(node.reshape(statistic, shape->statistics), stash)
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
  OnnxMath math(node);
  Value result = node.reshape(norm.getResult(), node.shape(0));
  if (shape->outerScale)
    result = math.mul(result, shape->outerScale);
  results.push_back(math.cast(result, shape->result));
  return success();
}

//===----------------------------------------------------------------------===//
// Norms over channels
//===----------------------------------------------------------------------===//

/// (x - mean) / sqrt(variance + epsilon), where both are over `dims`.
static Value normalizeOver(OnnxNode &node, Value x, ArrayRef<int64_t> dims) {
  OnnxMath math(node);
  Value centered = math.sub(x, math.mean(x, dims));
  Value variance = math.mean(math.mul(centered, centered), dims);
  double epsilon = node.floatField("epsilon", 1e-5f);
  return math.div(centered, math.sqrt(math.add(variance, epsilon)));
}

/// A value a channel, shaped to lie along dim 1 of a tensor of `rank`.
static FailureOr<Value> channelVector(OnnxNode &node, unsigned index,
                                      int64_t channels, int64_t rank) {
  if (failed(node.needFloats(index)))
    return failure();
  if (node.type(index).getNumElements() != channels)
    return node.error() << "operand " << index << " is " << node.type(index)
                        << ", wanted one a channel, " << channels;
  SmallVector<int64_t> shape(rank, 1);
  shape[1] = channels;
  return node.reshape(node.operand(index), shape);
}

/// Channels [N, C, ..] in groups; one a group, and each channel its own group,
/// is an instance norm.
static LogicalResult convertGroupNorm(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  bool isInstance = node.opType() == "InstanceNormalization";
  int64_t rank = node.rank(0), channels = rank > 1 ? node.shape(0)[1] : 0;
  int64_t groups = isInstance ? channels : node.intField("num_groups", 0);
  if (rank < 2 || groups < 1 || channels % groups)
    return node.error() << node.type(0) << " has no " << groups
                        << " equal groups of channels";
  SmallVector<int64_t> grouped{node.shape(0)[0], groups, channels / groups};
  grouped.append(node.shape(0).begin() + 2, node.shape(0).end());
  auto dims = llvm::to_vector(llvm::seq<int64_t>(2, grouped.size()));
  Value x = normalizeOver(node, node.reshape(node.operand(0), grouped), dims);
  // Before opset 21 a scale was one a group.
  bool perGroup = !isInstance && node.opset() < 21;
  if (!perGroup)
    x = node.reshape(x, node.shape(0));
  auto scale = channelVector(node, 1, perGroup ? groups : channels,
                             tensorType(x).getRank());
  auto bias = channelVector(node, 2, perGroup ? groups : channels,
                            tensorType(x).getRank());
  if (failed(scale) || failed(bias))
    return failure();
  OnnxMath math(node);
  x = math.add(math.mul(x, *scale), *bias);
  results.push_back(node.reshape(x, node.shape(0)));
  return success();
}

/// With the statistics of training: what is left of it at inference.
static LogicalResult convertBatchNorm(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  // A field says so; from opset 7 to 13 it was the number of results.
  bool trains = node.opset() < 7    ? !node.intField("is_test", 0)
                : node.opset() < 14 ? node.numResults() > 1
                                    : node.intField("training_mode", 0);
  if (trains)
    return node.error() << "is in training mode, which is not supported: "
                           "export the model in evaluation mode";
  if (node.opset() < 9 && !node.intField("spatial", 1))
    return node.error() << "has statistics for each place (spatial is 0), "
                           "which is not supported: only one a channel is";
  int64_t rank = node.rank(0);
  if (rank < 2)
    return node.error() << "operand 0 is " << node.type(0)
                        << ", wanted [N, C, ..]";
  Value vectors[4];
  for (unsigned i = 0; i < 4; ++i) {
    auto vector = channelVector(node, i + 1, node.shape(0)[1], rank);
    if (failed(vector))
      return failure();
    vectors[i] = *vector;
  }
  OnnxMath math(node);
  auto [scale, bias, mean, variance] = vectors;
  Value root = math.sqrt(math.add(variance, node.floatField("epsilon", 1e-5f)));
  Value x = math.div(math.sub(node.operand(0), mean), root);
  results.push_back(math.add(math.mul(x, scale), bias));
  results.resize(node.numResults());
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
    return OnnxMath(node).logSoftmax(value, tensorType(value).getRank() - 1);
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
  // Before opset 7 nodes are active unless they say otherwise, then never, and
  // from opset 12 on if they say so.
  bool training = node.opset() < 7 && !node.intField("is_test", 0);
  double ratio = node.floatField("ratio", 0.5);
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
  Value value = node.operand(0);
  if (training && ratio == 0)
    training = false;
  if (training && node.inference())
    return node.error() << "drops elements at random, which inference does "
                           "not: export the model in evaluation mode";
  if (training && node.isUsed(1))
    return node.error() << "its mask is used, which is not supported";
  if (training) {
    if (!(ratio >= 0 && ratio < 1))
      return node.error() << "ratio is " << ratio
                          << ", wanted at least 0 and below 1";
    int64_t id = node.state().nextDropoutId++;
    value = het::DropoutOp::create(node.builder(), node.loc(), value,
                                   APFloat(ratio), id, DenseI64ArrayAttr(),
                                   DenseI64ArrayAttr());
  }
  results.push_back(value);
  // The mask of what keeps everything; before opset 10 in the operand's type.
  if (node.numResults() > 1)
    results.push_back(
        training ? Value()
                 : OnnxMath(node).splat(node.shape(0),
                                        node.opset() < 10
                                            ? node.type(0).getElementType()
                                            : node.builder().getI1Type(),
                                        1));
  return success();
}

void autohet::addNormHandlers(OnnxHandlers &handlers) {
  handlers["LayerNormalization"] = convertLayerNorm;
  handlers["RMSNormalization"] = convertRmsNorm;
  // Under the standard domain in files of onnxruntime's optimiser.
  handlers["SimplifiedLayerNormalization"] = convertRmsNorm;
  handlers["GroupNormalization"] = convertGroupNorm;
  handlers["InstanceNormalization"] = convertGroupNorm;
  handlers["BatchNormalization"] = convertBatchNorm;
  handlers["Softmax"] = convertSoftmax;
  handlers["LogSoftmax"] = convertLogSoftmax;
  handlers["Dropout"] = convertDropout;
}
