//===- HetAdjoints.cpp - gradients of products, norms, attention ----------===//
//
// Each op builds the gradients of its operands; HetAdjointsElementwise.cpp has
// those of the elementwise ops, HetAdjointsIndex.cpp those of lookups and
// views. Adjoints are het ops again, so that kernels, costs and sharding rules
// need no second set. A gradient that cannot be built is an error at the
// forward op: never a silent zero.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

using Gradients = SmallVectorImpl<Value>;

/// The numbers from `from` up to and without `to`.
static SmallVector<int64_t> range(int64_t from, int64_t to) {
  return llvm::to_vector(llvm::seq<int64_t>(from, to));
}

Value autohet::het::reduceToType(OpBuilder &b, Location loc, Value value,
                                 RankedTensorType type) {
  auto from = typeOf(value);
  if (from.getShape() == type.getShape())
    return value;
  // Broadcasting added dims in front and stretched dims of extent 1.
  int64_t added = from.getRank() - type.getRank();
  assert(added >= 0 && "only a broadcast value can be reduced to a type");
  SmallVector<int64_t> dims = range(0, added);
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (extent == 1 && from.getDimSize(dim + added) != 1)
      dims.push_back(dim + added);
  bool keep = added == 0;
  if (!dims.empty())
    value = ReduceOp::create(b, loc, ReduceKind::sum, value, dims, keep);
  if (typeOf(value).getShape() != type.getShape())
    value = ReshapeOp::create(b, loc, value, type.getShape());
  return value;
}

/// The loss depends on a by-product (a norm's mean, an attention's
/// log_sum_exp), which the adjoints do not carry back.
static LogicalResult needsNone(Operation *op, Value gradient, StringRef what) {
  if (!gradient)
    return success();
  return op->emitOpError("has no adjoint by its ")
         << what << ", on which the loss depends";
}

/// A trained parameter is reached through an operand that counts as constant.
static LogicalResult wantsNone(Operation *op, bool wanted, StringRef what) {
  if (!wanted)
    return success();
  return op->emitOpError("has no adjoint for its ")
         << what << ", which depends on a trained parameter";
}

/// A scalar constant of the element type of `like`.
static Value scalar(OpBuilder &b, Location loc, Value like, double value) {
  return createSplat(
      b, loc, RankedTensorType::get({}, typeOf(like).getElementType()), value);
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

/// The dims of `rank` that are in neither list, rising.
static SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> batch,
                                     ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(batch, i) && !llvm::is_contained(contract, i))
      dims.push_back(i);
  return dims;
}

