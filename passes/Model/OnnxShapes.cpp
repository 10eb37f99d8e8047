//===- OnnxShapes.cpp - nodes that compute and change shapes --------------===//
//
// All extents are known here, so what ONNX computes at run time is computed
// now: the operands that hold shapes have folded to constants before they are
// asked.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"
#include "autohet/Support/Extents.h"

#include <cmath>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Shapes as values
//===----------------------------------------------------------------------===//

static LogicalResult convertShape(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t rank = shape.size();
  // Opset 15 takes a part of the shape; both ends are clamped.
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = clamp(node.intField("start", 0));
  int64_t end = std::max(start, clamp(node.intField("end", rank)));
  results.push_back(node.constantInts(shape.slice(start, end - start)));
  return success();
}

static LogicalResult convertSize(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  results.push_back(
      node.reshape(node.constantInts({node.type(0).getNumElements()}), {}));
  return success();
}

static LogicalResult convertConstantOfShape(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  auto shape = node.constantInts(0, "shape");
  if (failed(shape))
    return failure();
  if (llvm::any_of(*shape, [](int64_t extent) { return extent < 0; }))
    return node.error() << "shape [" << *shape << "] has a negative extent";
  auto value = node.fieldOfType<DenseElementsAttr>("value");
  if (value && value.getNumElements() != 1)
    return node.error() << "value is " << value.getType()
                        << ", wanted one element";
  Attribute element = value ? *value.getValues<Attribute>().begin()
                            : Attribute(node.builder().getF32FloatAttr(0));
  Type elementType =
      value ? value.getElementType() : node.builder().getF32Type();
  results.push_back(het::ConstantOp::create(
      node.builder(), node.loc(),
      DenseElementsAttr::get(RankedTensorType::get(*shape, elementType),
                             element)));
  return success();
}

/// start + i * delta, as long as that is before the limit.
static LogicalResult convertFloatRange(OnnxNode &node, Results &results) {
  double bounds[3];
  for (unsigned i = 0; i < 3; ++i) {
    auto value = node.constantFloat(i, i == 0   ? "start"
                                       : i == 1 ? "limit"
                                                : "delta");
    if (failed(value))
      return failure();
    bounds[i] = *value;
  }
  auto [start, limit, delta] = bounds;
  double steps = std::ceil((limit - start) / delta);
  constexpr double kMostSteps = 1 << 24; // they are written into the program
  if (delta == 0 || !(steps <= kMostSteps))
    return node.error() << "counts from " << start << " to " << limit << " by "
                        << delta << ", wanted at most " << kMostSteps
                        << " numbers";
  Type element = node.type(0).getElementType();
  if (start == std::trunc(start) && delta == std::trunc(delta)) {
    results.push_back(node.create<het::IotaOp>(
        int64_t(start), int64_t(delta), std::max(int64_t(steps), int64_t(0)),
        element));
    return success();
  }
  SmallVector<APFloat> numbers;
  for (int64_t i = 0; double(i) < steps; ++i) {
    APFloat number(start + double(i) * delta);
    bool losesInfo;
    number.convert(cast<FloatType>(element).getFloatSemantics(),
                   APFloat::rmNearestTiesToEven, &losesInfo);
    numbers.push_back(number);
  }
  auto type = RankedTensorType::get({int64_t(numbers.size())}, element);
  results.push_back(het::ConstantOp::create(
      node.builder(), node.loc(), DenseElementsAttr::get(type, numbers)));
  return success();
}

/// How many steps lead from `first` to before `last`. They are numbers of a
/// file: no difference or sign of theirs need be within 64 bits.
static uint64_t countSteps(int64_t first, int64_t last, int64_t step) {
  if (step > 0 ? last <= first : last >= first)
    return 0;
  uint64_t span = step > 0 ? uint64_t(last) - uint64_t(first)
                           : uint64_t(first) - uint64_t(last);
  uint64_t length = step > 0 ? uint64_t(step) : -uint64_t(step);
  return (span - 1) / length + 1;
}

