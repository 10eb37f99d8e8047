//===- OnnxContribAttention.cpp - attention of onnxruntime's domain -------===//
//
// Domain com.microsoft, by its documentation: nodes that project, rotate, mask
// and keep the keys of earlier calls. What is quantised, packed or written into
// shared buffers of other layouts is refused by name.
//
//===----------------------------------------------------------------------===//

#include "OnnxHeads.h"

#include <cmath>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;
using P = het::ComparePredicate;

/// That no operand is given behind the first `operands`, whose names are
/// `others`, and no result from `results` on used.
static LogicalResult refuseOthers(OnnxNode &node, unsigned operands,
                                  ArrayRef<StringRef> others,
                                  unsigned results) {
  for (unsigned i = operands; i < node.numOperands(); ++i)
    if (node.has(i)) {
      InFlightDiagnostic error = node.error() << "operand " << i;
      if (i - operands < others.size())
        error << ", " << others[i - operands] << ",";
      return error << " is not supported: past keys and values are tensors of "
                      "their own length here, and nothing is written into them";
    }
  for (unsigned i = results; i < node.numResults(); ++i)
    if (node.isUsed(i))
      return node.error() << "result " << i << " is used, wanted " << results
                          << " results at most";
  return success();
}

/// 1 / sqrt(D) unless the node says otherwise.
static double scaleOf(OnnxNode &node, Value query) {
  double scale = node.floatField("scale", 0);
  return scale ? scale : 1 / std::sqrt(double(tensorType(query).getDimSize(3)));
}

/// Keys or values with those of earlier calls, [B, N, P, D], in front.
static FailureOr<Value> behindPast(OnnxNode &node, Value past, Value now) {
  SmallVector<int64_t> wanted(tensorType(now).getShape());
  if (tensorType(past).getRank() == 4)
    wanted[2] = tensorType(past).getDimSize(2);
  if (tensorType(past) != tensorType(now).clone(wanted))
    return node.error() << "past is " << past.getType() << ", wanted "
                        << tensorType(now).clone(wanted) << " of any length";
  return OnnxMath(node).concat({past, now}, 2);
}

//===----------------------------------------------------------------------===//
// Attention and MultiHeadAttention
//===----------------------------------------------------------------------===//

namespace {
/// What a node attends with: [B, N, S, D], [B, N, T, D] and [B, N, T, Dv].
struct Heads {
  Value query, key, value;
  int64_t past = 0; // of T
  /// Operands: who is padding, and what is added to scores.
  unsigned mask, bias;
};
} // namespace

/// The padding mask as numbers that are added to scores [B, N, S, T].
static FailureOr<Value> paddingMask(OnnxNode &node, const Heads &heads,
                                    ArrayRef<int64_t> scores, Type element) {
  unsigned index = heads.mask;
  OnnxMath math(node);
  ArrayRef<int64_t> shape = node.shape(index);
  int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  Value visible;
  if (shape == ArrayRef<int64_t>{batch} ||
      shape == ArrayRef<int64_t>{2 * batch}) {
    // Where the keys of a sample end; behind that, where they begin.
    Value key = math.iota(keys, node.type(index).getElementType(), 3, 4);
    auto places = [&](int64_t offset) {
      return node.reshape(math.slice(node.operand(index), 0, offset, batch),
                          {batch, 1, 1, 1});
    };
    visible = math.compare(P::lt, key, places(0));
    if (shape[0] == 2 * batch)
      visible = math.both(visible, math.compare(P::ge, key, places(batch)));
  } else if (shape == ArrayRef<int64_t>{batch, keys} ||
             shape == ArrayRef<int64_t>{batch, queries, keys}) {
    Value mask = node.reshape(
        node.operand(index), {batch, 1, shape.size() == 3 ? queries : 1, keys});
    visible = math.compare(P::gt, mask, 0);
  } else if (shape.size() == 4 && shape[0] == batch && shape[1] == 1 &&
             shape[2] == shape[3] &&
             shape[2] >= std::max(heads.past + queries, keys)) {
    // Megatron's: of all places there can be, those that there are.
    Value rows = math.slice(node.operand(index), 2, heads.past, queries);
    visible = math.compare(P::gt, math.slice(rows, 3, 0, keys), 0);
  } else {
    return node.error() << "mask is " << node.type(index) << ", wanted ["
                        << batch << "], [" << 2 * batch << "], [" << batch
                        << ", " << keys << "], [" << batch << ", " << queries
                        << ", " << keys << "] or [" << batch
                        << ", 1, M, M] with M of "
                        << std::max(heads.past + queries, keys) << " and more";
  }
  return math.select(
      visible, math.splat({}, element, 0),
      math.splat({}, element, node.floatField("mask_filter_value", -10000)));
}

