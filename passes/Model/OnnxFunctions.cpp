//===- OnnxFunctions.cpp - operators that ONNX defines by others ----------===//
//
// The standard gives most of these a body of other operators. Each is that
// formula, with the extents that are known here.
//
//===----------------------------------------------------------------------===//

#include "OnnxMath.h"
#include "autohet/Support/Extents.h"

#include <cmath>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;
using Predicate = het::ComparePredicate;

//===----------------------------------------------------------------------===//
// Elementwise and norms
//===----------------------------------------------------------------------===//

/// x + bias below -lambd, x - bias above lambd, 0 between.
static LogicalResult convertShrink(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  OnnxMath math(node);
  Value x = node.operand(0);
  double bias = node.floatField("bias", 0),
         lambd = node.floatField("lambd", 0.5);
  Value below = math.compare(Predicate::lt, x, -lambd),
        above = math.compare(Predicate::gt, x, lambd);
  Value upper = math.select(above, math.add(x, -bias), math.like(x, 0));
  results.push_back(math.select(below, math.add(x, bias), upper));
  return success();
}

/// (x - mean) / (deviation + 1e-9), over all dims but the channels by default.
static LogicalResult convertMeanVarianceNorm(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  SmallVector<int64_t> given =
      node.intsField("axes").value_or(SmallVector<int64_t>{0, 2, 3});
  auto dims = node.normalizeAxes(given, node.rank(0));
  if (failed(dims))
    return failure();
  OnnxMath math(node);
  Value centered = math.sub(node.operand(0), math.mean(node.operand(0), *dims));
  Value variance = math.mean(math.mul(centered, centered), *dims);
  results.push_back(math.div(centered, math.add(math.sqrt(variance), 1e-9)));
  return success();
}

/// Rows divided by their norm, of order 1 or 2; rows of zeros stay.
static LogicalResult convertLpNorm(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", -1), node.rank(0));
  if (failed(axis))
    return failure();
  int64_t order = node.intField("p", 2);
  if (order != 1 && order != 2)
    return node.error() << "p is " << order << ", wanted 1 or 2";
  OnnxMath math(node);
  Value x = node.operand(0);
  Value size = order == 1 ? math.sum(math.abs(x), *axis)
                          : math.sqrt(math.sum(math.mul(x, x), *axis));
  Value isZero = math.compare(Predicate::eq, size, 0);
  results.push_back(math.div(x, math.select(isZero, math.like(size, 1), size)));
  return success();
}

