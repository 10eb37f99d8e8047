//===- OnnxContrib.cpp - fused nodes of onnxruntime's optimiser -----------===//
//
// Domain com.microsoft, by its documentation: what a transformer becomes when
// onnxruntime's tools have optimised it. Forms that they do not document, or
// that quantise and pack, are refused by name.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// gelu(x + bias), where the bias may be left out.
template <het::GeluForm form>
static LogicalResult convertGelu(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  Value x = node.operand(0);
  if (node.has(1)) {
    if (failed(node.needBroadcast(x, node.operand(1))))
      return failure();
    x = OnnxMath(node).add(x, node.operand(1));
  }
  results.push_back(node.create<het::GeluOp>(form, x));
  return success();
}

static LogicalResult convertQuickGelu(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  OnnxMath math(node);
  Value x = node.operand(0);
  Value gate = math.sigmoid(math.mul(x, node.floatField("alpha", 1.702f)));
  results.push_back(math.mul(x, gate));
  return success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// A vector as long as the operand's last dim.
static FailureOr<Value> vectorOf(OnnxNode &node, unsigned index, Value like,
                                 double otherwise) {
  auto type = tensorType(like);
  int64_t last = type.getRank() ? type.getShape().back() : 1;
  if (!node.has(index))
    return OnnxMath(node).splat({last}, type.getElementType(), otherwise);
  if (node.shape(index) != ArrayRef<int64_t>{last} ||
      !isFloatTensor(node.operand(index)))
    return node.error() << "operand " << index << " is " << node.type(index)
                        << ", wanted a vector of " << last << " floats";
  return node.operand(index);
}

static FailureOr<Value> layerNorm(OnnxNode &node, Value x, unsigned scaleIndex,
                                  unsigned biasIndex) {
  auto scale = vectorOf(node, scaleIndex, x, 1);
  auto bias = vectorOf(node, biasIndex, x, 0);
  if (failed(scale) || failed(bias))
    return failure();
  auto norm =
      het::LayerNormOp::create(node.builder(), node.loc(), x, *scale, *bias,
                               APFloat(node.floatField("epsilon", 1e-12f)));
  return norm.getResult();
}

/// The norm of input + skip + bias, and that sum as the fourth result.
template <bool isRms>
static LogicalResult convertSkipNorm(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  OnnxMath math(node);
  if (failed(node.needBroadcast(node.operand(0), node.operand(1))))
    return failure();
  Value sum = math.add(node.operand(0), node.operand(1));
  unsigned biasIndex = isRms ? 3 : 4;
  if (node.has(biasIndex)) {
    auto bias = vectorOf(node, biasIndex, sum, 0);
    if (failed(bias) || failed(node.needBroadcast(sum, *bias)))
      return failure();
    sum = math.add(sum, *bias);
  }
  Value result;
  if (isRms) {
    auto scale = vectorOf(node, 2, sum, 1);
    if (failed(scale))
      return failure();
    result = het::RmsNormOp::create(node.builder(), node.loc(), sum, *scale,
                                    APFloat(node.floatField("epsilon", 1e-12f)))
                 .getResult();
  } else {
    auto norm = layerNorm(node, sum, 2, 3);
    if (failed(norm))
      return failure();
    result = *norm;
  }
  results.append({result, Value(), Value(), sum});
  results.resize(node.numResults());
  return success();
}

/// Words, positions and segments, summed and normalised.
static LogicalResult convertEmbedNorm(OnnxNode &node, Results &results) {
  if (!node.has(0) || !node.has(2) || !node.has(3))
    return node.error() << "has no ids, words or positions, operands 0, 2 and "
                           "3";
  if (node.rank(0) != 2 || node.rank(2) != 2 || node.rank(3) != 2 ||
      node.shape(3)[0] < node.shape(0)[1])
    return node.error() << "ids " << node.type(0) << ", words " << node.type(2)
                        << " and positions " << node.type(3) << " do not fit";
  OnnxMath math(node);
  // Each sum must be of [B, S, H], as the words are.
  Value sum;
  auto addRows = [&](Value rows) -> LogicalResult {
    if (sum && failed(node.needBroadcast(sum, rows)))
      return failure();
    if (sum &&
        tensorType(rows).getShape().back() != tensorType(sum).getShape().back())
      return node.error() << "adds " << tensorType(rows) << " to the words' "
                          << tensorType(sum);
    sum = sum ? math.add(sum, rows) : rows;
    return success();
  };
  auto addLookup = [&](unsigned table, unsigned ids) -> LogicalResult {
    if (node.rank(table) != 2 || !isFloatTensor(node.operand(table)) ||
        node.shape(ids) != node.shape(0) ||
        !isa<IntegerType>(node.type(ids).getElementType()))
      return node.error() << "looks " << node.type(ids) << " up in "
                          << node.type(table) << ", wanted integers ["
                          << node.shape(0) << "] and a matrix of floats";
    return addRows(node.create<het::EmbeddingOp>(
        node.operand(table), node.operand(ids), IntegerAttr(), IntegerAttr()));
  };
  if (failed(addLookup(2, 0)) ||
      failed(node.has(8) ? addLookup(3, 8)
                         : addRows(math.slice(node.operand(3), 0, 0,
                                              node.shape(0)[1]))) ||
      (node.has(1) && node.has(4) && failed(addLookup(4, 1))))
    return failure();
  auto norm = layerNorm(node, sum, 5, 6);
  if (failed(norm))
    return failure();
  if (node.has(7) && node.shape(7) != node.shape(0))
    return node.error() << "mask is " << node.type(7) << ", wanted ["
                        << node.shape(0) << "]";
  // How many tokens of each sample count.
  Type i32 = node.builder().getI32Type();
  Value lengths = node.has(7)
                      ? math.sum(math.cast(node.operand(7), i32), {1}, false)
                      : math.splat({node.shape(0)[0]}, i32, 0);
  results.append({*norm, lengths, sum});
  results.resize(node.numResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// alpha * A * B, each with its last two dims exchanged, or its first dim moved
/// to the last but one, on request.
static LogicalResult convertFusedMatMul(OnnxNode &node, Results &results) {
  Value sides[2];
  for (unsigned i : {0, 1}) {
    if (failed(node.needFloats(i)))
      return failure();
    bool transposes = node.intField(i ? "transB" : "transA", 0);
    bool movesBatch = node.intField(i ? "transBatchB" : "transBatchA", 0);
    int64_t rank = node.rank(i);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (movesBatch && rank > 2)
      std::rotate(dims.begin(), dims.begin() + 1, dims.end() - 1);
    if (transposes && rank > 1)
      std::swap(dims[rank - 2], dims[rank - 1]);
    sides[i] = node.transpose(node.operand(i), dims);
  }
  auto product = matrixProduct(node, sides[0], sides[1]);
  if (failed(product))
    return failure();
  results.push_back(OnnxMath(node).mul(*product, node.floatField("alpha", 1)));
  return success();
}

void autohet::addContribHandlers(OnnxHandlers &handlers) {
  handlers["com.microsoft::Gelu"] = convertGelu<het::GeluForm::erf>;
  handlers["com.microsoft::BiasGelu"] = convertGelu<het::GeluForm::erf>;
  handlers["com.microsoft::FastGelu"] = convertGelu<het::GeluForm::tanh>;
  handlers["com.microsoft::QuickGelu"] = convertQuickGelu;
  handlers["com.microsoft::SkipLayerNormalization"] = convertSkipNorm<false>;
  handlers["com.microsoft::SkipSimplifiedLayerNormalization"] =
      convertSkipNorm<true>;
  handlers["com.microsoft::EmbedLayerNormalization"] = convertEmbedNorm;
  handlers["com.microsoft::FusedMatMul"] = convertFusedMatMul;
}