/// What broadcasts to scores [B, N, S, T], or an error.
static LogicalResult needBias(OnnxNode &node, unsigned index,
                              ArrayRef<int64_t> scores, Type element) {
  auto both = het::broadcastShapes(node.shape(index), scores);
  if (succeeded(both) && ArrayRef<int64_t>(*both) == scores &&
      node.type(index).getElementType() == element)
    return success();
  return node.error() << "attention bias is " << node.type(index)
                      << ", wanted what broadcasts to [" << scores << "]";
}

/// Attention of [B, N, S, D] heads, joined to [B, S, N * D].
static FailureOr<Value> attend(OnnxNode &node, const Heads &heads) {
  OnnxMath math(node);
  ArrayRef<int64_t> q = tensorType(heads.query).getShape(),
                    k = tensorType(heads.key).getShape(),
                    v = tensorType(heads.value).getShape();
  if (q[0] != k[0] || q[1] != k[1] || q[3] != k[3] ||
      k.take_front(3) != v.take_front(3))
    return node.error() << "query [" << q << "], key [" << k << "] and value ["
                        << v << "] do not fit";
  SmallVector<int64_t> scores{q[0], q[1], q[2], k[2]};
  Type element = tensorType(heads.query).getElementType();
  bool causal = node.intField("unidirectional", 0);
  if (!element.isF32())
    return node.error() << "query is " << heads.query.getType()
                        << ", wanted float32, float16 or bfloat16";
  if (causal && heads.past + q[2] != k[2])
    return node.error() << "is unidirectional with " << q[2] << " queries and "
                        << k[2] << " keys, wanted " << heads.past + q[2]
                        << " keys";
  Value mask;
  if (node.has(heads.mask)) {
    auto given = paddingMask(node, heads, scores, element);
    if (failed(given))
      return failure();
    mask = *given;
  }
  if (node.has(heads.bias)) {
    if (failed(needBias(node, heads.bias, scores, element)))
      return failure();
    Value bias = node.operand(heads.bias);
    mask = mask ? math.add(mask, bias) : bias;
  }
  return joinHeads(node, attention(node, heads.query, heads.key, heads.value,
                                   mask, scaleOf(node, heads.query), causal,
                                   /*zeroEmptyRows=*/false));
}

/// Projects the input to queries, keys and values first.
static LogicalResult convertAttention(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1})
    if (failed(node.needFloats(i)))
      return failure();
  if (failed(refuseOthers(node, 6, {"past_sequence_length"}, 2)))
    return failure();
  for (StringRef field : {"do_rotary", "past_present_share_buffer"})
    if (node.intField(field, 0))
      return node.error() << field << " is not supported";
  int64_t count = node.intField("num_heads", 0);
  if (node.rank(0) != 3 || node.rank(1) != 2 || count <= 0 ||
      node.shape(0)[2] != node.shape(1)[0])
    return node.error() << "input " << node.type(0) << " and weights "
                        << node.type(1) << " with " << count
                        << " heads do not fit";
  int64_t width = node.shape(1)[1];
  auto sizes = node.intsField("qkv_hidden_sizes")
                   .value_or(SmallVector<int64_t>(3, width / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width ||
      sizes[0] != sizes[1] || sizes[0] % count || sizes[2] % count)
    return node.error() << "the " << width << " columns of its weights are not "
                        << "queries, keys and values of " << count << " heads";
  OnnxMath math(node);
  auto all = matrixProduct(node, node.operand(0), node.operand(1));
  if (failed(all))
    return failure();
  if (node.has(2)) {
    if (node.shape(2) != ArrayRef<int64_t>{width})
      return node.error() << "bias is " << node.type(2)
                          << ", wanted a vector of " << width;
    all = math.add(*all, node.operand(2));
  }
  Heads heads;
  heads.mask = 3, heads.bias = 5;
  int64_t offset = 0;
  Value *parts[] = {&heads.query, &heads.key, &heads.value};
  for (auto [part, size] : llvm::zip_equal(parts, sizes)) {
    *part = splitHeads(node, math.slice(*all, 2, offset, size), count);
    offset += size;
  }
  if (node.has(4)) {
    // Keys, then values, of earlier calls: [2, B, N, P, D].
    if (node.rank(4) != 5 || node.shape(4)[0] != 2)
      return node.error() << "past is " << node.type(4)
                          << ", wanted [2, B, N, P, D]";
    heads.past = node.shape(4)[3];
    for (int64_t side : {0, 1}) {
      Value &now = side ? heads.value : heads.key;
      Value past = node.reshape(math.slice(node.operand(4), 0, side, 1),
                                node.shape(4).drop_front());
      auto both = behindPast(node, past, now);
      if (failed(both))
        return failure();
      now = *both;
    }
  }
  auto result = attend(node, heads);
  if (failed(result))
    return failure();
  results.push_back(*result);
  if (node.isUsed(1)) {
    if (heads.key.getType() != heads.value.getType())
      return node.error() << "keys " << heads.key.getType() << " and values "
                          << heads.value.getType()
                          << " do not fit in one result";
    SmallVector<int64_t> one{1};
    llvm::append_range(one, tensorType(heads.key).getShape());
    results.push_back(math.concat(
        {node.reshape(heads.key, one), node.reshape(heads.value, one)}, 0));
  }
  results.resize(node.numResults());
  return success();
}

