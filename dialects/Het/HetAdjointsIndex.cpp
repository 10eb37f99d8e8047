//===- HetAdjointsIndex.cpp - gradients of lookups and views --------------===//
//
// What was read from a place gets its gradient back at that place; what was
// read twice gets the sum. The sums are taken in the order of the indices, by
// one owner each, so that they are the same in every run.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

using Gradients = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Index and shape
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                        ArrayRef<bool> wanted, Gradients &out) {
  if (wanted[0])
    out[0] = EmbeddingBackwardOp::create(
        b, getLoc(), getIds(), g[0],
        b.getI64IntegerAttr(typeOf(getTable()).getDimSize(0)),
        getFirstRowAttr());
  return success();
}

LogicalResult ReshapeOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                      ArrayRef<bool> wanted, Gradients &out) {
  if (wanted[0])
    out[0] =
        ReshapeOp::create(b, getLoc(), g[0], typeOf(getOperand()).getShape());
  return success();
}

LogicalResult TransposeOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                        ArrayRef<bool> wanted, Gradients &out) {
  if (!wanted[0])
    return success();
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = to;
  out[0] = TransposeOp::create(b, getLoc(), g[0], inverse);
  return success();
}

LogicalResult BroadcastOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                        ArrayRef<bool> wanted, Gradients &out) {
  if (wanted[0])
    out[0] = reduceToType(b, getLoc(), g[0], typeOf(getOperand()));
  return success();
}

LogicalResult SliceOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                    ArrayRef<bool> wanted, Gradients &out) {
  if (wanted[0])
    out[0] =
        SliceBackwardOp::create(b, getLoc(), g[0], getOffsets(), getStrides(),
                                typeOf(getOperand()).getShape());
  return success();
}

LogicalResult ConcatOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                     ArrayRef<bool> wanted, Gradients &out) {
  SmallVector<int64_t> offsets(getType().getRank(), 0),
      ones(getType().getRank(), 1);
  for (auto [i, part] : llvm::enumerate(getParts())) {
    ArrayRef<int64_t> sizes = typeOf(part).getShape();
    if (wanted[i])
      out[i] = SliceOp::create(b, getLoc(), g[0], offsets, sizes, ones);
    offsets[getDim()] += sizes[getDim()];
  }
  return success();
}

/// Each element is in the sums from its place on: the same sums backwards.
LogicalResult CumulativeSumOp::buildAdjoint(OpBuilder &b,
                                            ArrayRef<Value> resultGradients,
                                            ArrayRef<bool> wanted,
                                            Gradients &operandGradients) {
  if (wanted[0])
    operandGradients[0] =
        CumulativeSumOp::create(b, getLoc(), resultGradients[0], getDim(),
                                getExclusive(), !getReverse());
  return success();
}

//===----------------------------------------------------------------------===//
// Places that are data
//===----------------------------------------------------------------------===//

/// A scalar of the element type of `like`.
static Value scalar(OpBuilder &b, Location loc, Value like, double value) {
  return createSplat(
      b, loc, RankedTensorType::get({}, typeOf(like).getElementType()), value);
}

/// `shape` followed by a dim of extent 1.
static Value addLastDim(OpBuilder &b, Location loc, Value value) {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape.push_back(1);
  return ReshapeOp::create(b, loc, value, shape);
}

/// Which of the k chosen elements an element is, if any, is compared for all of
/// them at once: rows are as short as there are experts to choose from. The
/// places themselves are constants to calculus.
LogicalResult TopKOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                   ArrayRef<bool> wanted, Gradients &out) {
  if (!wanted[0])
    return success();
  auto type = typeOf(getOperand());
  Type index = typeOf(getIndices()).getElementType();
  Value places =
      IotaOp::create(b, getLoc(), 0, 1, type.getShape().back(), index);
  Value isIt = CompareOp::create(b, getLoc(), ComparePredicate::eq,
                                 addLastDim(b, getLoc(), getIndices()), places);
  Value parts =
      SelectOp::create(b, getLoc(), isIt, addLastDim(b, getLoc(), g[0]),
                       scalar(b, getLoc(), g[0], 0));
  out[0] = ReduceOp::create(b, getLoc(), ReduceKind::sum, parts,
                            SmallVector<int64_t>{type.getRank() - 1},
                            /*keep=*/false);
  return success();
}

