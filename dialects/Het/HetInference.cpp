//===- HetInference.cpp - result types of the het ops -----------------------===//
//
// The one place where shapes come from: parsing, building, the importer and the
// adjoints all ask these. What makes a shape impossible is reported here; what
// is merely wrong is left to the verifiers.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

using Loc = std::optional<Location>;
using Types = SmallVectorImpl<Type>;

static RankedTensorType withShape(Value v, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, typeOf(v).getElementType());
}

FailureOr<SmallVector<int64_t>>
autohet::het::broadcastShapes(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  size_t rank = std::max(lhs.size(), rhs.size());
  SmallVector<int64_t> shape(rank);
  for (size_t i = 0; i < rank; ++i) {
    // Dims that a shape lacks in front count as 1.
    int64_t l = i + lhs.size() < rank ? 1 : lhs[i + lhs.size() - rank];
    int64_t r = i + rhs.size() < rank ? 1 : rhs[i + rhs.size() - rank];
    if (l != r && l != 1 && r != 1)
      return failure();
    shape[i] = l == 1 ? r : l;
  }
  return shape;
}

/// The broadcast shape of all `values`, with `element`.
static LogicalResult inferBroadcast(Loc loc, ValueRange values, Type element,
                                    Types &types) {
  SmallVector<int64_t> shape(typeOf(values[0]).getShape());
  for (Value v : values.drop_front()) {
    auto both = broadcastShapes(shape, typeOf(v).getShape());
    if (failed(both))
      return emitOptionalError(loc, "shapes [", shape, "] and [",
                               typeOf(v).getShape(), "] do not broadcast");
    shape = *both;
  }
  types.push_back(RankedTensorType::get(shape, element));
  return success();
}

static LogicalResult sameElementType(Loc loc, Value a, Value b) {
  if (typeOf(a).getElementType() == typeOf(b).getElementType())
    return success();
  return emitOptionalError(
      loc, "operands must have one element type, but have ",
      typeOf(a).getElementType(), " and ", typeOf(b).getElementType());
}

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, Loc, Adaptor adaptor,
                                           Types &types) {
  types.push_back(adaptor.getValue().getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

#define SAME_TYPE(OP)                                                          \
  LogicalResult OP::inferReturnTypes(MLIRContext *, Loc, Adaptor adaptor,      \
                                     Types &types) {                           \
    types.push_back(adaptor.getOperand().getType());                           \
    return success();                                                          \
  }
SAME_TYPE(NegOp)
SAME_TYPE(AbsOp)
SAME_TYPE(ExpOp)
SAME_TYPE(LogOp)
SAME_TYPE(SqrtOp)
SAME_TYPE(RsqrtOp)
SAME_TYPE(ReciprocalOp)
SAME_TYPE(TanhOp)
SAME_TYPE(ErfOp)
SAME_TYPE(SigmoidOp)
SAME_TYPE(SiluOp)
SAME_TYPE(ReluOp)
SAME_TYPE(SinOp)
SAME_TYPE(CosOp)
SAME_TYPE(FloorOp)
SAME_TYPE(CeilOp)
SAME_TYPE(RoundOp)
SAME_TYPE(CumulativeSumOp)
SAME_TYPE(NotOp)
SAME_TYPE(GeluOp)
SAME_TYPE(DropoutOp)
SAME_TYPE(RotaryOp)
#undef SAME_TYPE

#define BROADCAST(OP)                                                          \
  LogicalResult OP::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,  \
                                     Types &types) {                           \
    if (failed(sameElementType(loc, adaptor.getLhs(), adaptor.getRhs())))      \
      return failure();                                                        \
    return inferBroadcast(loc, {adaptor.getLhs(), adaptor.getRhs()},           \
                          typeOf(adaptor.getLhs()).getElementType(), types);   \
  }
BROADCAST(AddOp)
BROADCAST(SubOp)
BROADCAST(MulOp)
BROADCAST(DivOp)
BROADCAST(ModOp)
BROADCAST(PowOp)
BROADCAST(MaxOp)
BROADCAST(MinOp)
BROADCAST(RemOp)
BROADCAST(ShiftLeftOp)
BROADCAST(ShiftRightOp)
BROADCAST(AndOp)
BROADCAST(OrOp)
BROADCAST(XorOp)
#undef BROADCAST

LogicalResult IsNanOp::inferReturnTypes(MLIRContext *context, Loc,
                                        Adaptor adaptor, Types &types) {
  types.push_back(RankedTensorType::get(typeOf(adaptor.getOperand()).getShape(),
                                        IntegerType::get(context, 1)));
  return success();
}

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, Loc loc,
                                          Adaptor adaptor, Types &types) {
  if (failed(sameElementType(loc, adaptor.getLhs(), adaptor.getRhs())))
    return failure();
  return inferBroadcast(loc, {adaptor.getLhs(), adaptor.getRhs()},
                        IntegerType::get(context, 1), types);
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  if (failed(sameElementType(loc, adaptor.getLhs(), adaptor.getRhs())))
    return failure();
  return inferBroadcast(
      loc, {adaptor.getCondition(), adaptor.getLhs(), adaptor.getRhs()},
      typeOf(adaptor.getLhs()).getElementType(), types);
}