/// Queries, keys and values; of a model made for GPUs, all three lie in one
/// tensor, [B, S, N, 3, D], or keys and values do, [B, T, N, 2, D].
static LogicalResult unpack(OnnxNode &node, Value (&operands)[3]) {
  if (failed(node.needFloats(0)))
    return failure();
  OnnxMath math(node);
  auto take = [&](unsigned packed, unsigned first) -> LogicalResult {
    ArrayRef<int64_t> shape = node.shape(packed);
    int64_t count = 3 - first;
    if (shape.size() != 5 || shape[3] != count)
      return node.error() << "operand " << packed << " is " << node.type(packed)
                          << ", wanted [B, S, N, " << count
                          << ", D] where others are left out";
    for (int64_t i = 0; i < count; ++i)
      operands[first + i] =
          node.reshape(math.slice(node.operand(packed), 3, i, 1),
                       {shape[0], shape[1], shape[2] * shape[4]});
    return success();
  };
  if (!node.has(1) && !node.has(2))
    return take(0, 0);
  operands[0] = node.operand(0);
  if (failed(node.needFloats(1)))
    return failure();
  if (!node.has(2))
    return take(1, 1);
  if (failed(node.needFloats(2)))
    return failure();
  operands[1] = node.operand(1);
  operands[2] = node.operand(2);
  return success();
}

static LogicalResult convertMultiHead(OnnxNode &node, Results &results) {
  Value operands[3];
  if (failed(unpack(node, operands)))
    return failure();
  if (failed(refuseOthers(node, 8,
                          {"past_sequence_length", "cache_indirection"}, 3)))
    return failure();
  int64_t count = node.intField("num_heads", 0);
  OnnxMath math(node);
  Heads heads;
  heads.mask = 4, heads.bias = 5;
  Value *parts[] = {&heads.query, &heads.key, &heads.value};
  int64_t offset = 0;
  for (unsigned i : {0, 1, 2}) {
    Value x = operands[i];
    ArrayRef<int64_t> shape = tensorType(x).getShape();
    if (i > 0 && shape.size() == 4 && shape[1] == count) {
      *parts[i] = x; // [B, N, T, D] already, from cross attention
      continue;
    }
    if (shape.size() != 3 || count <= 0 || shape[2] % count)
      return node.error() << "operand " << i << " is " << x.getType()
                          << ", wanted [B, S, " << count << " * D]";
    int64_t width = shape[2];
    if (node.has(3)) {
      if (node.rank(3) != 1 || node.shape(3)[0] < offset + width)
        return node.error() << "bias is " << node.type(3)
                            << ", wanted one for queries, keys and values";
      x = math.add(x, math.slice(node.operand(3), 0, offset, width));
      offset += width;
    }
    *parts[i] = splitHeads(node, x, count);
  }
  if (node.has(6) != node.has(7))
    return node.error() << "has past keys or past values, wanted both";
  if (node.has(6)) {
    auto key = behindPast(node, node.operand(6), heads.key);
    auto value = behindPast(node, node.operand(7), heads.value);
    if (failed(key) || failed(value))
      return failure();
    heads.key = *key, heads.value = *value;
    heads.past = node.shape(6)[2];
  }
  auto result = attend(node, heads);
  if (failed(result))
    return failure();
  results.append({*result, heads.key, heads.value});
  results.resize(node.numResults());
  return success();
}

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

