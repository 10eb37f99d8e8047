//===- OnnxOrder.cpp - order, running sums and scattered updates ----------===//
//
// Element-wise gathers and scatters name a place by one index and their own
// position; het has index tuples, in which the position is written out.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "OnnxMath.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

template <het::ReduceKind kind>
static LogicalResult convertArgReduce(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  if (node.shape(0)[*axis] == 0)
    return node.error() << "dim " << *axis << " of " << node.type(0)
                        << " has no elements";
  Value place = node.create<het::ArgReduceOp>(
      kind, node.operand(0), *axis,
      bool(node.intField("select_last_index", 0)));
  if (node.intField("keepdims", 1)) {
    SmallVector<int64_t> kept(node.shape(0));
    kept[*axis] = 1;
    place = node.reshape(place, kept);
  }
  results.push_back(place);
  return success();
}

static LogicalResult convertTopK(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", -1), node.rank(0));
  if (failed(axis))
    return failure();
  int64_t k = node.intField("k", 0);
  if (node.opset() >= 10) {
    if (failed(node.needOperands(2)))
      return failure();
    auto given = node.constantInts(1, "k");
    if (failed(given))
      return failure();
    k = given->size() == 1 ? given->front() : -1;
  }
  int64_t extent = node.shape(0)[*axis], last = node.rank(0) - 1;
  if (k < 0 || k > extent)
    return node.error() << "takes " << k << " of the " << extent
                        << " elements along dim " << *axis;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)));
  std::swap(order[*axis], order[last]);
  Value x = node.operand(0);
  if (*axis != last)
    x = node.transpose(x, order);
  SmallVector<Value> top;
  node.builder().createOrFold<het::TopKOp>(top, node.loc(), x, k,
                                           bool(node.intField("largest", 1)));
  for (Value result : top)
    results.push_back(*axis == last ? result : node.transpose(result, order));
  return success();
}

