//===- OnnxAttention.cpp - opset 23's attention and rotary ----------------===//
//
// Both nodes take [B, H, S, D], or [B, S, H * D] with the number of heads as a
// field; het has the former only.
//
//===----------------------------------------------------------------------===//

#include "OnnxHeads.h"

#include <cmath>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// Operand `index` as [B, H, S, D].
static FailureOr<Value> headsOf(OnnxNode &node, unsigned index,
                                StringRef field) {
  ArrayRef<int64_t> shape = node.shape(index);
  if (shape.size() == 4)
    return node.operand(index);
  int64_t heads = node.intField(field, 0);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads)
    return node.error() << "operand " << index << " is " << node.type(index)
                        << " with " << field << " " << heads
                        << ", wanted [B, H, S, D] or [B, S, H * D]";
  return splitHeads(node, node.operand(index), heads);
}

/// [B, H, S, D] as operand 0 had it.
static Value likeOperand(OnnxNode &node, Value heads) {
  return node.rank(0) == 4 ? heads : joinHeads(node, heads);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// Queries [B, H, S, D], keys [B, K, T, D] and values [B, K, T, Dv] of a node,
/// with the keys and values of earlier calls in front.
struct Heads {
  Value query, key, value;
  int64_t past = 0; // of T
  ArrayRef<int64_t> q() const { return tensorType(query).getShape(); }
  ArrayRef<int64_t> k() const { return tensorType(key).getShape(); }
  ArrayRef<int64_t> v() const { return tensorType(value).getShape(); }
};
} // namespace

static FailureOr<Heads> allHeadsOf(OnnxNode &node) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  auto query = headsOf(node, 0, "q_num_heads");
  auto key = headsOf(node, 1, "kv_num_heads");
  auto value = headsOf(node, 2, "kv_num_heads");
  if (failed(query) || failed(key) || failed(value))
    return failure();
  Heads heads{*query, *key, *value};
  if (node.has(4) != node.has(5))
    return node.error() << "has past keys or past values, wanted both";
  if (node.has(4)) {
    for (auto [i, now] : {std::pair(4u, &heads.key), {5u, &heads.value}}) {
      SmallVector<int64_t> wanted(tensorType(*now).getShape());
      if (node.rank(i) == 4)
        wanted[2] = node.shape(i)[2];
      if (node.type(i) != tensorType(*now).clone(wanted))
        return node.error()
               << "operand " << i << " is " << node.type(i) << ", wanted "
               << tensorType(*now).clone(wanted) << " of any length";
      *now = OnnxMath(node).concat({node.operand(i), *now}, 2);
    }
    heads.past = node.shape(4)[2];
  }
  ArrayRef<int64_t> q = heads.q(), k = heads.k(), v = heads.v();
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[2] != v[2] ||
      q[3] != k[3])
    return node.error() << "query [" << q << "], key [" << k << "] and value ["
                        << v << "] do not fit";
  if (k[1] == 0 || q[1] % k[1])
    return node.error() << q[1] << " query heads are no multiple of " << k[1]
                        << " key/value heads";
  return heads;
}

/// The mask as [.., T]: one that is shorter hides the keys behind its end.
static FailureOr<Value> maskOf(OnnxNode &node, const Heads &heads) {
  if (!node.has(3))
    return Value();
  OnnxMath math(node);
  Value mask = node.operand(3);
  SmallVector<int64_t> shape(node.shape(3));
  SmallVector<int64_t> scores{heads.q()[0], heads.q()[1], heads.q()[2],
                              heads.k()[2]};
  Type element = node.type(3).getElementType();
  bool isBool = element.isInteger(1);
  if (!shape.empty() && shape.back() != 1 && shape.back() < scores[3]) {
    shape.back() = scores[3] - shape.back();
    Value hidden = math.splat(shape, element, isBool ? 0 : -INFINITY);
    mask = math.concat({mask, hidden}, shape.size() - 1);
  }
  auto both = het::broadcastShapes(tensorType(mask).getShape(), scores);
  if (failed(both) || *both != scores ||
      !(isBool || element == tensorType(heads.query).getElementType()))
    return node.error() << "mask is " << node.type(3)
                        << ", wanted booleans or floats as the query's that "
                           "broadcast to ["
                        << scores << "]";
  return mask;
}

/// Whether each query may see each key by its place, [.., S, T]; null where
/// all may.
static Value visibleByPlace(OnnxNode &node, const Heads &heads) {
  OnnxMath math(node);
  using P = het::ComparePredicate;
  Type i64 = node.builder().getI64Type();
  int64_t queries = heads.q()[2], keys = heads.k()[2];
  Value key = math.iota(keys, i64, 1, 2), visible;
  auto narrow = [&](Value condition) {
    visible = visible ? math.both(visible, condition) : condition;
  };
  Value lengths;
  if (node.has(6))
    lengths =
        node.reshape(math.cast(node.operand(6), i64), {heads.q()[0], 1, 1, 1});
  // Where the queries stand among the keys.
  Value place = math.iota(queries, i64, 0, 2);
  if (node.has(4) || !lengths)
    place = math.add(place, double(heads.past));
  else
    place = math.add(math.add(lengths, -double(queries)), place);
  if (node.intField("is_causal", 0))
    narrow(math.compare(P::le, key, place));
  int64_t left = node.intField("left_window_size", -1),
          right = node.intField("right_window_size", -1);
  if (left >= 0)
    narrow(math.compare(P::ge, key, math.add(place, -double(left))));
  if (right >= 0)
    narrow(math.compare(P::le, key, math.add(place, double(right))));
  if (lengths)
    narrow(math.compare(P::lt, key, lengths));
  return visible;
}