/// Positions that follow `first`, a tensor of one number: [1, S].
static Value positionsFrom(OnnxNode &node, Value first, int64_t length) {
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  Value places = math.iota(length, i64, 1, 2);
  return math.add(places, node.reshape(math.cast(first, i64), {1, 1}));
}

static LogicalResult convertRotary(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 2, 3})
    if (failed(node.needFloats(i)))
      return failure();
  if (node.floatField("scale", 1) != 1)
    return node.error() << "scale is " << node.floatField("scale", 1)
                        << ", wanted 1";
  if (node.intField("is_packed_batching", 0))
    return node.error() << "is_packed_batching is not supported";
  int64_t count = node.intField("num_heads", 0), rank = node.rank(0);
  if (rank == 3 && count == 0 && node.rank(2) == 2)
    count = node.shape(0)[2] / std::max<int64_t>(1, 2 * node.shape(2)[1]);
  if (rank != 4 && (rank != 3 || count <= 0 || node.shape(0)[2] % count))
    return node.error() << "operand 0 is " << node.type(0) << " with " << count
                        << " heads, wanted [B, H, S, D] or [B, S, H * D]";
  Value x =
      rank == 4 ? node.operand(0) : splitHeads(node, node.operand(0), count);
  Value positions = node.operand(1);
  if (node.type(1).getNumElements() == 1)
    positions = positionsFrom(node, positions, tensorType(x).getDimSize(2));
  auto rotated = rotateHeads(node, x, node.operand(2), node.operand(3),
                             positions, node.intField("interleaved", 0));
  if (failed(rotated))
    return failure();
  results.push_back(rank == 4 ? *rotated : joinHeads(node, *rotated));
  return success();
}

//===----------------------------------------------------------------------===//
// GroupQueryAttention
//===----------------------------------------------------------------------===//

namespace {
/// Queries [B, N, S, D]; keys and values [B, K, L, D] with what earlier calls
/// left; and where the first query stands among the keys.
struct Groups {
  Value query, key, value;
  int64_t past = 0; // the rows that operands 3 and 4 bring
  Value start;      // [B, 1, 1, 1], null for 0
};
} // namespace

/// Splits operands 0 to 2, of which 0 may hold all three, to heads.
static FailureOr<Groups> splitGroups(OnnxNode &node) {
  OnnxMath math(node);
  int64_t heads = node.intField("num_heads", 0),
          kvHeads = node.intField("kv_num_heads", 0);
  Value parts[] = {node.operand(0), node.operand(1), node.operand(2)};
  bool isPacked = !parts[1] && !parts[2];
  int64_t columns = isPacked ? heads + 2 * kvHeads : heads;
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads || node.rank(0) != 3 ||
      node.shape(0)[2] % columns)
    return node.error() << "query is " << node.type(0) << " with " << heads
                        << " heads over " << kvHeads
                        << ", wanted [B, S, heads * D]";
  int64_t size = node.shape(0)[2] / columns;
  SmallVector<int64_t> kvShape{node.shape(0)[0], node.shape(0)[1],
                               kvHeads * size};
  if (isPacked) {
    Value all = parts[0];
    parts[0] = math.slice(all, 2, 0, heads * size);
    parts[1] = math.slice(all, 2, heads * size, kvShape[2]);
    parts[2] = math.slice(all, 2, (heads + kvHeads) * size, kvShape[2]);
  } else {
    for (unsigned i : {1, 2}) {
      if (failed(node.needFloats(i)))
        return failure();
      if (node.type(i) != node.type(0).clone(kvShape))
        return node.error() << "operand " << i << " is " << node.type(i)
                            << ", wanted " << node.type(0).clone(kvShape);
    }
  }
  return Groups{splitHeads(node, parts[0], heads),
                splitHeads(node, parts[1], kvHeads),
                splitHeads(node, parts[2], kvHeads), 0, Value()};
}

