//===- OnnxProducts.cpp - matrix products ---------------------------------===//
//
// All products become `het.matmul`, which contracts any dims: transposes of
// weights disappear into it, and so does GPT-2's flattening of batch ×
// sequence.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// A matrix, and which of its dims is contracted (rows come from the other).
struct Matrix {
  Value value;
  int64_t contracted;
};

/// Looks through a transpose of a weight.
static Matrix throughTranspose(Value value, int64_t contracted) {
  auto transpose = value.getDefiningOp<het::TransposeOp>();
  if (!transpose || tensorType(value).getRank() != 2 ||
      !transpose.getOperand().getDefiningOp<het::ParameterOp>())
    return {value, contracted};
  return {transpose.getOperand(), transpose.getPermutation()[contracted]};
}

/// [B * S, K] that was [B, S, ..] becomes [B, S, K]: batch and sequence stay
/// apart. Null where there is nothing to undo.
static Value unflatten(OnnxNode &node, Value matrix) {
  auto reshape = matrix.getDefiningOp<het::ReshapeOp>();
  if (!reshape || tensorType(matrix).getRank() != 2)
    return {};
  ArrayRef<int64_t> from = tensorType(reshape.getOperand()).getShape();
  int64_t rows = tensorType(matrix).getDimSize(0), leading = 1;
  SmallVector<int64_t> shape;
  for (int64_t extent : from) {
    if (leading == rows)
      break;
    leading *= extent;
    shape.push_back(extent);
  }
  if (leading != rows || shape.size() < 2)
    return {};
  shape.push_back(tensorType(matrix).getDimSize(1));
  return node.reshape(reshape.getOperand(), shape);
}

/// lhs [.., K] times a matrix: [.., N].
static Value multiplyByMatrix(OnnxNode &node, Value lhs, int64_t lhsContracted,
                              Matrix rhs) {
  return node.create<het::MatmulOp>(
      lhs, rhs.value, ArrayRef<int64_t>(), ArrayRef<int64_t>(),
      ArrayRef<int64_t>{lhsContracted}, ArrayRef<int64_t>{rhs.contracted});
}

//===----------------------------------------------------------------------===//
// MatMul
//===----------------------------------------------------------------------===//

FailureOr<Value> autohet::matrixProduct(OnnxNode &node, Value lhs, Value rhs) {
  RankedTensorType lhsType = tensorType(lhs), rhsType = tensorType(rhs);
  if (lhsType.getElementType() != rhsType.getElementType() ||
      !lhsType.getRank() || !rhsType.getRank())
    return node.error() << "operands are " << lhsType << " and " << rhsType
                        << ", wanted matrices of one element type";
  // Vectors are matrices of one row or one column, for the time being.
  bool lhsIsVector = lhsType.getRank() == 1,
       rhsIsVector = rhsType.getRank() == 1;
  if (lhsIsVector)
    lhs = node.reshape(lhs, {1, lhsType.getDimSize(0)});
  if (rhsIsVector)
    rhs = node.reshape(rhs, {rhsType.getDimSize(0), 1});
  SmallVector<int64_t> l(tensorType(lhs).getShape()),
      r(tensorType(rhs).getShape());
  auto lBatch = ArrayRef(l).drop_back(2), rBatch = ArrayRef(r).drop_back(2);
  auto batch = het::broadcastShapes(lBatch, rBatch);
  if (l.back() != r[r.size() - 2] || failed(batch))
    return node.error() << "cannot multiply [" << lhsType.getShape() << "] by ["
                        << rhsType.getShape() << "]";

  Value product;
  if (r.size() == 2) {
    Value whole = unflatten(node, lhs);
    Value left = whole ? whole : lhs;
    product = multiplyByMatrix(node, left, tensorType(left).getRank() - 1,
                               throughTranspose(rhs, 0));
    if (whole)
      product = node.reshape(product, {l[0], r[1]});
  } else {
    // Batch dims are paired, so both sides must have all of them.
    int64_t rank = batch->size();
    for (Value *side : {&lhs, &rhs}) {
      SmallVector<int64_t> shape(*batch);
      llvm::append_range(shape, tensorType(*side).getShape().take_back(2));
      SmallVector<int64_t> aligned(shape.size() - tensorType(*side).getRank(),
                                   1);
      llvm::append_range(aligned, tensorType(*side).getShape());
      *side = node.broadcast(node.reshape(*side, aligned), shape);
    }
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    product = node.create<het::MatmulOp>(
        lhs, rhs, ArrayRef<int64_t>(dims), ArrayRef<int64_t>(dims),
        ArrayRef<int64_t>{rank + 1}, ArrayRef<int64_t>{rank});
  }
  if (lhsIsVector || rhsIsVector) {
    SmallVector<int64_t> shape(tensorType(product).getShape());
    if (rhsIsVector)
      shape.pop_back();
    if (lhsIsVector)
      shape.erase(shape.end() - (rhsIsVector ? 1 : 2));
    product = node.reshape(product, shape);
  }
  return product;
}