/// Step by step, for whatever `het.attention` does not say.
static LogicalResult writeOut(OnnxNode &node, const Heads &heads, Value mask,
                              double scale, Results &results) {
  OnnxMath math(node);
  int64_t groups = heads.q()[1] / heads.k()[1];
  // Each factor by the root, as the op's definition does, against overflow.
  double root = std::sqrt(scale);
  Value scores =
      multiplyHeads(node, math.mul(heads.query, root),
                    math.mul(repeatHeads(node, heads.key, groups), root), 3);
  SmallVector<Value> stages = {scores};
  double cap = node.floatField("softcap", 0);
  if (cap != 0)
    scores = math.mul(math.tanh(math.div(scores, cap)), cap);
  stages.push_back(scores);
  Value visible = visibleByPlace(node, heads);
  if (mask && tensorType(mask).getElementType().isInteger(1))
    visible = visible ? math.both(visible, mask) : mask;
  else if (mask)
    scores = math.add(scores, mask);
  if (visible)
    scores = math.select(visible, scores, math.like(scores, -INFINITY));
  stages.push_back(scores);
  if (node.hasField("softmax_precision")) {
    Type element = onnxElementType(node.intField("softmax_precision", 0),
                                   node.builder().getContext());
    if (!isa_and_present<FloatType>(element))
      return node.error() << "softmax_precision is "
                          << node.intField("softmax_precision", 0)
                          << ", wanted a type of floats";
    scores = math.cast(scores, element);
  }
  Value weights = node.create<het::SoftmaxOp>(scores, /*zero_empty_rows=*/true);
  weights = math.castLike(weights, heads.query);
  stages.push_back(weights);
  results.push_back(likeOperand(
      node,
      multiplyHeads(node, weights, repeatHeads(node, heads.value, groups), 2)));
  results.append({heads.key, heads.value});
  int64_t mode = node.intField("qk_matmul_output_mode", 0);
  if (mode < 0 || mode >= int64_t(stages.size()))
    return node.error() << "qk_matmul_output_mode is " << mode
                        << ", wanted 0 to 3";
  results.push_back(stages[mode]);
  results.resize(node.numResults());
  return success();
}

static LogicalResult convertAttention(OnnxNode &node, Results &results) {
  auto heads = allHeadsOf(node);
  if (failed(heads))
    return failure();
  auto mask = maskOf(node, *heads);
  if (failed(mask))
    return failure();
  ArrayRef<int64_t> q = heads->q(), k = heads->k();
  double scale = node.floatField("scale", 1 / std::sqrt(double(q[3])));
  bool causal = node.intField("is_causal", 0);
  // What the op, with its adjoint and its kernel, says too.
  bool isPlain = node.floatField("softcap", 0) == 0 && !node.has(4) &&
                 !node.has(6) && !node.hasField("softmax_precision") &&
                 (!causal || q[2] == k[2]) &&
                 node.intField("left_window_size", -1) < 0 &&
                 node.intField("right_window_size", -1) < 0 &&
                 tensorType(heads->query).getElementType().isF32();
  for (unsigned i = 1; i < node.numResults(); ++i)
    isPlain &= !node.isUsed(i);
  if (!isPlain)
    return writeOut(node, *heads, *mask, scale, results);

  // A query whose mask hides everything gives 0, not NaN.
  bool zeroEmptyRows = bool(*mask);
  Value result = attention(node, heads->query, heads->key, heads->value, *mask,
                           scale, causal, zeroEmptyRows);
  results.push_back(likeOperand(node, result));
  results.resize(node.numResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

static LogicalResult convertRotary(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  auto operand = headsOf(node, 0, "num_heads");
  if (failed(operand))
    return failure();
  ArrayRef<int64_t> x = tensorType(*operand).getShape();
  // Tables for the positions at hand, [B, S, R/2]; looked up where positions
  // are given.
  Value tables[2];
  for (unsigned i : {0, 1}) {
    Value table = node.operand(1 + i);
    if (node.has(3)) {
      if (node.rank(1 + i) != 2 ||
          node.shape(3) != ArrayRef<int64_t>{x[0], x[2]})
        return node.error() << "table " << node.type(1 + i) << " and positions "
                            << node.type(3) << " do not fit [" << x << "]";
      table = node.create<het::EmbeddingOp>(table, node.operand(3),
                                            IntegerAttr(), IntegerAttr());
    }
    ArrayRef<int64_t> shape = tensorType(table).getShape();
    int64_t rotated = node.intField("rotary_embedding_dim", 0);
    if (shape.size() != 3 || (shape[0] != x[0] && shape[0] != 1) ||
        shape[1] != x[2] || shape[2] * 2 > x[3] ||
        (rotated && shape[2] * 2 != rotated))
      return node.error() << "table of shape [" << shape << "] does not fit ["
                          << x << "], wanted [B, S, half of the rotated dims]";
    tables[i] = node.reshape(table, {shape[0], 1, shape[1], shape[2]});
  }
  if (tables[0].getType() != tables[1].getType())
    return node.error() << "cos and sin are " << tables[0].getType() << " and "
                        << tables[1].getType() << ", wanted one type";
  Value rotated = node.create<het::RotaryOp>(
      *operand, tables[0], tables[1], bool(node.intField("interleaved", 0)),
      /*inverse=*/false);
  results.push_back(likeOperand(node, rotated));
  return success();
}

void autohet::addAttentionHandlers(OnnxHandlers &handlers) {
  handlers["Attention"] = convertAttention;
  handlers["RotaryEmbedding"] = convertRotary;
}
