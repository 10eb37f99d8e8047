//===- OnnxLosses.cpp - losses that a file holds --------------------------===//
//
// Written out, in general ops: a training run has its own loss, which is one
// op, and these are outputs like any other.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;
using Predicate = het::ComparePredicate;

/// The loss of log probabilities [N, C, ..] and classes [N, ..]:
/// -w[class] * x[class], reduced as the node says.
static FailureOr<Value> negativeLogLikelihood(OnnxNode &node, Value x) {
  OnnxMath math(node);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  SmallVector<int64_t> classShape(shape);
  if (shape.size() >= 2)
    classShape.erase(classShape.begin() + 1);
  if (shape.size() < 2 || !isa<IntegerType>(node.type(1).getElementType()) ||
      node.shape(1) != ArrayRef<int64_t>(classShape))
    return node.error() << "scores " << x.getType() << " and classes "
                        << node.type(1)
                        << " do not fit, wanted [N, C, ..] and [N, ..]";
  int64_t rank = shape.size(), classes = shape[1];
  Value target = node.operand(1);
  Type index = node.type(1).getElementType();
  SmallVector<int64_t> withClass(shape);
  withClass[1] = 1;
  Value hot = math.compare(Predicate::eq, node.reshape(target, withClass),
                           math.iota(classes, index, 1, rank));
  Value zero = math.like(x, 0);
  auto pick = [&](Value values) {
    return math.sum(math.select(hot, values, zero), {1}, /*keep=*/false);
  };
  Value weight = math.splat(classShape, tensorType(x).getElementType(), 1);
  if (node.has(2)) {
    auto wanted =
        RankedTensorType::get(classes, tensorType(x).getElementType());
    if (node.type(2) != wanted)
      return node.error() << "weights are " << node.type(2) << ", wanted one "
                          << "a class, " << wanted;
    SmallVector<int64_t> along(rank, 1);
    along[1] = classes;
    weight = pick(node.reshape(node.operand(2), along));
  }
  if (node.hasField("ignore_index")) {
    Value ignored = math.compare(Predicate::eq, target,
                                 double(node.intField("ignore_index", 0)));
    weight = math.select(ignored, zero, weight);
  }
  Value loss = math.neg(math.mul(pick(x), weight));
  StringRef reduction = node.stringField("reduction", "mean");
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  if (reduction == "none")
    return loss;
  Value sum = math.sum(loss, all, /*keep=*/false);
  if (reduction == "sum")
    return sum;
  if (reduction == "mean")
    return math.div(sum, math.sum(weight, all, /*keep=*/false));
  return node.error() << "reduction is '" << reduction
                      << "', wanted none, sum or mean";
}

static LogicalResult convertNllLoss(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)) || failed(node.needFloats(0)))
    return failure();
  auto loss = negativeLogLikelihood(node, node.operand(0));
  if (failed(loss))
    return failure();
  results.push_back(*loss);
  return success();
}

static LogicalResult convertSoftmaxLoss(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)) || failed(node.needFloats(0)))
    return failure();
  if (node.rank(0) < 2)
    return node.error() << "scores are " << node.type(0)
                        << ", wanted [N, C, ..]";
  Value logProbabilities = OnnxMath(node).logSoftmax(node.operand(0), 1);
  auto loss = negativeLogLikelihood(node, logProbabilities);
  if (failed(loss))
    return failure();
  results.append({*loss, logProbabilities});
  results.resize(node.numResults());
  return success();
}

void autohet::addLossHandlers(OnnxHandlers &handlers) {
  handlers["NegativeLogLikelihoodLoss"] = convertNllLoss;
  handlers["SoftmaxCrossEntropyLoss"] = convertSoftmaxLoss;
}