/// The gradient by one operand ("mine") of a product with another ("other").
///
///   dims of mine      batch | free | contract
///   dims of gradient  batch | lhs free | rhs free
///
/// It is the product of the gradient and the other operand, contracted over the
/// other's free dims. With the gradient first its dims come out as
/// batch, free, contract; with the other operand first as batch, contract,
/// free. Whichever of the two is the operand's own order is taken, so that
/// weights in [N, K] and in [K, N] both get their gradient without a transpose.
static Value
buildProductAdjoint(OpBuilder &b, Location loc, Value gradient, Value mine,
                    Value other, ArrayRef<int64_t> myBatch,
                    ArrayRef<int64_t> myContract, ArrayRef<int64_t> otherBatch,
                    ArrayRef<int64_t> otherContract, int64_t otherFreeAt) {
  int64_t rank = typeOf(mine).getRank();
  SmallVector<int64_t> myFree = freeDims(rank, myBatch, myContract);
  SmallVector<int64_t> otherFree =
      freeDims(typeOf(other).getRank(), otherBatch, otherContract);

  // Batch pairs in the order of my dims, which costs nothing.
  SmallVector<int64_t> pairs = range(0, myBatch.size());
  llvm::sort(pairs,
             [&](int64_t i, int64_t j) { return myBatch[i] < myBatch[j]; });
  SmallVector<int64_t> gradientBatch, otherBatchSorted, order;
  for (int64_t i : pairs) {
    gradientBatch.push_back(i);
    otherBatchSorted.push_back(otherBatch[i]);
    order.push_back(myBatch[i]);
  }
  SmallVector<int64_t> gradientContract =
      range(otherFreeAt, otherFreeAt + otherFree.size());
  // My contracted dims come out in the order of the other operand's.
  SmallVector<int64_t> contractPairs = range(0, myContract.size());
  llvm::sort(contractPairs, [&](int64_t i, int64_t j) {
    return otherContract[i] < otherContract[j];
  });
  SmallVector<int64_t> contract = llvm::map_to_vector(
      contractPairs, [&](int64_t i) { return myContract[i]; });

  SmallVector<int64_t> gradientFirst(order), otherFirst(order);
  llvm::append_range(gradientFirst, myFree);
  llvm::append_range(gradientFirst, contract);
  llvm::append_range(otherFirst, contract);
  llvm::append_range(otherFirst, myFree);

  // A product needs a contracted dim; where the other operand has no free dim
  // (a matrix times a vector) both get one of extent 1.
  if (otherFree.empty()) {
    auto withOne = [&](Value v) {
      SmallVector<int64_t> shape(typeOf(v).getShape());
      shape.push_back(1);
      return ReshapeOp::create(b, loc, v, shape).getResult();
    };
    gradient = withOne(gradient);
    other = withOne(other);
    gradientContract = {typeOf(gradient).getRank() - 1};
    otherFree = {typeOf(other).getRank() - 1};
  }

  SmallVector<int64_t> identity = range(0, rank);
  bool swap = gradientFirst != identity && otherFirst == identity;
  Value product =
      swap ? MatmulOp::create(b, loc, other, gradient, otherBatchSorted,
                              gradientBatch, otherFree, gradientContract)
           : MatmulOp::create(b, loc, gradient, other, gradientBatch,
                              otherBatchSorted, gradientContract, otherFree);
  ArrayRef<int64_t> have = swap ? otherFirst : gradientFirst;
  if (have == ArrayRef<int64_t>(identity))
    return product;
  // Dim i of the operand is where `have` names it.
  SmallVector<int64_t> permutation(rank);
  for (auto [at, dim] : llvm::enumerate(have))
    permutation[dim] = at;
  return TransposeOp::create(b, loc, product, permutation);
}

LogicalResult MatmulOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                     ArrayRef<bool> wanted, Gradients &out) {
  ArrayRef<int64_t> lb = getLhsBatch(), rb = getRhsBatch(),
                    lc = getLhsContract(), rc = getRhsContract();
  int64_t batch = lb.size();
  int64_t lhsFree = typeOf(getLhs()).getRank() - batch - lc.size();
  if (wanted[0])
    out[0] = buildProductAdjoint(b, getLoc(), g[0], getLhs(), getRhs(), lb, lc,
                                 rb, rc, batch + lhsFree);
  if (wanted[1])
    out[1] = buildProductAdjoint(b, getLoc(), g[0], getRhs(), getLhs(), rb, rc,
                                 lb, lc, batch);
  return success();
}

/// Repeats `v`, a reduction's result or gradient, along the reduced dims.
static Value expand(OpBuilder &b, ReduceOp op, Value v) {
  auto type = typeOf(op.getOperand());
  SmallVector<int64_t> kept(type.getShape());
  for (int64_t dim : op.getDims())
    kept[dim] = 1;
  if (!op.getKeep() && typeOf(v).getShape() != ArrayRef<int64_t>(kept))
    v = ReshapeOp::create(b, op.getLoc(), v, kept);
  return v;
}