LogicalResult CastOp::inferReturnTypes(MLIRContext *, Loc, Adaptor adaptor,
                                       Types &types) {
  types.push_back(RankedTensorType::get(typeOf(adaptor.getOperand()).getShape(),
                                        adaptor.getTo()));
  return success();
}

/// Two operands of one type give a result of that type.
static LogicalResult inferAlike(Loc loc, Value a, Value b, Types &types) {
  if (a.getType() != b.getType())
    return emitOptionalError(
        loc, "operand and gradient must have one type, but have ", a.getType(),
        " and ", b.getType());
  types.push_back(a.getType());
  return success();
}

LogicalResult GeluBackwardOp::inferReturnTypes(MLIRContext *, Loc loc,
                                               Adaptor a, Types &types) {
  return inferAlike(loc, a.getOperand(), a.getGradient(), types);
}
LogicalResult SiluBackwardOp::inferReturnTypes(MLIRContext *, Loc loc,
                                               Adaptor a, Types &types) {
  return inferAlike(loc, a.getOperand(), a.getGradient(), types);
}
LogicalResult SoftmaxBackwardOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                  Adaptor a, Types &types) {
  return inferAlike(loc, a.getResult(), a.getGradient(), types);
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  if (failed(sameElementType(loc, adaptor.getLhs(), adaptor.getRhs())))
    return failure();
  auto lhs = typeOf(adaptor.getLhs()), rhs = typeOf(adaptor.getRhs());
  if (adaptor.getLhsBatch().size() != adaptor.getRhsBatch().size() ||
      adaptor.getLhsContract().size() != adaptor.getRhsContract().size() ||
      adaptor.getLhsContract().empty())
    return emitOptionalError(
        loc,
        "batch and contract lists must pair up, with at least one "
        "contracted dim, but have ",
        adaptor.getLhsBatch().size(), " and ", adaptor.getRhsBatch().size(),
        " batch, ", adaptor.getLhsContract().size(), " and ",
        adaptor.getRhsContract().size(), " contracted dims");

  llvm::SmallBitVector lhsUsed(lhs.getRank()), rhsUsed(rhs.getRank());
  SmallVector<int64_t> shape;
  auto pair = [&](ArrayRef<int64_t> l, ArrayRef<int64_t> r,
                  bool keep) -> LogicalResult {
    for (auto [i, j] : llvm::zip_equal(l, r)) {
      if (i < 0 || i >= lhs.getRank() || j < 0 || j >= rhs.getRank())
        return emitOptionalError(loc, "dims ", i, " and ", j,
                                 " are paired, but the ranks are ",
                                 lhs.getRank(), " and ", rhs.getRank());
      if (lhsUsed[i] || rhsUsed[j])
        return emitOptionalError(loc, "dim ", lhsUsed[i] ? i : j, " of ",
                                 lhsUsed[i] ? "lhs" : "rhs",
                                 " is listed twice");
      if (lhs.getDimSize(i) != rhs.getDimSize(j))
        return emitOptionalError(
            loc, "paired dims must have one extent, but lhs dim ", i, " has ",
            lhs.getDimSize(i), " and rhs dim ", j, " has ", rhs.getDimSize(j));
      lhsUsed.set(i);
      rhsUsed.set(j);
      if (keep)
        shape.push_back(lhs.getDimSize(i));
    }
    return success();
  };
  if (failed(pair(adaptor.getLhsBatch(), adaptor.getRhsBatch(), true)) ||
      failed(pair(adaptor.getLhsContract(), adaptor.getRhsContract(), false)))
    return failure();
  for (int64_t i = 0; i < lhs.getRank(); ++i)
    if (!lhsUsed[i])
      shape.push_back(lhs.getDimSize(i));
  for (int64_t j = 0; j < rhs.getRank(); ++j)
    if (!rhsUsed[j])
      shape.push_back(rhs.getDimSize(j));
  types.push_back(RankedTensorType::get(shape, lhs.getElementType()));
  return success();
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  auto operand = typeOf(adaptor.getOperand());
  int64_t last = -1;
  for (int64_t dim : adaptor.getDims()) {
    if (dim <= last || dim >= operand.getRank())
      return emitOptionalError(
          loc, "dims must be rising dims of the operand of rank ",
          operand.getRank(), ", but are [", adaptor.getDims(), "]");
    last = dim;
  }
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < operand.getRank(); ++i) {
    if (!llvm::is_contained(adaptor.getDims(), i))
      shape.push_back(operand.getDimSize(i));
    else if (adaptor.getKeep())
      shape.push_back(1);
  }
  types.push_back(withShape(adaptor.getOperand(), shape));
  return success();
}