/// Where earlier calls left off: `start`, and `past` if operands 3 and 4 bring
/// rows.
static LogicalResult findStart(OnnxNode &node, Groups &groups) {
  if (node.has(3) != node.has(4))
    return node.error() << "has past keys or past values, wanted both";
  if (!node.has(3))
    return success();
  OnnxMath math(node);
  int64_t batch = node.shape(0)[0], length = node.shape(0)[1];
  RankedTensorType now = tensorType(groups.key);
  for (unsigned i : {3, 4}) {
    SmallVector<int64_t> wanted(now.getShape());
    wanted[2] = node.rank(3) == 4 ? node.shape(3)[2] : 0;
    if (node.type(i) != now.clone(wanted))
      return node.error() << "operand " << i << " is " << node.type(i)
                          << ", wanted " << now.clone(wanted);
  }
  groups.past = node.shape(3)[2];
  if (!groups.past)
    return success();
  if (!node.has(5) || !node.has(6))
    return node.error() << "has a past but no seqlens_k and "
                           "total_sequence_length, operands 5 and 6";
  auto total = node.constantInts(6, "total_sequence_length");
  if (failed(total))
    return failure();
  if (total->size() != 1 || total->front() < length ||
      total->front() > groups.past + length)
    return node.error() << "total_sequence_length is [" << *total
                        << "], wanted one of " << length << " to "
                        << groups.past + length;
  // The first call fills buffers that are there already.
  if (total->front() == length)
    return success();
  if (node.shape(5) != ArrayRef<int64_t>{batch})
    return node.error() << "seqlens_k is " << node.type(5) << ", wanted ["
                        << batch << "]";
  Value last = math.cast(node.operand(5), node.builder().getI64Type());
  groups.start =
      node.reshape(math.add(last, double(1 - length)), {batch, 1, 1, 1});
  return success();
}

static LogicalResult rotateGroups(OnnxNode &node, Groups &groups) {
  if (!node.intField("do_rotary", 0))
    return success();
  OnnxMath math(node);
  if (!node.has(7) || !node.has(8))
    return node.error() << "has do_rotary but no tables, operands 7 and 8";
  Type i64 = node.builder().getI64Type();
  int64_t batch = node.shape(0)[0], length = node.shape(0)[1];
  Value positions;
  if (groups.start && node.has(9)) {
    positions = math.cast(node.operand(9), i64);
  } else if (groups.start) {
    positions = math.add(math.iota(length, i64, 1, 2),
                         node.reshape(groups.start, {batch, 1}));
  } else if (node.has(9)) {
    // Of the first call, all positions follow the very first.
    Value flat = node.reshape(node.operand(9), {node.type(9).getNumElements()});
    positions = positionsFrom(node, math.slice(flat, 0, 0, 1), length);
  } else {
    positions = math.iota(length, i64, 1, 2);
  }
  for (Value *side : {&groups.query, &groups.key}) {
    auto rotated =
        rotateHeads(node, *side, node.operand(7), node.operand(8), positions,
                    node.intField("rotary_interleaved", 0));
    if (failed(rotated))
      return failure();
    *side = *rotated;
  }
  return success();
}

/// Writes the new keys and values behind what each sample has: row j is the
/// past's j, then the new ones.
static void appendToPast(OnnxNode &node, Groups &groups, int64_t total) {
  if (!groups.past)
    return;
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  ArrayRef<int64_t> shape = tensorType(groups.key).getShape();
  int64_t rows = std::max(groups.past, total), given = groups.past + shape[2];
  Value start = groups.start ? groups.start : math.splat({1, 1, 1, 1}, i64, 0);
  Value row = math.iota(rows, i64, 2, 4);
  Value isNew =
      math.both(math.compare(P::ge, row, start),
                math.compare(P::lt, row, math.add(start, double(shape[2]))));
  Value fresh = math.add(math.sub(row, start), double(groups.past));
  Value from = math.select(isNew, fresh, math.min(row, double(given - 1)));
  from = node.broadcast(from, {shape[0], shape[1], rows, 1});
  for (auto [past, now] : {std::pair(3u, &groups.key), {4u, &groups.value}}) {
    Value all = math.concat({node.operand(past), *now}, 2);
    *now = node.create<het::GatherNdOp>(all, from, int64_t(2));
  }
}

/// Whether each query may see each key, [.., S, T]; null where all may, or
/// where the order alone decides.
static Value visibleKeys(OnnxNode &node, const Groups &groups, bool isOrdered) {
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  int64_t queries = tensorType(groups.query).getDimSize(2),
          keys = tensorType(groups.key).getDimSize(2),
          window = node.intField("local_window_size", -1);
  Value key = math.iota(keys, i64, 3, 4), place = math.iota(queries, i64, 2, 4);
  Value end = math.splat({1, 1, 1, 1}, i64, queries);
  if (groups.start) {
    place = math.add(place, groups.start);
    end = math.add(groups.start, double(queries));
  }
  Value visible;
  if (!node.intField("causal", 1)) {
    if (keys > queries)
      visible = math.compare(P::lt, key, end);
  } else if (!isOrdered) {
    visible = math.compare(P::le, key, place);
  }
  // Its own place included.
  if (window >= 0 && keys > window) {
    Value isNear =
        math.compare(P::ge, key, math.add(place, double(1 - window)));
    visible = visible ? math.both(visible, isNear) : isNear;
  }
  return visible;
}