static LogicalResult convertRange(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(3)))
    return failure();
  Type element = node.type(0).getElementType();
  if (isa<FloatType>(element))
    return convertFloatRange(node, results);
  int64_t bounds[3];
  for (unsigned i = 0; i < 3; ++i) {
    StringRef what = i == 0 ? "start" : i == 1 ? "limit" : "delta";
    auto values = node.constantInts(i, what);
    if (failed(values))
      return failure();
    if (values->size() != 1)
      return node.error() << what << " is " << node.type(i)
                          << ", wanted one number";
    bounds[i] = values->front();
  }
  auto [start, limit, delta] = bounds;
  if (delta == 0)
    return node.error() << "delta is 0";
  uint64_t count = countSteps(start, limit, delta);
  if (count > uint64_t(kMaxElements))
    return node.error() << "makes " << count << " numbers, wanted at most 2^40";
  results.push_back(node.create<het::IotaOp>(start, delta, count, element));
  return success();
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

static LogicalResult convertReshape(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(node.opset() < 5 ? 1 : 2)))
    return failure();
  auto given = node.fieldOrOperand("shape", 1);
  if (failed(given))
    return failure();
  if (!*given)
    return node.error() << "has no shape";
  const SmallVector<int64_t> &wanted = **given;
  SmallVector<int64_t> shape(wanted);
  bool allowZero = node.intField("allowzero", 0);
  int64_t total = node.type(0).getNumElements(), unknown = -1;
  SmallVector<int64_t> others; // than the unknown one
  bool holds = true;
  for (auto [i, extent] : llvm::enumerate(shape)) {
    if (extent == 0 && !allowZero) {
      holds &= int64_t(i) < node.rank(0);
      extent = holds ? node.shape(0)[i] : 0;
    }
    if (extent == -1) {
      holds &= unknown == -1;
      unknown = i;
      continue;
    }
    others.push_back(extent);
  }
  std::optional<int64_t> counted = countElements(others);
  if (!counted)
    return node.error() << "a tensor of shape [" << node.shape(0)
                        << "] cannot be given shape [" << wanted
                        << "]: wanted extents from 0 on, and at most 2^40 "
                           "elements";
  int64_t known = *counted;
  if (unknown != -1) {
    holds &= known != 0 && total % known == 0;
    shape[unknown] = holds ? total / known : 0;
  } else {
    holds &= known == total;
  }
  if (!holds)
    return node.error() << "a tensor of shape [" << node.shape(0) << "] has "
                        << total << " elements and cannot be given shape ["
                        << wanted << "], which takes "
                        << (unknown == -1 ? "" : "a multiple of ") << known
                        << "; was the model exported with dims fixed that are "
                           "now bound to others?";
  results.push_back(node.reshape(node.operand(0), shape));
  return success();
}

static LogicalResult convertFlatten(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  int64_t axis = node.intField("axis", 1), rank = node.rank(0);
  if (axis < -rank || axis > rank)
    return node.error() << "axis " << axis << " is outside a tensor of rank "
                        << rank;
  if (axis < 0)
    axis += rank;
  int64_t outer = 1, inner = 1;
  for (auto [i, extent] : llvm::enumerate(node.shape(0)))
    (int64_t(i) < axis ? outer : inner) *= extent;
  results.push_back(node.reshape(node.operand(0), {outer, inner}));
  return success();
}

static LogicalResult convertSqueeze(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  auto axes = node.fieldOrOperand("axes", 1);
  if (failed(axes))
    return failure();
  SmallVector<int64_t> dropped;
  if (*axes) {
    auto normal = node.normalizeAxes(**axes, node.rank(0));
    if (failed(normal))
      return failure();
    dropped = *normal;
  }
  SmallVector<int64_t> shape;
  for (auto [i, extent] : llvm::enumerate(node.shape(0))) {
    bool drop = *axes ? llvm::is_contained(dropped, int64_t(i)) : extent == 1;
    if (drop && extent != 1)
      return node.error() << "dim " << i << " has extent " << extent
                          << ", wanted 1 to squeeze it";
    if (!drop)
      shape.push_back(extent);
  }
  results.push_back(node.reshape(node.operand(0), shape));
  return success();
}

static LogicalResult convertUnsqueeze(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  auto axes = node.fieldOrOperand("axes", 1);
  if (failed(axes))
    return failure();
  if (!*axes)
    return node.error() << "has no axes";
  int64_t rank = node.rank(0) + (*axes)->size();
  auto added = node.normalizeAxes(**axes, rank);
  if (failed(added))
    return failure();
  SmallVector<int64_t> shape;
  ArrayRef<int64_t> rest = node.shape(0);
  for (int64_t i = 0; i < rank; ++i) {
    if (llvm::is_contained(*added, i)) {
      shape.push_back(1);
      continue;
    }
    shape.push_back(rest.front());
    rest = rest.drop_front();
  }
  results.push_back(node.reshape(node.operand(0), shape));
  return success();
}