//===----------------------------------------------------------------------===//
// Normalisation, attention
//===----------------------------------------------------------------------===//

static LogicalResult needsRank(Loc loc, Value v, int64_t rank, StringRef what) {
  if (typeOf(v).getRank() >= rank)
    return success();
  return emitOptionalError(loc, what, " must have rank ", rank,
                           " or more, but is ", v.getType());
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                          Types &types) {
  types.push_back(a.getOperand().getType());
  return needsRank(loc, a.getOperand(), 1, "operand");
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                            Types &types) {
  if (failed(needsRank(loc, a.getOperand(), 1, "operand")))
    return failure();
  Type rows =
      withShape(a.getOperand(), typeOf(a.getOperand()).getShape().drop_back());
  types.append({a.getOperand().getType(), rows, rows});
  return success();
}
LogicalResult LayerNormBackwardOp::inferReturnTypes(MLIRContext *, Loc,
                                                    Adaptor a, Types &types) {
  types.append({a.getOperand().getType(), a.getScale().getType(),
                a.getScale().getType()});
  return success();
}
LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                          Types &types) {
  if (failed(needsRank(loc, a.getOperand(), 1, "operand")))
    return failure();
  types.append({a.getOperand().getType(),
                withShape(a.getOperand(),
                          typeOf(a.getOperand()).getShape().drop_back())});
  return success();
}
LogicalResult RmsNormBackwardOp::inferReturnTypes(MLIRContext *, Loc, Adaptor a,
                                                  Types &types) {
  types.append({a.getOperand().getType(), a.getScale().getType()});
  return success();
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                            Types &types) {
  auto query = typeOf(a.getQuery()), value = typeOf(a.getValue());
  if (query.getRank() != 4 || value.getRank() != 4)
    return emitOptionalError(loc, "query and value must have rank 4, but are ",
                             query, " and ", value);
  ArrayRef<int64_t> q = query.getShape();
  types.push_back(
      withShape(a.getQuery(), {q[0], q[1], q[2], value.getDimSize(3)}));
  types.push_back(withShape(a.getQuery(), {q[0], q[1], q[2]}));
  return success();
}
LogicalResult AttentionBackwardOp::inferReturnTypes(MLIRContext *, Loc,
                                                    Adaptor a, Types &types) {
  types.append(
      {a.getQuery().getType(), a.getKey().getType(), a.getValue().getType()});
  return success();
}

//===----------------------------------------------------------------------===//
// Index
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                            Types &types) {
  if (typeOf(a.getTable()).getRank() != 2)
    return emitOptionalError(loc, "table must have rank 2, but is ",
                             a.getTable().getType());
  SmallVector<int64_t> shape(typeOf(a.getIds()).getShape());
  shape.push_back(typeOf(a.getTable()).getDimSize(1));
  types.push_back(withShape(a.getTable(), shape));
  return success();
}
LogicalResult EmbeddingBackwardOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                    Adaptor a, Types &types) {
  if (failed(needsRank(loc, a.getGradient(), 1, "gradient")))
    return failure();
  types.push_back(
      withShape(a.getGradient(), {int64_t(a.getRows()),
                                  typeOf(a.getGradient()).getShape().back()}));
  return success();
}

LogicalResult GatherOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                         Types &types) {
  auto operand = typeOf(a.getOperand());
  int64_t dim = a.getDim();
  if (dim < 0 || dim >= operand.getRank())
    return emitOptionalError(loc, "dim must be one of the operand's ",
                             operand.getRank(), ", but is ", dim);
  SmallVector<int64_t> shape(operand.getShape().take_front(dim));
  llvm::append_range(shape, typeOf(a.getIndices()).getShape());
  llvm::append_range(shape, operand.getShape().drop_front(dim + 1));
  types.push_back(withShape(a.getOperand(), shape));
  return success();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                           Types &types) {
  auto operand = typeOf(a.getOperand()), indices = typeOf(a.getIndices());
  int64_t batch = a.getBatchDims();
  if (indices.getRank() < 1 || batch < 0 || batch >= indices.getRank() ||
      indices.getShape().back() > operand.getRank() - batch)
    return emitOptionalError(loc, "index tuples in ", indices, " do not fit ",
                             operand, " with ", batch, " batch dims");
  SmallVector<int64_t> shape(indices.getShape().drop_back());
  llvm::append_range(
      shape, operand.getShape().drop_front(batch + indices.getShape().back()));
  types.push_back(withShape(a.getOperand(), shape));
  return success();
}

