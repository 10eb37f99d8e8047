//===- OnnxIndexing.cpp - nodes that pick elements ------------------------===//
//
// Most gathers are something simpler in disguise: an embedding, a slice, or
// (padding masks, read element by element) a reshape. Saying so keeps samples
// of a batch visibly apart, and gives the float ones an adjoint.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// The elements of an integer constant; nothing where the value is none.
static std::optional<SmallVector<int64_t>> constantElements(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)))
    return std::nullopt;
  SmallVector<int64_t> result;
  for (const APInt &element : elements.getValues<APInt>())
    result.push_back(element.getSExtValue());
  return result;
}

/// Whether the values are 0, 1, 2 ... count - 1.
static bool isIota(ArrayRef<int64_t> values, int64_t count) {
  return int64_t(values.size()) == count &&
         llvm::all_of(llvm::enumerate(values), [](auto entry) {
           return entry.value() == int64_t(entry.index());
         });
}

/// Whether indices are the same for each place along their first dim, as those
/// of positions are for each sample.
static bool repeatsRows(ArrayRef<int64_t> values, ArrayRef<int64_t> shape) {
  if (shape.size() < 2 || shape[0] < 2 || values.empty())
    return false;
  size_t row = values.size() / shape[0];
  return llvm::all_of(llvm::enumerate(values), [&](auto entry) {
    return entry.value() == values[entry.index() % row];
  });
}

/// The places of what is not 0, of a constant: how many, only data say
/// otherwise. Exporters write 0, 1, 2 ... as the places of ones.
static LogicalResult convertNonZero(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  DenseElementsAttr elements;
  if (!matchPattern(node.operand(0), m_Constant(&elements)))
    return node.notConstant(0, "input");
  SmallVector<int64_t> found;
  auto keep = [&](auto values, auto isZero) {
    for (auto [i, value] : llvm::enumerate(values))
      if (!isZero(value))
        found.push_back(i);
  };
  if (isa<FloatType>(elements.getElementType()))
    keep(elements.getValues<APFloat>(),
         [](const APFloat &value) { return value.isZero(); });
  else
    keep(elements.getValues<APInt>(),
         [](const APInt &value) { return value.isZero(); });
  ArrayRef<int64_t> shape = node.shape(0);
  SmallVector<int64_t> places;
  int64_t inner = elements.getNumElements();
  for (int64_t extent : shape) {
    inner /= std::max<int64_t>(extent, 1);
    for (int64_t place : found)
      places.push_back(place / inner % extent);
  }
  auto type = RankedTensorType::get({node.rank(0), int64_t(found.size())},
                                    node.builder().getI64Type());
  results.push_back(het::ConstantOp::create(
      node.builder(), node.loc(),
      DenseElementsAttr::get(type, ArrayRef<int64_t>(places))));
  return success();
}