static LogicalResult convertTranspose(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  int64_t rank = node.rank(0);
  SmallVector<int64_t> permutation;
  if (auto perm = node.intsField("perm"))
    permutation = *perm;
  else
    for (int64_t i = rank; i-- > 0;)
      permutation.push_back(i);
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  bool valid = int64_t(sorted.size()) == rank;
  for (auto [i, dim] : llvm::enumerate(sorted))
    valid &= dim == int64_t(i);
  if (!valid)
    return node.error() << "perm [" << permutation
                        << "] is no order of the dims of " << node.type(0);
  results.push_back(node.transpose(node.operand(0), permutation));
  return success();
}

//===----------------------------------------------------------------------===//
// Repeating and joining
//===----------------------------------------------------------------------===//

/// Broadcasts both ways: extents of 1 in `shape` keep the operand's.
static LogicalResult convertExpand(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto wanted = node.constantInts(1, "shape");
  if (failed(wanted))
    return failure();
  auto shape = het::broadcastShapes(node.shape(0), *wanted);
  if (failed(shape) ||
      llvm::any_of(*shape, [](int64_t extent) { return extent < 0; }))
    return node.error() << "shape [" << node.shape(0)
                        << "] cannot be expanded to [" << *wanted << "]";
  results.push_back(node.broadcast(node.operand(0), *shape));
  return success();
}

/// How often each dim is repeated; opset 1 names one dim and its number.
static FailureOr<SmallVector<int64_t>> repeatsOf(OnnxNode &node) {
  if (node.opset() >= 6)
    return node.constantInts(1, "repeats");
  if (failed(node.needOperands(3)))
    return failure();
  auto tiles = node.constantInts(1, "tiles");
  auto dim = node.constantInts(2, "axis");
  if (failed(tiles) || failed(dim))
    return failure();
  if (tiles->size() != 1 || dim->size() != 1)
    return node.error() << "tiles are " << node.type(1) << " and axis is "
                        << node.type(2) << ", wanted a number each";
  auto axis = node.normalizeAxis(dim->front(), node.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> repeats(node.rank(0), 1);
  repeats[*axis] = tiles->front();
  return repeats;
}

/// Each dim is repeated as a whole: [d] -> [1, d] -> [r, d] -> [r * d].
static LogicalResult convertTile(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto repeats = repeatsOf(node);
  if (failed(repeats))
    return failure();
  if (int64_t(repeats->size()) != node.rank(0) ||
      llvm::any_of(*repeats, [](int64_t times) { return times < 0; }))
    return node.error() << "repeats are [" << *repeats
                        << "], wanted one a dim of " << node.type(0);
  SmallVector<int64_t> split, repeated, joined;
  for (auto [extent, times] : llvm::zip(node.shape(0), *repeats)) {
    if (times != 1) {
      split.push_back(1);
      repeated.push_back(times);
    }
    if (times == 1 || extent != 1) {
      split.push_back(extent);
      repeated.push_back(extent);
    }
  }
  if (!countElements(repeated))
    return node.error() << "repeats " << node.type(0) << " by [" << *repeats
                        << "], wanted at most 2^40 elements";
  for (auto [extent, times] : llvm::zip(node.shape(0), *repeats))
    joined.push_back(times * extent);
  Value value = node.reshape(node.operand(0), split);
  value = node.broadcast(value, repeated);
  results.push_back(node.reshape(value, joined));
  return success();
}

static LogicalResult convertConcat(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(std::max(node.numOperands(), 1u))))
    return failure();
  // A default is of the first version only.
  auto axis = node.normalizeAxis(node.intField("axis", 1), node.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<Value> parts;
  for (unsigned i = 0; i < node.numOperands(); ++i) {
    SmallVector<int64_t> shape(node.shape(i));
    bool agrees =
        node.type(i).getElementType() == node.type(0).getElementType() &&
        node.rank(i) == node.rank(0);
    if (agrees) {
      shape[*axis] = node.shape(0)[*axis];
      agrees = ArrayRef<int64_t>(shape) == node.shape(0);
    }
    if (!agrees)
      return node.error() << "operands " << node.type(0) << " and "
                          << node.type(i) << " differ in more than dim "
                          << *axis;
    parts.push_back(node.operand(i));
  }
  results.push_back(node.create<het::ConcatOp>(ValueRange(parts), *axis));
  return success();
}

