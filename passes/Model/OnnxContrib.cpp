//===- OnnxContrib.cpp - fused nodes of onnxruntime's optimiser -----------===//
//
// Domain com.microsoft, by its documentation: what a transformer becomes when
// onnxruntime's tools have optimised it. Forms that they do not document, or
// that quantise and pack, are refused by name.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"

#include <cmath>

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
  if (node.shape(index) != ArrayRef<int64_t>{last})
    return node.error() << "operand " << index << " is " << node.type(index)
                        << ", wanted a vector of " << last;
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
    if (failed(bias))
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
  if (failed(node.needOperands(1)) || failed(node.needFloats(2)) ||
      failed(node.needFloats(3)))
    return failure();
  if (node.rank(0) != 2 || node.rank(2) != 2 || node.rank(3) != 2 ||
      node.shape(3)[0] < node.shape(0)[1])
    return node.error() << "ids " << node.type(0) << ", words " << node.type(2)
                        << " and positions " << node.type(3) << " do not fit";
  OnnxMath math(node);
  auto lookup = [&](Value table, Value ids) -> Value {
    return node.create<het::EmbeddingOp>(table, ids, IntegerAttr());
  };
  Value sum = lookup(node.operand(2), node.operand(0));
  sum = math.add(
      sum, node.has(8) ? lookup(node.operand(3), node.operand(8))
                       : math.slice(node.operand(3), 0, 0, node.shape(0)[1]));
  if (node.has(1) && node.has(4))
    sum = math.add(sum, lookup(node.operand(4), node.operand(1)));
  auto norm = layerNorm(node, sum, 5, 6);
  if (failed(norm))
    return failure();
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
// Products and attention
//===----------------------------------------------------------------------===//

/// alpha * A * B, each transposed in its last two dims on request.
static LogicalResult convertFusedMatMul(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) || failed(node.needFloats(1)))
    return failure();
  int64_t rank = node.rank(0);
  if (rank < 2 || node.rank(1) != rank ||
      node.shape(0).drop_back(2) != node.shape(1).drop_back(2) ||
      node.intField("transBatchA", 0) || node.intField("transBatchB", 0))
    return node.error() << "multiplies " << node.type(0) << " by "
                        << node.type(1)
                        << ", wanted matrices of one batch shape";
  bool transA = node.intField("transA", 0), transB = node.intField("transB", 0);
  int64_t a = transA ? rank - 2 : rank - 1, b = transB ? rank - 1 : rank - 2;
  if (node.shape(0)[a] != node.shape(1)[b])
    return node.error() << "cannot multiply " << node.type(0) << " by "
                        << node.type(1);
  auto batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  Value product = node.create<het::MatmulOp>(
      node.operand(0), node.operand(1), ArrayRef<int64_t>(batch),
      ArrayRef<int64_t>(batch), ArrayRef<int64_t>{a}, ArrayRef<int64_t>{b});
  results.push_back(OnnxMath(node).mul(product, node.floatField("alpha", 1)));
  return success();
}

/// [B, S, heads * D] as [B, heads, S, D].
static Value splitHeads(OnnxNode &node, Value value, int64_t heads) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  Value split =
      node.reshape(value, {shape[0], shape[1], heads, shape[2] / heads});
  return node.transpose(split, {0, 2, 1, 3});
}

/// The padding mask as numbers that are added to scores [B, N, S, T].
static FailureOr<Value> paddingMask(OnnxNode &node, unsigned index,
                                    ArrayRef<int64_t> scores, Type element) {
  OnnxMath math(node);
  ArrayRef<int64_t> shape = node.shape(index);
  int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  Value visible;
  if (shape == ArrayRef<int64_t>{batch}) {
    Value lengths = node.reshape(node.operand(index), {batch, 1, 1, 1});
    Value key = math.iota(keys, node.type(index).getElementType(), 3, 4);
    visible = math.compare(het::ComparePredicate::lt, key, lengths);
  } else if (shape == ArrayRef<int64_t>{batch, keys} ||
             shape == ArrayRef<int64_t>{batch, queries, keys}) {
    Value mask = node.reshape(
        node.operand(index), {batch, 1, shape.size() == 3 ? queries : 1, keys});
    visible = math.compare(het::ComparePredicate::ne, mask, 0);
  } else {
    return node.error() << "mask is " << node.type(index) << ", wanted ["
                        << batch << "], [" << batch << ", " << keys << "] or ["
                        << batch << ", " << queries << ", " << keys << "]";
  }
  return math.select(
      visible, math.splat({}, element, 0),
      math.splat({}, element, node.floatField("mask_filter_value", -10000)));
}

