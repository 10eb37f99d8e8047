//===- OnnxOrder.cpp - order, running sums, ones in places ----------------===//

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
  // Negative ones count from the end; before, they were outside as others are.
  if (node.opset() >= 11) {
    Value isNegative = math.compare(het::ComparePredicate::lt, index, 0);
    index =
        math.select(isNegative, math.add(index, double(depth->front())), index);
  }
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
  handlers["OneHot"] = convertOneHot;
  handlers["EyeLike"] = convertEyeLike;
}