static LogicalResult convertCumSum(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto given = node.constantInts(1, "axis");
  if (failed(given))
    return failure();
  if (given->size() != 1)
    return node.error() << "axis is " << node.type(1) << ", wanted one number";
  auto axis = node.normalizeAxis(given->front(), node.rank(0));
  if (failed(axis))
    return failure();
  results.push_back(node.create<het::CumulativeSumOp>(
      node.operand(0), *axis, bool(node.intField("exclusive", 0)),
      bool(node.intField("reverse", 0))));
  return success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// Tuples [shape of indices, rank]: the position itself, but for `axis`, where
/// it is the index.
static Value tuplesOf(OnnxNode &node, Value indices, int64_t axis) {
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  SmallVector<int64_t> shape(tensorType(indices).getShape());
  int64_t rank = shape.size();
  SmallVector<int64_t> column(shape);
  column.push_back(1);
  SmallVector<Value> columns;
  for (int64_t d = 0; d < rank; ++d) {
    Value place =
        d == axis ? math.cast(indices, i64)
                  : node.broadcast(math.iota(shape[d], i64, d, rank), shape);
    columns.push_back(node.reshape(place, column));
  }
  return math.concat(columns, rank);
}

/// Whether indices have the operand's rank, and fit in it but for `axis`.
static FailureOr<int64_t> elementAxis(OnnxNode &node) {
  auto axis = node.normalizeAxis(node.intField("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  bool fits = isa<IntegerType>(node.type(1).getElementType()) &&
              node.rank(1) == node.rank(0);
  for (int64_t d = 0; fits && d < node.rank(0); ++d)
    fits = d == *axis || node.shape(1)[d] <= node.shape(0)[d];
  if (!fits)
    return node.error() << "indices " << node.type(1) << " do not fit "
                        << node.type(0);
  return *axis;
}

static LogicalResult convertGatherElements(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto axis = elementAxis(node);
  if (failed(axis))
    return failure();
  results.push_back(node.create<het::GatherNdOp>(
      node.operand(0), tuplesOf(node, node.operand(1), *axis), int64_t(0)));
  return success();
}

static FailureOr<het::ScatterKind> scatterKind(OnnxNode &node) {
  StringRef reduction = node.stringField("reduction", "none");
  if (reduction == "none")
    return het::ScatterKind::replace;
  if (auto kind = het::symbolizeScatterKind(reduction))
    return *kind;
  return node.error() << "reduction is '" << reduction
                      << "', wanted none, add, mul, max or min";
}

/// Updates written out one after another, each of them at all places of a row
/// that are its own: the operand's rows stay apart, and their gradients too.
static Value updateInTurn(OnnxNode &node, het::ScatterKind kind, int64_t axis) {
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  Value place = math.iota(node.shape(0)[axis], i64, axis, node.rank(0));
  Value result = node.operand(0);
  for (int64_t turn = 0; turn < node.shape(1)[axis]; ++turn) {
    Value index = math.cast(math.slice(node.operand(1), axis, turn, 1), i64);
    Value isHere = math.compare(het::ComparePredicate::eq, index, place);
    Value update = math.slice(node.operand(2), axis, turn, 1);
    switch (kind) {
    case het::ScatterKind::replace:
      break;
    case het::ScatterKind::add:
      update = math.add(result, update);
      break;
    case het::ScatterKind::mul:
      update = math.mul(result, update);
      break;
    case het::ScatterKind::max:
      update = math.max(result, update);
      break;
    case het::ScatterKind::min:
      update = math.min(result, update);
      break;
    }
    result = math.select(isHere, update, result);
  }
  return result;
}

/// Whether indices are places in the operand's rows that an order has found,
/// as a router's are: few, and none outside.
static bool areFewPlaces(OnnxNode &node, int64_t axis) {
  constexpr int64_t kMost = 32;
  if (node.shape(1)[axis] > kMost ||
      !isPlaceWithin(node.operand(1), node.shape(0)[axis]))
    return false;
  for (int64_t d = 0; d < node.rank(0); ++d)
    if (d != axis && node.shape(1)[d] != node.shape(0)[d])
      return false;
  return true;
}

static LogicalResult convertScatterElements(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(3)))
    return failure();
  auto axis = elementAxis(node);
  auto kind = scatterKind(node);
  if (failed(axis) || failed(kind))
    return failure();
  if (node.shape(2) != node.shape(1) ||
      node.type(2).getElementType() != node.type(0).getElementType())
    return node.error() << "updates " << node.type(2) << " do not fit indices "
                        << node.type(1) << " of " << node.type(0);
  if (areFewPlaces(node, *axis)) {
    results.push_back(updateInTurn(node, *kind, *axis));
    return success();
  }
  results.push_back(node.create<het::ScatterNdOp>(
      *kind, node.operand(0), tuplesOf(node, node.operand(1), *axis),
      node.operand(2)));
  return success();
}

static LogicalResult convertScatterNd(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(3)))
    return failure();
  auto kind = scatterKind(node);
  if (failed(kind))
    return failure();
  int64_t tuple = node.rank(1) ? node.shape(1).back() : -1;
  SmallVector<int64_t> wanted;
  if (tuple >= 0 && tuple <= node.rank(0)) {
    wanted.assign(node.shape(1).drop_back().begin(),
                  node.shape(1).drop_back().end());
    llvm::append_range(wanted, node.shape(0).drop_front(tuple));
  }
  if (tuple < 0 || tuple > node.rank(0) ||
      !isa<IntegerType>(node.type(1).getElementType()) ||
      node.shape(2) != ArrayRef<int64_t>(wanted) ||
      node.type(2).getElementType() != node.type(0).getElementType())
    return node.error() << "indices " << node.type(1) << " and updates "
                        << node.type(2) << " do not fit " << node.type(0);
  results.push_back(node.create<het::ScatterNdOp>(
      *kind, node.operand(0), node.operand(1), node.operand(2)));
  return success();
}

