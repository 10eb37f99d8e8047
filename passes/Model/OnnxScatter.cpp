//===- OnnxScatter.cpp - element-wise lookups and scattered updates -------===//
//
// Element-wise gathers and scatters name a place by one index and their own
// position; het has index tuples, in which the position is written out.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "OnnxMath.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Element by element
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

//===----------------------------------------------------------------------===//
// Tuple by tuple
//===----------------------------------------------------------------------===//

namespace {
/// A part of a tensor that is whole but along `dim`: where it begins there.
struct Band {
  int64_t dim = 0, begin = 0;
};
} // namespace

/// The band of `operand` that constant tuples name in their order, as those of
/// `x[..., 2:4] = y` do.
static std::optional<Band> bandOf(Value tuples, ArrayRef<int64_t> operand) {
  DenseIntElementsAttr dense;
  if (!matchPattern(tuples, m_Constant(&dense)) || dense.empty())
    return std::nullopt;
  ArrayRef<int64_t> shape = dense.getType().getShape().drop_back();
  int64_t width = shape.size();
  if (dense.getType().getShape().back() != width)
    return std::nullopt;
  auto values = dense.getValues<APInt>();
  std::optional<Band> cut;
  for (int64_t d = 0; d < width; ++d) {
    int64_t begin = values[d].getSExtValue();
    if (begin == 0 && shape[d] == operand[d])
      continue;
    if (cut || begin < 0 || begin > operand[d] - shape[d])
      return std::nullopt;
    cut = {d, begin};
  }
  Band band = cut.value_or(Band());
  for (int64_t i = 0, count = dense.getNumElements() / width; i < count; ++i)
    for (int64_t d = width, inner = 1; d-- > 0; inner *= shape[d]) {
      int64_t place = i / inner % shape[d] + (d == band.dim ? band.begin : 0);
      if (values[i * width + d].getSExtValue() != place)
        return std::nullopt;
    }
  return band;
}

/// Puts `update` in the place of a band of `value`. Bands that were put there
/// before stay apart, so that nothing is left of a tensor that was only made to
/// be filled.
static Value replaceBand(OnnxNode &node, Value value, Band band, Value update) {
  OnnxMath math(node);
  auto extentOf = [&](Value part) {
    return tensorType(part).getDimSize(band.dim);
  };
  SmallVector<Value> parts = {value};
  if (auto concat = value.getDefiningOp<het::ConcatOp>();
      concat && int64_t(concat.getDim()) == band.dim)
    parts.assign(concat->operand_begin(), concat->operand_end());
  SmallVector<Value> before, after;
  int64_t begin = 0, bandEnd = band.begin + extentOf(update);
  for (Value part : parts) {
    int64_t end = begin + extentOf(part);
    auto keep = [&](int64_t from, int64_t to, SmallVectorImpl<Value> &kept) {
      if (from < to)
        kept.push_back(math.slice(part, band.dim, from - begin, to - from));
    };
    keep(begin, std::min(end, band.begin), before);
    keep(std::max(begin, bandEnd), end, after);
    begin = end;
  }
  before.push_back(update);
  llvm::append_range(before, after);
  return math.concat(before, band.dim);
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
  std::optional<Band> band = bandOf(node.operand(1), node.shape(0));
  if (band && *kind == het::ScatterKind::replace)
    results.push_back(
        replaceBand(node, node.operand(0), *band, node.operand(2)));
  else
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

void autohet::addScatterHandlers(OnnxHandlers &handlers) {
  handlers["GatherElements"] = convertGatherElements;
  handlers["Scatter"] = convertScatterElements;
  handlers["ScatterElements"] = convertScatterElements;
  handlers["ScatterND"] = convertScatterNd;
  handlers["TensorScatter"] = convertTensorScatter;
}