/// The adjoint of a lookup in a table, whose rows are what `dim` counts.
LogicalResult GatherOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                     ArrayRef<bool> wanted, Gradients &out) {
  if (!wanted[0])
    return success();
  Location loc = getLoc();
  auto type = typeOf(getOperand());
  int64_t dim = getDim(), rank = type.getRank(), extent = type.getDimSize(dim);
  int64_t indexRank = typeOf(getIndices()).getRank();

  // [before dim, indices, after dim] to [indices, before dim, after dim].
  SmallVector<int64_t> order, restShape;
  llvm::append_range(order, llvm::seq<int64_t>(dim, dim + indexRank));
  llvm::append_range(order, llvm::seq<int64_t>(0, dim));
  llvm::append_range(order,
                     llvm::seq<int64_t>(dim + indexRank, rank - 1 + indexRank));
  Value rows = g[0];
  if (dim != 0)
    rows = TransposeOp::create(b, loc, rows, order);
  int64_t width = 1;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim) {
      restShape.push_back(type.getDimSize(d));
      width *= type.getDimSize(d);
    }
  SmallVector<int64_t> rowsShape(typeOf(getIndices()).getShape());
  rowsShape.push_back(width);
  rows = ReshapeOp::create(b, loc, rows, rowsShape);

  // Rows of a table are counted from its front.
  Value ids = getIndices();
  Value isFromEnd = CompareOp::create(b, loc, ComparePredicate::lt, ids,
                                      scalar(b, loc, ids, 0));
  Value fromFront =
      AddOp::create(b, loc, ids, scalar(b, loc, ids, double(extent)));
  ids = SelectOp::create(b, loc, isFromEnd, fromFront, ids);
  Value table = EmbeddingBackwardOp::create(
      b, loc, ids, rows, b.getI64IntegerAttr(extent), IntegerAttr());

  // [dim, before dim, after dim] to the operand's order.
  SmallVector<int64_t> tableShape{extent};
  llvm::append_range(tableShape, restShape);
  table = ReshapeOp::create(b, loc, table, tableShape);
  if (dim != 0) {
    SmallVector<int64_t> back = llvm::to_vector(llvm::seq<int64_t>(1, dim + 1));
    back.push_back(0);
    llvm::append_range(back, llvm::seq<int64_t>(dim + 1, rank));
    table = TransposeOp::create(b, loc, table, back);
  }
  out[0] = table;
  return success();
}

/// Adds up in zeros at the same places; batch dims become part of the tuples.
LogicalResult GatherNdOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                       ArrayRef<bool> wanted, Gradients &out) {
  if (!wanted[0])
    return success();
  Location loc = getLoc();
  auto type = typeOf(getOperand());
  auto indices = typeOf(getIndices());
  int64_t last = indices.getRank() - 1;
  SmallVector<Value> columns;
  for (int64_t d = 0, count = getBatchDims(); d < count; ++d) {
    SmallVector<int64_t> ones(indices.getRank(), 1), column(indices.getShape());
    ones[d] = indices.getDimSize(d);
    column[last] = 1;
    Value place =
        IotaOp::create(b, loc, 0, 1, ones[d], indices.getElementType());
    place = ReshapeOp::create(b, loc, place, ones);
    columns.push_back(BroadcastOp::create(b, loc, place, column));
  }
  columns.push_back(getIndices());
  Value tuples = columns.size() == 1
                     ? columns.front()
                     : ConcatOp::create(b, loc, columns, last).getResult();
  Value zeros =
      BroadcastOp::create(b, loc, scalar(b, loc, g[0], 0), type.getShape());
  out[0] = ScatterNdOp::create(b, loc, ScatterKind::add, zeros, tuples, g[0]);
  return success();
}

/// For each tuple, whether no later one points to the same place, as booleans
/// that broadcast to the updates. Tuples are numbered, the numbers scattered
/// like the updates, and read back.
static Value isLastOfItsPlace(OpBuilder &b, ScatterNdOp op) {
  Location loc = op.getLoc();
  auto indices = typeOf(op.getIndices());
  ArrayRef<int64_t> tuples = indices.getShape().drop_back();
  ArrayRef<int64_t> places =
      typeOf(op.getOperand()).getShape().take_front(indices.getShape().back());
  int64_t count = 1;
  for (int64_t extent : tuples)
    count *= extent;
  Value line = IotaOp::create(b, loc, 0, 1, count, b.getI64Type());
  Value numbers = ReshapeOp::create(b, loc, line, tuples);
  Value none =
      createSplat(b, loc, RankedTensorType::get(places, b.getI64Type()), -1);
  Value winners = ScatterNdOp::create(b, loc, ScatterKind::replace, none,
                                      op.getIndices(), numbers);
  Value winner = GatherNdOp::create(b, loc, winners, op.getIndices(),
                                    b.getI64IntegerAttr(0));
  Value isLast =
      CompareOp::create(b, loc, ComparePredicate::eq, winner, numbers);
  SmallVector<int64_t> shape(tuples);
  shape.resize(typeOf(op.getUpdates()).getRank(), 1);
  return ReshapeOp::create(b, loc, isLast, shape);
}

/// An update has the gradient of its place; where it replaced what was there,
/// the operand, and updates before it, have none.
LogicalResult ScatterNdOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                        ArrayRef<bool> wanted, Gradients &out) {
  if (getKind() != ScatterKind::add && getKind() != ScatterKind::replace)
    return emitOpError("has no adjoint for ")
           << stringifyScatterKind(getKind())
           << ", and a trained parameter is reached through it";
  Location loc = getLoc();
  bool replaces = getKind() == ScatterKind::replace;
  if (wanted[0]) {
    out[0] = g[0];
    if (replaces) {
      Value zeros = BroadcastOp::create(b, loc, scalar(b, loc, g[0], 0),
                                        typeOf(getUpdates()).getShape());
      out[0] = ScatterNdOp::create(b, loc, ScatterKind::replace, g[0],
                                   getIndices(), zeros);
    }
  }
  if (wanted[2]) {
    out[2] =
        GatherNdOp::create(b, loc, g[0], getIndices(), b.getI64IntegerAttr(0));
    if (replaces)
      out[2] = SelectOp::create(b, loc, isLastOfItsPlace(b, *this), out[2],
                                scalar(b, loc, out[2], 0));
  }
  return success();
}