/// Equal parts by number of results, or sizes from a field (before opset 13) or
/// an operand.
static LogicalResult convertSplit(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", 0), node.rank(0));
  auto given = node.fieldOrOperand("split", 1);
  if (failed(axis) || failed(given))
    return failure();
  int64_t extent = node.shape(0)[*axis], count = node.numResults();
  SmallVector<int64_t> sizes;
  if (*given) {
    sizes = **given;
  } else {
    // The last part is smaller where the dim does not divide.
    int64_t size = llvm::divideCeil(extent, count);
    for (int64_t i = 0, left = extent; i < count; ++i, left -= sizes.back())
      sizes.push_back(std::min(size, left));
  }
  int64_t left = extent; // below 0 once a part is none
  for (int64_t size : sizes)
    left = size >= 0 && size <= left ? left - size : -1;
  if (int64_t(sizes.size()) != count || left != 0)
    return node.error() << "parts [" << sizes << "] do not make up dim "
                        << *axis << " of " << node.type(0) << " in " << count
                        << " results";
  SmallVector<int64_t> offsets(node.rank(0), 0), strides(node.rank(0), 1);
  SmallVector<int64_t> shape(node.shape(0));
  for (int64_t size : sizes) {
    shape[*axis] = size;
    results.push_back(node.create<het::SliceOp>(
        node.operand(0), ArrayRef<int64_t>(offsets), ArrayRef<int64_t>(shape),
        ArrayRef<int64_t>(strides)));
    offsets[*axis] += size;
  }
  return success();
}

/// Fields before opset 10, operands from there on.
static LogicalResult convertSlice(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(node.opset() < 10 ? 1 : 3)))
    return failure();
  SmallVector<int64_t> starts, ends, axes, steps;
  for (auto [operand, into, what] :
       {std::tuple(1u, &starts, "starts"), std::tuple(2u, &ends, "ends"),
        std::tuple(3u, &axes, "axes"), std::tuple(4u, &steps, "steps")}) {
    auto values = node.fieldOrOperand(what, operand);
    if (failed(values))
      return failure();
    if (*values)
      *into = **values;
    else if (operand == 3)
      axes = llvm::to_vector(llvm::seq<int64_t>(0, starts.size()));
    else if (operand == 4)
      steps.assign(starts.size(), 1);
    else
      return node.error() << "has no " << what;
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    return node.error()
           << "starts, ends, axes and steps have different lengths";
  SmallVector<int64_t> offsets(node.rank(0), 0), sizes(node.shape(0)),
      strides(node.rank(0), 1);
  for (auto [start, end, signedAxis, step] :
       llvm::zip(starts, ends, axes, steps)) {
    auto axis = node.normalizeAxis(signedAxis, node.rank(0));
    if (failed(axis))
      return failure();
    if (step == 0)
      return node.error() << "a step is 0";
    int64_t extent = node.shape(0)[*axis];
    // Ends may be far outside (INT64_MAX): clamp before any arithmetic.
    auto clamp = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? std::max(at + extent, int64_t(-1)) : at, low,
                        high);
    };
    int64_t first =
        step > 0 ? clamp(start, 0, extent) : clamp(start, 0, extent - 1);
    int64_t last =
        step > 0 ? clamp(end, 0, extent) : clamp(end, -1, extent - 1);
    offsets[*axis] = first;
    sizes[*axis] = countSteps(first, last, step);
    // No step is taken to the only element, however large.
    strides[*axis] = sizes[*axis] > 1 ? step : 1;
  }
  results.push_back(node.create<het::SliceOp>(
      node.operand(0), ArrayRef<int64_t>(offsets), ArrayRef<int64_t>(sizes),
      ArrayRef<int64_t>(strides)));
  return success();
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

void autohet::addShapeHandlers(OnnxHandlers &handlers) {
  handlers["Shape"] = convertShape;
  handlers["Size"] = convertSize;
  handlers["ConstantOfShape"] = convertConstantOfShape;
  handlers["Range"] = convertRange;
  handlers["Reshape"] = convertReshape;
  handlers["Flatten"] = convertFlatten;
  handlers["Squeeze"] = convertSqueeze;
  handlers["Unsqueeze"] = convertUnsqueeze;
  handlers["Transpose"] = convertTranspose;
  handlers["Expand"] = convertExpand;
  handlers["Tile"] = convertTile;
  handlers["Concat"] = convertConcat;
  handlers["Split"] = convertSplit;
  handlers["Slice"] = convertSlice;
}