/// (x - zero point) * scale, where both are one number, one a place along
/// `axis`, or one a block of places there.
static LogicalResult convertDequantize(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)) || failed(node.needFloats(1)))
    return failure();
  OnnxMath math(node);
  ArrayRef<int64_t> x = node.shape(0), scale = node.shape(1);
  int64_t block = node.intField("block_size", 0);
  Type element = node.type(1).getElementType();
  if (int64_t number = node.intField("output_dtype", 0)) {
    element = onnxElementType(number, node.builder().getContext());
    if (!isa_and_present<FloatType>(element))
      return node.error() << "output_dtype is " << number
                          << ", wanted a type of floats";
  }
  // What scale and zero point become, to lie along the operand.
  SmallVector<int64_t> along, repeated, whole(x);
  if (!scale.empty() && node.type(1).getNumElements() != 1 && !block) {
    auto axis = node.normalizeAxis(node.intField("axis", 1), node.rank(0));
    if (failed(axis))
      return failure();
    along.assign(x.size(), 1);
    along[*axis] = x[*axis];
    if (scale != ArrayRef<int64_t>{x[*axis]})
      return node.error() << "scale is " << node.type(1) << ", wanted one for "
                          << "each of the " << x[*axis] << " places along dim "
                          << *axis;
  } else if (block) {
    auto axis = node.normalizeAxis(node.intField("axis", 1), node.rank(0));
    if (failed(axis))
      return failure();
    SmallVector<int64_t> blocks(x);
    blocks[*axis] = block > 0 ? llvm::divideCeil(x[*axis], block) : 0;
    if (block < 0 || scale != ArrayRef<int64_t>(blocks) ||
        blocks[*axis] * block != x[*axis])
      return node.error() << "scale is " << node.type(1)
                          << ", wanted one for each block of " << block
                          << " along dim " << *axis << " of " << node.type(0);
    along = blocks;
    along.insert(along.begin() + *axis + 1, 1);
    repeated = along;
    repeated[*axis + 1] = block;
  }
  auto lay = [&](Value value) {
    value = node.reshape(value, along);
    if (repeated.empty())
      return value;
    return node.reshape(node.broadcast(value, repeated), whole);
  };
  // In float32: halves hold neither all integers nor the products.
  Type wide = node.builder().getF32Type();
  Value result = math.cast(node.operand(0), wide);
  if (node.has(2)) {
    if (node.type(2) != node.type(1).clone(node.type(0).getElementType()))
      return node.error() << "zero point is " << node.type(2) << ", wanted "
                          << node.type(1).clone(node.type(0).getElementType());
    result = math.sub(result, lay(math.cast(node.operand(2), wide)));
  }
  result = math.mul(result, lay(math.cast(node.operand(1), wide)));
  results.push_back(math.cast(result, element));
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Blocks of places become channels, or channels blocks of places.
static LogicalResult convertBlocks(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  bool toPlaces = node.opType() == "DepthToSpace";
  int64_t block = node.intField("blocksize", 0);
  ArrayRef<int64_t> x = node.shape(0);
  // So small that no product of extents overflows.
  bool fits = x.size() == 4 && block > 0 && block <= 1024 &&
              (toPlaces ? x[1] % (block * block) == 0
                        : x[2] % block == 0 && x[3] % block == 0);
  if (!fits)
    return node.error() << node.type(0) << " has no blocks of " << block
                        << " by " << block
                        << ", wanted [N, C, H, W] and at most 1024";
  StringRef mode = node.stringField("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return node.error() << "mode is '" << mode << "', wanted DCR or CRD";
  int64_t n = x[0], c = x[1], h = x[2], w = x[3];
  if (!toPlaces) {
    Value split = node.reshape(node.operand(0),
                               {n, c, h / block, block, w / block, block});
    results.push_back(
        node.reshape(node.transpose(split, {0, 3, 5, 1, 2, 4}),
                     {n, c * block * block, h / block, w / block}));
    return success();
  }
  int64_t depth = c / (block * block);
  bool depthLast = mode == "DCR";
  Value split =
      node.reshape(node.operand(0),
                   depthLast ? ArrayRef<int64_t>{n, block, block, depth, h, w}
                             : ArrayRef<int64_t>{n, depth, block, block, h, w});
  Value moved = depthLast ? node.transpose(split, {0, 3, 4, 1, 5, 2})
                          : node.transpose(split, {0, 1, 4, 2, 5, 3});
  results.push_back(node.reshape(moved, {n, depth, h * block, w * block}));
  return success();
}

/// Cut or filled up with zeros around the middle.
static LogicalResult convertCenterCropPad(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto wanted = node.constantInts(1, "shape");
  if (failed(wanted))
    return failure();
  auto axes = node.intsField("axes").value_or(
      llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0))));
  if (axes.size() != wanted->size())
    return node.error() << "shape [" << *wanted << "] and axes [" << axes
                        << "] have different lengths";
  OnnxMath math(node);
  Value x = node.operand(0);
  Type element = node.type(0).getElementType();
  for (auto [signedAxis, extent] : llvm::zip_equal(axes, *wanted)) {
    auto axis = node.normalizeAxis(signedAxis, node.rank(0));
    if (failed(axis))
      return failure();
    if (extent < 0)
      return node.error() << "shape [" << *wanted << "] has a negative extent";
    if (extent > kMaxElements)
      return node.error() << "shape [" << *wanted
                          << "] has an extent of more than 2^40";
    SmallVector<int64_t> shape(tensorType(x).getShape());
    int64_t more = extent - shape[*axis];
    if (more < 0)
      x = math.slice(x, *axis, -more / 2, extent);
    auto zeros = [&](int64_t count) {
      shape[*axis] = count;
      return math.splat(shape, element, 0);
    };
    if (more > 0) {
      SmallVector<Value> parts = {x, zeros(more - more / 2)};
      if (more / 2)
        parts.insert(parts.begin(), zeros(more / 2));
      x = math.concat(parts, *axis);
    }
  }
  results.push_back(x);
  return success();
}