/// Attention of [B, N, S, D] heads, joined to [B, S, N * D].
static LogicalResult attend(OnnxNode &node, Value query, Value key, Value value,
                            std::optional<unsigned> maskIndex,
                            std::optional<unsigned> biasIndex,
                            Results &results) {
  OnnxMath math(node);
  ArrayRef<int64_t> q = tensorType(query).getShape(),
                    k = tensorType(key).getShape();
  SmallVector<int64_t> scores{q[0], q[1], q[2], k[2]};
  Type element = tensorType(query).getElementType();
  bool causal = node.intField("unidirectional", 0);
  if (!element.isF32() || (causal && q[2] != k[2]))
    return node.error() << "attention of " << query.getType() << " to "
                        << key.getType() << " is not supported";
  Value mask;
  if (maskIndex) {
    auto given = paddingMask(node, *maskIndex, scores, element);
    if (failed(given))
      return failure();
    mask = *given;
  }
  if (biasIndex) {
    auto both = het::broadcastShapes(node.shape(*biasIndex), scores);
    if (failed(both) || *both != scores)
      return node.error() << "attention bias is " << node.type(*biasIndex)
                          << ", wanted what broadcasts to [" << scores << "]";
    Value bias = node.operand(*biasIndex);
    mask = mask ? math.add(mask, bias) : bias;
  }
  double scale = node.floatField("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(q[3]));
  auto heads = llvm::to_vector(llvm::seq<int64_t>(0, q[1]));
  Value attention =
      het::AttentionOp::create(
          node.builder(), node.loc(), query, key, value, mask, APFloat(scale),
          ArrayRef<int64_t>(heads), causal, /*zero_empty_rows=*/false,
          FloatAttr(), IntegerAttr(), DenseI64ArrayAttr(), DenseI64ArrayAttr())
          .getResult();
  ArrayRef<int64_t> v = tensorType(attention).getShape();
  results.push_back(node.reshape(node.transpose(attention, {0, 2, 1, 3}),
                                 {v[0], v[2], v[1] * v[3]}));
  results.resize(node.numResults());
  return success();
}

static LogicalResult refuseOperands(OnnxNode &node, ArrayRef<unsigned> wanted) {
  for (unsigned i = 0; i < node.numOperands(); ++i)
    if (node.has(i) && !llvm::is_contained(wanted, i))
      return node.error() << "operand " << i << " is not supported";
  for (unsigned i = 1; i < node.numResults(); ++i)
    if (node.isUsed(i))
      return node.error() << "result " << i << " is not supported";
  return success();
}

/// Projects the input to queries, keys and values first.
static LogicalResult convertAttention(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1})
    if (failed(node.needFloats(i)))
      return failure();
  if (failed(refuseOperands(node, {0, 1, 2, 3, 5})))
    return failure();
  if (node.intField("do_rotary", 0))
    return node.error() << "do_rotary is not supported";
  int64_t heads = node.intField("num_heads", 0);
  if (node.rank(0) != 3 || node.rank(1) != 2 || heads <= 0 ||
      node.shape(0)[2] != node.shape(1)[0])
    return node.error() << "input " << node.type(0) << " and weights "
                        << node.type(1) << " with " << heads
                        << " heads do not fit";
  int64_t width = node.shape(1)[1];
  auto sizes = node.intsField("qkv_hidden_sizes")
                   .value_or(SmallVector<int64_t>(3, width / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width ||
      sizes[0] != sizes[1] || sizes[0] % heads || sizes[2] % heads)
    return node.error() << "the " << width << " columns of its weights are not "
                        << "queries, keys and values of " << heads << " heads";
  OnnxMath math(node);
  Value all = node.create<het::MatmulOp>(
      node.operand(0), node.operand(1), ArrayRef<int64_t>(),
      ArrayRef<int64_t>(), ArrayRef<int64_t>{2}, ArrayRef<int64_t>{0});
  if (node.has(2)) {
    auto bias = vectorOf(node, 2, all, 0);
    if (failed(bias))
      return failure();
    all = math.add(all, *bias);
  }
  Value parts[3];
  int64_t offset = 0;
  for (auto [part, size] : llvm::zip_equal(parts, sizes)) {
    part = splitHeads(node, math.slice(all, 2, offset, size), heads);
    offset += size;
  }
  return attend(node, parts[0], parts[1], parts[2],
                node.has(3) ? std::optional(3u) : std::nullopt,
                node.has(5) ? std::optional(5u) : std::nullopt, results);
}

static LogicalResult convertMultiHead(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  if (failed(refuseOperands(node, {0, 1, 2, 3, 4, 5})))
    return failure();
  int64_t heads = node.intField("num_heads", 0);
  OnnxMath math(node);
  Value parts[3];
  int64_t offset = 0;
  for (unsigned i : {0, 1, 2}) {
    Value x = node.operand(i);
    if (i > 0 && node.rank(i) == 4 && node.shape(i)[1] == heads) {
      parts[i] = x; // [B, N, T, D] already, from cross attention
      continue;
    }
    if (node.rank(i) != 3 || heads <= 0 || node.shape(i)[2] % heads)
      return node.error() << "operand " << i << " is " << node.type(i)
                          << ", wanted [B, S, " << heads << " * D]";
    int64_t width = node.shape(i)[2];
    if (node.has(3)) {
      if (node.rank(3) != 1 || node.shape(3)[0] < offset + width)
        return node.error() << "bias is " << node.type(3)
                            << ", wanted one for queries, keys and values";
      x = math.add(x, math.slice(node.operand(3), 0, offset, width));
      offset += width;
    }
    parts[i] = splitHeads(node, x, heads);
  }
  ArrayRef<int64_t> q = tensorType(parts[0]).getShape(),
                    k = tensorType(parts[1]).getShape(),
                    v = tensorType(parts[2]).getShape();
  if (q[0] != k[0] || q[3] != k[3] || k[0] != v[0] || k[2] != v[2])
    return node.error() << "query [" << q << "], key [" << k << "] and value ["
                        << v << "] do not fit";
  return attend(node, parts[0], parts[1], parts[2],
                node.has(4) ? std::optional(4u) : std::nullopt,
                node.has(5) ? std::optional(5u) : std::nullopt, results);
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
  handlers["com.microsoft::Attention"] = convertAttention;
  handlers["com.microsoft::MultiHeadAttention"] = convertMultiHead;
}