/// Writes `update` into a cache from each sample's place on.
static LogicalResult convertTensorScatter(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", -2), node.rank(0));
  if (failed(axis))
    return failure();
  int64_t rank = node.rank(0);
  SmallVector<int64_t> wanted(node.shape(0));
  if (node.rank(1) == rank)
    wanted[*axis] = node.shape(1)[*axis];
  if (*axis == 0 || node.shape(1) != ArrayRef<int64_t>(wanted) ||
      wanted[*axis] > node.shape(0)[*axis])
    return node.error() << "update " << node.type(1)
                        << " does not fit into the cache " << node.type(0)
                        << " along dim " << *axis;
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  Value place = math.iota(wanted[*axis], i64, *axis, rank);
  if (node.has(2)) {
    SmallVector<int64_t> perSample(rank, 1);
    perSample[0] = node.shape(0)[0];
    if (node.type(2).getNumElements() != perSample[0])
      return node.error() << "write_indices are " << node.type(2)
                          << ", wanted one a sample, " << perSample[0];
    Value first = math.cast(node.reshape(node.operand(2), perSample), i64);
    place = math.add(first, place);
  }
  StringRef mode = node.stringField("mode", "linear");
  if (mode == "circular")
    place = node.create<het::ModOp>(
        place, math.like(place, double(node.shape(0)[*axis])));
  else if (mode != "linear")
    return node.error() << "mode is '" << mode
                        << "', wanted linear or circular";
  Value indices = node.broadcast(place, wanted);
  results.push_back(node.create<het::ScatterNdOp>(
      het::ScatterKind::replace, node.operand(0),
      tuplesOf(node, indices, *axis), node.operand(1)));
  return success();
}

//===----------------------------------------------------------------------===//
// Ones in places
//===----------------------------------------------------------------------===//

/// values[1] where the position along the new dim is the index, else values[0].
static LogicalResult convertOneHot(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(3)))
    return failure();
  FailureOr<SmallVector<int64_t>> depth = SmallVector<int64_t>();
  if (isFloatTensor(node.operand(1))) {
    auto number = node.constantFloat(1, "depth");
    if (failed(number))
      return failure();
    depth->push_back(int64_t(*number));
  } else {
    depth = node.constantInts(1, "depth");
    if (failed(depth))
      return failure();
  }
  int64_t rank = node.rank(0) + 1;
  auto axis = node.normalizeAxis(node.intField("axis", -1), rank);
  if (failed(axis))
    return failure();
  if (depth->size() != 1 || depth->front() < 0 || node.rank(2) != 1 ||
      node.shape(2)[0] != 2)
    return node.error() << "depth " << node.type(1) << " and values "
                        << node.type(2) << ", wanted a number and two values";
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  SmallVector<int64_t> shape(node.shape(0));
  shape.insert(shape.begin() + *axis, 1);
  Value index = node.reshape(math.cast(node.operand(0), i64), shape);
  // Negative ones count from the end.
  Value isNegative = math.compare(het::ComparePredicate::lt, index, 0);
  index =
      math.select(isNegative, math.add(index, double(depth->front())), index);
  Value hot = math.compare(het::ComparePredicate::eq, index,
                           math.iota(depth->front(), i64, *axis, rank));
  auto value = [&](int64_t which) {
    return node.reshape(math.slice(node.operand(2), 0, which, 1), {});
  };
  results.push_back(math.select(hot, value(1), value(0)));
  return success();
}

static LogicalResult convertEyeLike(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  if (node.rank(0) != 2)
    return node.error() << "operand 0 is " << node.type(0)
                        << ", wanted a matrix";
  Type element = node.type(0).getElementType();
  if (node.hasField("dtype"))
    element =
        onnxElementType(node.intField("dtype", 0), node.builder().getContext());
  if (!element)
    return node.error() << "dtype " << node.intField("dtype", 0)
                        << " is not supported";
  OnnxMath math(node);
  Type i64 = node.builder().getI64Type();
  Value row = math.iota(node.shape(0)[0], i64, 0, 2);
  row = math.add(row, double(node.intField("k", 0)));
  Value hot = math.compare(het::ComparePredicate::eq, row,
                           math.iota(node.shape(0)[1], i64, 1, 2));
  results.push_back(math.cast(hot, element));
  return success();
}

void autohet::addOrderHandlers(OnnxHandlers &handlers) {
  handlers["ArgMax"] = convertArgReduce<het::ReduceKind::max>;
  handlers["ArgMin"] = convertArgReduce<het::ReduceKind::min>;
  handlers["TopK"] = convertTopK;
  handlers["CumSum"] = convertCumSum;
  handlers["GatherElements"] = convertGatherElements;
  handlers["Scatter"] = convertScatterElements;
  handlers["ScatterElements"] = convertScatterElements;
  handlers["ScatterND"] = convertScatterNd;
  handlers["TensorScatter"] = convertTensorScatter;
  handlers["OneHot"] = convertOneHot;
  handlers["EyeLike"] = convertEyeLike;
}