static LogicalResult convertGather(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  auto axis = node.normalizeAxis(node.intField("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  if (!isa<IntegerType>(node.type(1).getElementType()))
    return node.error() << "indices are " << node.type(1)
                        << ", wanted integers";
  Value data = node.operand(0), indices = node.operand(1);
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t extent = shape[*axis];
  SmallVector<int64_t> resultShape(shape.take_front(*axis));
  llvm::append_range(resultShape, node.shape(1));
  llvm::append_range(resultShape, shape.drop_front(*axis + 1));
  // Rows that repeat are looked up once: how many there are, which may be the
  // number of samples, changes nothing in the model.
  SmallVector<int64_t> indexShape(node.shape(1)), once(resultShape);
  auto give = [&](Value rows) {
    results.push_back(node.broadcast(node.reshape(rows, once), resultShape));
    return success();
  };

  if (auto constant = constantElements(indices)) {
    for (int64_t &index : *constant) {
      if (index < -extent || index >= extent)
        return node.error() << "index " << index << " is outside dim " << *axis
                            << " of " << node.type(0);
      if (index < 0)
        index += extent;
    }
    if (repeatsRows(*constant, indexShape)) {
      constant->resize(constant->size() / indexShape[0]);
      indexShape[0] = once[*axis] = 1;
    }
    if (isIota(*constant, extent))
      return give(data);
    // Neighbouring rows are a slice; one row is too.
    bool consecutive = !constant->empty();
    for (size_t i = 1; i < constant->size(); ++i)
      consecutive &= (*constant)[i] == (*constant)[i - 1] + 1;
    if (consecutive) {
      SmallVector<int64_t> offsets(shape.size(), 0), sizes(shape),
          strides(shape.size(), 1);
      offsets[*axis] = constant->front();
      sizes[*axis] = constant->size();
      Value part = node.create<het::SliceOp>(data, ArrayRef<int64_t>(offsets),
                                             ArrayRef<int64_t>(sizes),
                                             ArrayRef<int64_t>(strides));
      return give(part);
    }
    // Rows of a table are counted from the front only.
    auto type = RankedTensorType::get(indexShape, node.builder().getI64Type());
    indices = het::ConstantOp::create(
        node.builder(), node.loc(),
        DenseElementsAttr::get(type, ArrayRef(*constant)));
  }
  // Rows of a table that is trained, or divided among devices.
  bool isTable = !node.inference() || data.getDefiningOp<het::ParameterOp>();
  if (isFloatTensor(data) && node.rank(0) == 2 && *axis == 0 && isTable) {
    return give(node.create<het::EmbeddingOp>(data, indices, IntegerAttr(),
                                              IntegerAttr()));
  }
  return give(node.create<het::GatherOp>(data, indices, *axis));
}

static LogicalResult convertGatherNd(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(2)))
    return failure();
  if (!isa<IntegerType>(node.type(1).getElementType()) || node.rank(1) == 0)
    return node.error() << "indices are " << node.type(1)
                        << ", wanted tuples of integers";
  int64_t batchDims = node.intField("batch_dims", 0);
  int64_t tuple = node.shape(1).back();
  if (batchDims < 0 || batchDims >= node.rank(1) ||
      batchDims + tuple > node.rank(0))
    return node.error() << "tuples of " << tuple << " after " << batchDims
                        << " batch dims do not index " << node.type(0);
  auto constant = constantElements(node.operand(1));
  if (constant && batchDims == 0) {
    // Each tuple as one row-major index; rows in order are a reshape.
    SmallVector<int64_t> rows;
    int64_t count = 1;
    for (int64_t extent : node.shape(0).take_front(tuple))
      count *= extent;
    for (size_t i = 0; tuple && i < constant->size(); i += tuple) {
      int64_t row = 0;
      for (int64_t t = 0; t < tuple; ++t) {
        int64_t index = (*constant)[i + t], extent = node.shape(0)[t];
        if (index < -extent || index >= extent)
          return node.error() << "index " << index << " is outside dim " << t
                              << " of " << node.type(0);
        row = row * extent + (index < 0 ? index + extent : index);
      }
      rows.push_back(row);
    }
    if (isIota(rows, count)) {
      SmallVector<int64_t> shape(node.shape(1).drop_back());
      llvm::append_range(shape, node.shape(0).drop_front(tuple));
      results.push_back(node.reshape(node.operand(0), shape));
      return success();
    }
  }
  // Tuples of one index are indices: of experts' weights, say.
  if (tuple == 1 && batchDims == 0) {
    Value indices = node.reshape(node.operand(1), node.shape(1).drop_back());
    results.push_back(
        node.create<het::GatherOp>(node.operand(0), indices, int64_t(0)));
    return success();
  }
  results.push_back(node.create<het::GatherNdOp>(node.operand(0),
                                                 node.operand(1), batchDims));
  return success();
}

/// Keeps the triangle at and above (or below) the k-th diagonal.
static LogicalResult convertTrilu(OnnxNode &node, Results &results) {
  if (failed(node.needOperands(1)))
    return failure();
  int64_t rank = node.rank(0), diagonal = 0;
  if (rank < 2)
    return node.error() << "operand 0 is " << node.type(0)
                        << ", wanted matrices";
  if (node.has(1)) {
    auto k = node.constantInts(1, "k");
    if (failed(k))
      return failure();
    diagonal = k->front();
  }
  Type i64 = node.builder().getI64Type();
  int64_t rows = node.shape(0)[rank - 2], columns = node.shape(0)[rank - 1];
  Value row = node.reshape(
      node.create<het::IotaOp>(diagonal, int64_t(1), rows, i64), {rows, 1});
  Value column = node.create<het::IotaOp>(int64_t(0), int64_t(1), columns, i64);
  auto keeps = node.intField("upper", 1) ? het::ComparePredicate::ge
                                         : het::ComparePredicate::le;
  Value kept = node.create<het::CompareOp>(keeps, column, row);
  results.push_back(node.create<het::SelectOp>(
      kept, node.operand(0), node.scalarLike(node.operand(0), 0)));
  return success();
}

void autohet::addIndexHandlers(OnnxHandlers &handlers) {
  handlers["NonZero"] = convertNonZero;
  handlers["Gather"] = convertGather;
  handlers["GatherND"] = convertGatherNd;
  handlers["Trilu"] = convertTrilu;
}