LogicalResult ScatterNdOp::inferReturnTypes(MLIRContext *, Loc, Adaptor a,
                                            Types &types) {
  types.push_back(a.getOperand().getType());
  return success();
}

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context, Loc loc,
                                            Adaptor a, Types &types) {
  auto operand = typeOf(a.getOperand());
  int64_t dim = a.getDim();
  if (dim < 0 || dim >= operand.getRank())
    return emitOptionalError(loc, "dim must be one of the operand's ",
                             operand.getRank(), ", but is ", dim);
  SmallVector<int64_t> shape(operand.getShape());
  shape.erase(shape.begin() + dim);
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, Loc loc, Adaptor a,
                                       Types &types) {
  if (failed(needsRank(loc, a.getOperand(), 1, "operand")))
    return failure();
  auto operand = typeOf(a.getOperand());
  SmallVector<int64_t> shape(operand.getShape());
  shape.back() = a.getK();
  types.push_back(operand.clone(shape));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

LogicalResult IotaOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                       Types &types) {
  if (int64_t(a.getCount()) < 0)
    return emitOptionalError(loc, "count must not be negative, but is ",
                             int64_t(a.getCount()));
  types.push_back(
      RankedTensorType::get({int64_t(a.getCount())}, a.getElement()));
  return success();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, Loc, Adaptor a,
                                          Types &types) {
  types.push_back(withShape(a.getOperand(), a.getShape()));
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                            Types &types) {
  auto operand = typeOf(a.getOperand());
  SmallVector<int64_t> sorted(a.getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, operand.getRank())))
    return emitOptionalError(
        loc, "permutation must hold each dim of the operand of rank ",
        operand.getRank(), " once, but is [", a.getPermutation(), "]");
  types.push_back(withShape(
      a.getOperand(), llvm::map_to_vector(a.getPermutation(), [&](int64_t dim) {
        return operand.getDimSize(dim);
      })));
  return success();
}

LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, Loc, Adaptor a,
                                            Types &types) {
  types.push_back(withShape(a.getOperand(), a.getShape()));
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, Loc, Adaptor a,
                                        Types &types) {
  types.push_back(withShape(a.getOperand(), a.getSizes()));
  return success();
}
LogicalResult SliceBackwardOp::inferReturnTypes(MLIRContext *, Loc, Adaptor a,
                                                Types &types) {
  types.push_back(withShape(a.getGradient(), a.getShape()));
  return success();
}

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor a,
                                         Types &types) {
  if (a.getParts().empty())
    return emitOptionalError(loc, "needs at least one operand");
  auto first = typeOf(a.getParts().front());
  int64_t dim = a.getDim();
  if (dim < 0 || dim >= first.getRank())
    return emitOptionalError(loc, "dim must be one of the operands' ",
                             first.getRank(), ", but is ", dim);
  SmallVector<int64_t> shape(first.getShape());
  for (Value v : a.getParts().drop_front()) {
    auto type = typeOf(v);
    SmallVector<int64_t> expected(first.getShape());
    if (type.getRank() == first.getRank())
      expected[dim] = type.getDimSize(dim);
    if (type.getShape() != ArrayRef<int64_t>(expected) ||
        type.getElementType() != first.getElementType())
      return emitOptionalError(loc, "operands must agree but for dim ", dim,
                               ", but are ", first, " and ", type);
    shape[dim] += type.getDimSize(dim);
  }
  types.push_back(withShape(a.getParts().front(), shape));
  return success();
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, Loc loc,
                                               Adaptor a, Types &types) {
  if (failed(needsRank(loc, a.getLogits(), 1, "logits")))
    return failure();
  types.push_back(withShape(a.getLogits(), {}));
  types.push_back(
      withShape(a.getLogits(), typeOf(a.getLogits()).getShape().drop_back()));
  return success();
}
LogicalResult CrossEntropyPartOp::inferReturnTypes(MLIRContext *, Loc loc,
                                                   Adaptor a, Types &types) {
  if (failed(needsRank(loc, a.getLogits(), 1, "logits")))
    return failure();
  types.append(2, withShape(a.getLogits(),
                            typeOf(a.getLogits()).getShape().drop_back()));
  return success();
}
LogicalResult CrossEntropyBackwardOp::inferReturnTypes(MLIRContext *, Loc,
                                                       Adaptor a,
                                                       Types &types) {
  types.push_back(a.getLogits().getType());
  return success();
}