LogicalResult ReduceOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                     ArrayRef<bool> wanted, Gradients &out) {
  if (!wanted[0])
    return success();
  Location loc = getLoc();
  auto type = typeOf(getOperand());
  Value gradient = g[0];
  switch (getKind()) {
  case ReduceKind::sum:
    break;
  case ReduceKind::mean: {
    double count = 1;
    for (int64_t dim : getDims())
      count *= type.getDimSize(dim);
    gradient =
        MulOp::create(b, loc, gradient, scalar(b, loc, gradient, 1 / count));
    break;
  }
  case ReduceKind::max:
  case ReduceKind::min: {
    // Equal extremes share the gradient evenly, as PyTorch's amax and amin do.
    Value hit = CompareOp::create(b, loc, ComparePredicate::eq, getOperand(),
                                  expand(b, *this, getResult()));
    Value ones = CastOp::create(b, loc, hit, type.getElementType());
    Value count =
        ReduceOp::create(b, loc, ReduceKind::sum, ones, getDims(), getKeep());
    Value share = DivOp::create(b, loc, gradient, count);
    out[0] = MulOp::create(b, loc, ones, expand(b, *this, share));
    return success();
  }
  case ReduceKind::prod:
    return emitOpError("has no adjoint for prod, and a trained parameter is "
                       "reached through it");
  }
  gradient = expand(b, *this, gradient);
  if (typeOf(gradient).getShape() != type.getShape())
    gradient = BroadcastOp::create(b, loc, gradient, type.getShape());
  out[0] = gradient;
  return success();
}

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                      ArrayRef<bool> wanted, Gradients &out) {
  // A row that `zero_empty_rows` made 0 gives 0 here as well.
  if (wanted[0])
    out[0] = SoftmaxBackwardOp::create(b, getLoc(), getResult(), g[0]);
  return success();
}

LogicalResult LayerNormOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                        ArrayRef<bool>, Gradients &out) {
  if (failed(needsNone(*this, g[1], "mean")) ||
      failed(needsNone(*this, g[2], "rstd")))
    return failure();
  auto all = LayerNormBackwardOp::create(b, getLoc(), getOperand(), getScale(),
                                         getMean(), getRstd(), g[0]);
  out[0] = all.getOperandGradient();
  out[1] = all.getScaleGradient();
  out[2] = all.getBiasGradient();
  return success();
}

LogicalResult RmsNormOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                      ArrayRef<bool>, Gradients &out) {
  if (failed(needsNone(*this, g[1], "rstd")))
    return failure();
  auto all = RmsNormBackwardOp::create(b, getLoc(), getOperand(), getScale(),
                                       getRstd(), g[0]);
  out[0] = all.getOperandGradient();
  out[1] = all.getScaleGradient();
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                        ArrayRef<bool> wanted, Gradients &out) {
  if (failed(needsNone(*this, g[1], "log_sum_exp")) ||
      (getMask() && failed(wantsNone(*this, wanted[3], "mask"))))
    return failure();
  auto all = AttentionBackwardOp::create(
      b, getLoc(), getQuery(), getKey(), getValue(), getResult(),
      getLogSumExp(), g[0], getMask(), getScaleAttr(), getKvHeadsAttr(),
      getCausalAttr(), getZeroEmptyRowsAttr(), getDropoutPAttr(),
      getDropoutOpIdAttr(), getOffsetsAttr(), getGlobalShapeAttr());
  out[0] = all.getQueryGradient();
  out[1] = all.getKeyGradient();
  out[2] = all.getValueGradient();
  return success();
}

LogicalResult RotaryOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                     ArrayRef<bool> wanted, Gradients &out) {
  if (failed(wantsNone(*this, wanted[1], "cos")) ||
      failed(wantsNone(*this, wanted[2], "sin")))
    return failure();
  // A rotation's transpose is the rotation back.
  if (wanted[0])
    out[0] = RotaryOp::create(b, getLoc(), g[0], getCos(), getSin(),
                              getInterleaved(), !getInverse());
  return success();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::buildAdjoint(OpBuilder &b, ArrayRef<Value> g,
                                           ArrayRef<bool> wanted,
                                           Gradients &out) {
  if (failed(needsNone(*this, g[1], "log_sum_exp")))
    return failure();
  if (wanted[0])
    out[0] = CrossEntropyBackwardOp::create(
        b, getLoc(), getLogits(), getLabels(), getLogSumExp(), g[0],
        getIgnoreIndexAttr(), IntegerAttr());
  return success();
}