/// Step by step: caps on scores, and mass that goes to no key.
static Value attendInSteps(OnnxNode &node, const Groups &groups, Value visible,
                           Value bias) {
  OnnxMath math(node);
  ArrayRef<int64_t> q = tensorType(groups.query).getShape(),
                    k = tensorType(groups.key).getShape();
  int64_t repeats = q[1] / k[1];
  Value scores =
      multiplyHeads(node, math.mul(groups.query, scaleOf(node, groups.query)),
                    repeatHeads(node, groups.key, repeats), 3);
  if (double cap = node.floatField("softcap", 0))
    scores = math.mul(math.tanh(math.div(scores, cap)), cap);
  if (bias)
    scores = math.add(scores, bias);
  if (visible)
    scores = math.select(visible, scores, math.like(scores, -INFINITY));
  // A column of its own, whose weight is then dropped.
  bool hasSink = node.has(11) || node.intField("smooth_softmax", 0) > 0;
  if (hasSink) {
    Value sink =
        node.has(11)
            ? node.reshape(node.operand(11), {1, q[1], 1, 1})
            : math.splat({1, 1, 1, 1}, tensorType(scores).getElementType(), 0);
    sink = node.broadcast(sink, {q[0], q[1], q[2], 1});
    scores = math.concat({scores, sink}, 3);
  }
  Value weights = node.create<het::SoftmaxOp>(scores, /*zero_empty_rows=*/true);
  if (hasSink)
    weights = math.slice(weights, 3, 0, k[2]);
  return multiplyHeads(node, weights, repeatHeads(node, groups.value, repeats),
                       2);
}

static LogicalResult convertGroupQuery(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) ||
      failed(refuseOthers(node, 12, {"k_scale", "v_scale"}, 3)))
    return failure();
  for (StringRef field : {"k_quant_type", "v_quant_type"})
    if (node.stringField(field, "NONE") != "NONE")
      return node.error() << field << " is " << node.stringField(field, "")
                          << ", wanted NONE";
  if (node.intField("sliding_window_cache", 0))
    return node.error() << "sliding_window_cache is not supported";
  auto groups = splitGroups(node);
  if (failed(groups) || failed(findStart(node, *groups)) ||
      failed(rotateGroups(node, *groups)))
    return failure();
  OnnxMath math(node);
  int64_t length = node.shape(0)[1], total = length;
  if (groups->start)
    total = node.constantInts(6, "total_sequence_length")->front();
  appendToPast(node, *groups, total);

  SmallVector<int64_t> scores(tensorType(groups->query).getShape());
  scores[3] = tensorType(groups->key).getDimSize(2);
  Type element = node.type(0).getElementType();
  if (node.has(10) && failed(needBias(node, 10, scores, element)))
    return failure();
  Value bias = node.has(10) ? node.operand(10) : Value();
  if (node.has(11) && node.shape(11) != ArrayRef<int64_t>{scores[1]})
    return node.error() << "head_sink is " << node.type(11)
                        << ", wanted a vector of " << scores[1];

  bool isOrdered = node.intField("causal", 1) && !groups->past;
  bool inSteps = node.floatField("softcap", 0) != 0 || node.has(11) ||
                 node.intField("smooth_softmax", 0) > 0 || !element.isF32();
  Value visible = visibleKeys(node, *groups, isOrdered && !inSteps);
  Value result;
  if (inSteps) {
    result = attendInSteps(node, *groups, visible, bias);
  } else {
    if (bias && visible)
      visible = math.select(visible, bias, math.like(bias, -INFINITY));
    else if (bias)
      visible = bias;
    result = attention(node, groups->query, groups->key, groups->value, visible,
                       scaleOf(node, groups->query), isOrdered,
                       /*zeroEmptyRows=*/false);
  }
  results.append({joinHeads(node, result), groups->key, groups->value});
  results.resize(node.numResults());
  return success();
}

void autohet::addContribAttentionHandlers(OnnxHandlers &handlers) {
  handlers["com.microsoft::Attention"] = convertAttention;
  handlers["com.microsoft::MultiHeadAttention"] = convertMultiHead;
  handlers["com.microsoft::RotaryEmbedding"] = convertRotary;
  handlers["com.microsoft::GroupQueryAttention"] = convertGroupQuery;
}