//===----------------------------------------------------------------------===//
// Sequences without attention
//===----------------------------------------------------------------------===//

/// Each channel [B, C, L] with its own kernel [C, 1, K], which sees the past
/// only: a sum of K shifted products.
static LogicalResult convertCausalConv(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) || failed(node.needFloats(1)))
    return failure();
  OnnxMath math(node);
  ArrayRef<int64_t> x = node.shape(0), w = node.shape(1);
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    return node.error() << "input " << node.type(0) << " and weight "
                        << node.type(1)
                        << " do not fit, wanted [B, C, L] and [C, 1, K]";
  int64_t batch = x[0], channels = x[1], length = x[2], taps = w[2];
  SmallVector<int64_t> pastShape{batch, channels, taps - 1};
  Value past = node.has(3)
                   ? node.operand(3)
                   : math.splat(pastShape, node.type(0).getElementType(), 0);
  if (past.getType() != node.type(0).clone(pastShape))
    return node.error() << "past_state is " << past.getType() << ", wanted "
                        << node.type(0).clone(pastShape);
  Value all =
      taps > 1 ? math.concat({past, node.operand(0)}, 2) : node.operand(0);
  Value sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Value weight =
        node.reshape(math.slice(node.operand(1), 2, tap, 1), {channels, 1});
    Value term = math.mul(math.slice(all, 2, tap, length), weight);
    sum = sum ? math.add(sum, term) : term;
  }
  if (node.has(2)) {
    if (node.shape(2) != ArrayRef<int64_t>{channels})
      return node.error() << "bias is " << node.type(2)
                          << ", wanted one a channel, " << channels;
    sum = math.add(sum, node.reshape(node.operand(2), {channels, 1}));
  }
  StringRef activation = node.stringField("activation", "none");
  if (activation == "silu" || activation == "swish")
    sum = node.create<het::SiluOp>(sum);
  else if (activation != "none")
    return node.error() << "activation is '" << activation
                        << "', wanted none, silu or swish";
  results.append({sum, math.slice(all, 2, length, taps - 1)});
  results.resize(node.numResults());
  return success();
}