static LogicalResult convertMatMul(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) || failed(node.needFloats(1)))
    return failure();
  auto product = matrixProduct(node, node.operand(0), node.operand(1));
  if (failed(product))
    return failure();
  results.push_back(*product);
  return success();
}

//===----------------------------------------------------------------------===//
// Gemm
//===----------------------------------------------------------------------===//

static Value scale(OnnxNode &node, Value value, double factor) {
  return factor == 1
             ? value
             : node.create<het::MulOp>(value, node.scalarLike(value, factor));
}

/// alpha * A' * B' + beta * C, where C broadcasts to the product.
static LogicalResult convertGemm(OnnxNode &node, Results &results) {
  if (failed(node.needFloats(0)) || failed(node.needFloats(1)) ||
      (node.has(2) && failed(node.needFloats(2))))
    return failure();
  bool transA = node.intField("transA", 0), transB = node.intField("transB", 0);
  double alpha = node.floatField("alpha", 1), beta = node.floatField("beta", 1);
  if (node.rank(0) != 2 || node.rank(1) != 2 ||
      node.type(0).getElementType() != node.type(1).getElementType() ||
      node.shape(0)[transA ? 0 : 1] != node.shape(1)[transB ? 1 : 0])
    return node.error() << "cannot multiply [" << node.shape(0) << "]"
                        << (transA ? "^T" : "") << " by [" << node.shape(1)
                        << "]" << (transB ? "^T" : "");
  int64_t rows = node.shape(0)[transA ? 1 : 0],
          columns = node.shape(1)[transB ? 0 : 1];
  Value bias = node.has(2) && beta != 0 ? node.operand(2) : Value();
  if (bias) {
    auto both = het::broadcastShapes(node.shape(2), {rows, columns});
    if (failed(both) ||
        ArrayRef<int64_t>(*both) != ArrayRef<int64_t>{rows, columns})
      return node.error() << "C of shape [" << node.shape(2)
                          << "] does not broadcast to [" << rows << ", "
                          << columns << "]";
    bias = scale(node, bias, beta);
  }

  Matrix rhs = throughTranspose(node.operand(1), transB ? 1 : 0);
  Value whole = transA ? Value() : unflatten(node, node.operand(0));
  Value product =
      whole
          ? multiplyByMatrix(node, whole, tensorType(whole).getRank() - 1, rhs)
          : multiplyByMatrix(node, node.operand(0), transA ? 0 : 1, rhs);
  product = scale(node, product, alpha);
  // A bias that is the same in each row can be added before flattening.
  bool oneRow = bias && (node.rank(2) < 2 || node.shape(2)[0] == 1);
  if (bias && (!whole || oneRow)) {
    if (node.rank(2) == 2 && oneRow)
      bias = node.reshape(bias, {node.shape(2)[1]});
    product = node.create<het::AddOp>(product, bias);
    bias = {};
  }
  product = node.reshape(product, {rows, columns});
  if (bias)
    product = node.create<het::AddOp>(product, bias);
  results.push_back(product);
  return success();
}

void autohet::addProductHandlers(OnnxHandlers &handlers) {
  handlers["MatMul"] = convertMatMul;
  handlers["Gemm"] = convertGemm;
}