/// A state [B, H, Dk, Dv] that each token decays and adds to, and each query
/// reads. Written out token by token.
static LogicalResult convertLinearAttention(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  constexpr int64_t kMostTokens = 1024;
  StringRef rule = node.stringField("update_rule", "gated_delta");
  bool isGated = rule == "gated" || rule == "gated_delta",
       isDelta = rule == "delta" || rule == "gated_delta";
  if (!isGated && !isDelta && rule != "linear")
    return node.error() << "update_rule is '" << rule
                        << "', wanted linear, gated, delta or gated_delta";
  int64_t queryHeads = node.intField("q_num_heads", 0),
          heads = node.intField("kv_num_heads", 0);
  ArrayRef<int64_t> q = node.shape(0), k = node.shape(1), v = node.shape(2);
  bool fits = queryHeads > 0 && heads > 0 && queryHeads % heads == 0 &&
              q.size() == 3 && k.size() == 3 && v.size() == 3 &&
              q.take_front(2) == k.take_front(2) &&
              q.take_front(2) == v.take_front(2) && q[2] % queryHeads == 0 &&
              k[2] == q[2] / queryHeads * heads && v[2] % heads == 0;
  if (!fits)
    return node.error() << "query [" << q << "], key [" << k << "] and value ["
                        << v << "] do not fit " << queryHeads << " and "
                        << heads << " heads";
  if ((isGated && !node.has(4)) || (isDelta && !node.has(5)))
    return node.error() << "has no "
                        << (isGated && !node.has(4) ? "decay" : "beta")
                        << ", which update_rule '" << rule << "' needs";
  int64_t batch = q[0], tokens = q[1], keySize = k[2] / heads,
          valueSize = v[2] / heads, groups = queryHeads / heads;
  if (tokens > kMostTokens)
    return node.error() << "has " << tokens << " tokens, which are written out "
                        << "one by one: wanted at most " << kMostTokens;
  OnnxMath math(node);
  Type element = node.type(0).getElementType();
  SmallVector<int64_t> stateShape{batch, heads, keySize, valueSize};
  Value state =
      node.has(3) ? node.operand(3) : math.splat(stateShape, element, 0);
  if (tensorType(state).getShape() != ArrayRef<int64_t>(stateShape))
    return node.error() << "past_state is " << state.getType() << ", wanted ["
                        << stateShape << "]";
  double scale = node.floatField("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(keySize));

  auto tokenOf = [&](unsigned index, int64_t token, ArrayRef<int64_t> shape) {
    return node.reshape(math.slice(node.operand(index), 1, token, 1), shape);
  };
  // A number a head, or one a head and key; of beta, one for all heads too.
  auto gateShape = [&](unsigned index) -> FailureOr<SmallVector<int64_t>> {
    ArrayRef<int64_t> shape = node.shape(index);
    int64_t last = shape.empty() ? 0 : shape.back();
    if (shape.size() == 3 && shape.take_front(2) == q.take_front(2)) {
      if (last == heads)
        return SmallVector<int64_t>{batch, heads, 1, 1};
      if (index == 4 && last == heads * keySize)
        return SmallVector<int64_t>{batch, heads, keySize, 1};
      if (index == 5 && last == 1)
        return SmallVector<int64_t>{batch, 1, 1, 1};
    }
    return node.error() << (index == 4 ? "decay" : "beta") << " is "
                        << node.type(index) << ", wanted one number a head";
  };
  FailureOr<SmallVector<int64_t>> decayShape = SmallVector<int64_t>(),
                                  betaShape = SmallVector<int64_t>();
  if (isGated)
    decayShape = gateShape(4);
  if (isDelta)
    betaShape = gateShape(5);
  if (failed(decayShape) || failed(betaShape))
    return failure();

  SmallVector<Value> outputs;
  for (int64_t t = 0; t < tokens; ++t) {
    Value key = tokenOf(1, t, {batch, heads, keySize, 1});
    Value value = tokenOf(2, t, {batch, heads, 1, valueSize});
    if (isGated)
      state = math.mul(state, math.exp(tokenOf(4, t, *decayShape)));
    if (isDelta) {
      Value known = math.sum(math.mul(state, key), {2});
      value = math.mul(math.sub(value, known), tokenOf(5, t, *betaShape));
    }
    state = math.add(state, math.mul(key, value));
    Value query = tokenOf(0, t, {batch, heads, groups, keySize, 1});
    Value each = node.reshape(state, {batch, heads, 1, keySize, valueSize});
    Value read = math.mul(math.sum(math.mul(query, each), {3}), scale);
    outputs.push_back(node.reshape(read, {batch, 1, queryHeads * valueSize}));
  }
  if (outputs.empty())
    return node.error() << "has no tokens";
  results.append({math.concat(outputs, 1), state});
  results.resize(node.numResults());
  return success();
}

void autohet::addFunctionHandlers(OnnxHandlers &handlers) {
  handlers["Shrink"] = convertShrink;
  handlers["MeanVarianceNormalization"] = convertMeanVarianceNorm;
  handlers["LpNormalization"] = convertLpNorm;
  handlers["DequantizeLinear"] = convertDequantize;
  handlers["DepthToSpace"] = convertBlocks;
  handlers["SpaceToDepth"] = convertBlocks;
  handlers["CenterCropPad"] = convertCenterCropPad;
  handlers["CausalConvWithState"] = convertCausalConv;
  handlers["LinearAttention"] = convertLinearAttention;
}
