//===- HetVerify.cpp - verifiers of the het ops -----------------------------===//
//
// Constraints that inference does not imply. Labels (parameter_c1 ...) are
// those of the ops' definitions and of the test functions in
// test/dialects/Het/invalid.mlir.
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Het/Het.h"

#include "autohet/Support/Extents.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace autohet;
using namespace autohet::het;

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

void ParameterOp::build(OpBuilder &builder, OperationState &state,
                        RankedTensorType type, StringRef name, bool trained) {
  build(builder, state, type, builder.getStringAttr(name),
        trained ? UnitAttr() : builder.getUnitAttr(), DenseI64ArrayAttr(),
        DenseI64ArrayAttr());
}

ArrayRef<int64_t> ParameterOp::getWholeShape() {
  return getGlobalShape() ? *getGlobalShape() : getType().getShape();
}
ArrayRef<int64_t> GradientOp::getWholeShape() {
  return getGlobalShape() ? *getGlobalShape() : typeOf(getValue()).getShape();
}

bool autohet::het::isElement(Type type) {
  if (isa<Float16Type, BFloat16Type, Float32Type, Float64Type, Float8E4M3FNType,
          Float8E4M3FNUZType, Float8E5M2Type, Float8E5M2FNUZType,
          Float4E2M1FNType>(type))
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.isSigned())
    return false;
  if (integer.getWidth() == 1)
    return integer.isSignless();
  return integer.getWidth() <= 64 && llvm::isPowerOf2_32(integer.getWidth());
}

bool autohet::het::hasKnownSize(RankedTensorType type) {
  return countElements(type.getShape()).has_value();
}

LogicalResult autohet::het::verifyStraightLine(func::FuncOp function) {
  if (!function.getBody().hasOneBlock() ||
      !isa<func::ReturnOp>(function.getBody().front().back()))
    return function.emitOpError("must be one block that ends in 'func.return'");
  for (Type type : llvm::concat<const Type>(function.getArgumentTypes(),
                                            function.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !hasKnownSize(tensor) || !isElement(tensor.getElementType()))
      return function.emitOpError(
                 "must have static tensors of numbers as arguments and "
                 "results, but has ")
             << type;
  }
  for (Operation &op : function.getBody().front())
    if (op.getNumRegions() != 0)
      return op.emitOpError("has regions, and so '")
             << function.getSymName() << "' is no straight line of ops";
  return success();
}

/// c1 to c3 of parameter, gradient and whatever else is a box of a tensor.
LogicalResult autohet::het::verifyBox(Operation *op, RankedTensorType type,
                                      std::optional<ArrayRef<int64_t>> offsets,
                                      std::optional<ArrayRef<int64_t>> global) {
  if (offsets.has_value() != global.has_value())
    return op->emitOpError("has ")
           << (offsets ? "offsets" : "a global shape") << " without "
           << (offsets ? "a global shape" : "offsets");
  if (!offsets)
    return success();
  if (int64_t(offsets->size()) != type.getRank() ||
      int64_t(global->size()) != type.getRank())
    return op->emitOpError("describes a box of rank ")
           << type.getRank() << " with " << offsets->size() << " offsets of "
           << global->size() << " dims";
  if (!countElements(*global))
    return op->emitOpError("is of a whole of shape [")
           << *global << "], wanted extents that are not negative and at most "
           << kMaxElements << " elements";
  for (auto [dim, offset, size, whole] :
       llvm::enumerate(*offsets, type.getShape(), *global))
    if (offset < 0 || offset > whole - size)
      return op->emitOpError("reaches outside dim ")
             << dim << ": offset " << offset << " and size " << size
             << ", but the whole has " << whole;
  return success();
}

LogicalResult ParameterOp::verify() {
  return verifyBox(*this, getType(), getOffsets(), getGlobalShape());
}
LogicalResult GradientOp::verify() {
  return verifyBox(*this, typeOf(getValue()), getOffsets(), getGlobalShape());
}

SmallVector<int64_t> WeightSourceOp::getShape() {
  SmallVector<int64_t> shape(getStoredType().getShape());
  if (getTransposed())
    std::reverse(shape.begin(), shape.end());
  return shape;
}
SmallVector<StringRef> WeightSourceOp::getAllNames() {
  SmallVector<StringRef> names = {getName()};
  if (ArrayAttr aliases = getAliasesAttr())
    llvm::append_range(names, aliases.getAsValueRange<StringAttr>());
  return names;
}
LogicalResult WeightSourceOp::verify() {
  if (getTransposed() && getStoredType().getRank() != 2) // weight_source_c1
    return emitOpError("is transposed, but ") << getStored() << " is no matrix";
  if (int64_t(getOffset()) < 0) // weight_source_c2
    return emitOpError("begins at byte ") << int64_t(getOffset());
  llvm::SmallDenseSet<StringRef> names;
  for (StringRef name : getAllNames())
    if (!names.insert(name).second) // weight_source_c3
      return emitOpError("has the name '") << name << "' twice";
  return success();
}

LogicalResult DropoutOp::verify() {
  double p = getP().convertToDouble();
  if (!(p >= 0 && p < 1)) // dropout_c1; also refuses NaN
    return emitOpError(
               "needs a probability of at least 0 and below 1, but p is ")
           << p;
  return verifyBox(*this, getType(), getOffsets(), getGlobalShape());
}

LogicalResult MatmulOp::verify() { return success(); } // all by inference
LogicalResult ReduceOp::verify() { return success(); }
LogicalResult TransposeOp::verify() { return success(); }
LogicalResult ConcatOp::verify() { return success(); }
LogicalResult GatherOp::verify() { return success(); }
LogicalResult GatherNdOp::verify() { return success(); }
LogicalResult IotaOp::verify() { return success(); }

//===----------------------------------------------------------------------===//
// Normalisation, attention
//===----------------------------------------------------------------------===//

// Verifiers run before the inferred types are checked, so that the ranks which
// inference needs are checked here as well.
static LogicalResult verifyHasLastDim(Operation *op, Value v, StringRef name) {
  if (typeOf(v).getRank() >= 1)
    return success();
  return op->emitOpError() << name << " must have rank 1 or more, but is "
                           << v.getType();
}

/// The vectors of a norm have the last extent of its operand.
static LogicalResult verifyNormVector(Operation *op, Value operand,
                                      Value vector, StringRef name) {
  if (failed(verifyHasLastDim(op, operand, "operand")))
    return failure();
  int64_t last = typeOf(operand).getShape().back();
  auto type = typeOf(vector);
  if (type.getRank() == 1 && type.getDimSize(0) == last)
    return success();
  return op->emitOpError() << name << " must be [" << last
                           << "], the operand's last extent, but is " << type;
}
static LogicalResult verifyRows(Operation *op, Value operand, Value rows,
                                StringRef name) {
  if (failed(verifyHasLastDim(op, operand, "operand")))
    return failure();
  if (typeOf(rows).getShape() == typeOf(operand).getShape().drop_back())
    return success();
  return op->emitOpError()
         << name
         << " must have the operand's shape without its last dim, but is "
         << rows.getType() << " for " << operand.getType();
}
static LogicalResult verifyAlike(Operation *op, Value a, Value b,
                                 StringRef what) {
  if (a.getType() == b.getType())
    return success();
  return op->emitOpError() << what << " must have type " << a.getType()
                           << ", but has " << b.getType();
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyNormVector(*this, getOperand(), getScale(), "scale")))
    return failure();
  return verifyNormVector(*this, getOperand(), getBias(), "bias");
}
LogicalResult LayerNormBackwardOp::verify() {
  if (failed(verifyNormVector(*this, getOperand(), getScale(), "scale")) ||
      failed(verifyRows(*this, getOperand(), getMean(), "mean")) ||
      failed(verifyRows(*this, getOperand(), getRstd(), "rstd")))
    return failure();
  return verifyAlike(*this, getOperand(), getGradient(), "gradient");
}
LogicalResult RmsNormOp::verify() {
  return verifyNormVector(*this, getOperand(), getScale(), "scale");
}
LogicalResult RmsNormBackwardOp::verify() {
  if (failed(verifyNormVector(*this, getOperand(), getScale(), "scale")) ||
      failed(verifyRows(*this, getOperand(), getRstd(), "rstd")))
    return failure();
  return verifyAlike(*this, getOperand(), getGradient(), "gradient");
}

/// attention_c1 to c3, for the op and its adjoint.
template <typename OpT>
static LogicalResult verifyAttention(OpT op) {
  auto query = typeOf(op.getQuery()), key = typeOf(op.getKey()),
       value = typeOf(op.getValue());
  if (query.getRank() != 4 || key.getRank() != 4 || value.getRank() != 4 ||
      query.getDimSize(0) != key.getDimSize(0) ||
      query.getDimSize(3) != key.getDimSize(3) ||
      key.getShape().take_front(3) != value.getShape().take_front(3))
    return op.emitOpError(
               "query [B, H, S, D], key [B, K, T, D] and value [B, K, T, Dv] "
               "do not agree: ")
           << query << ", " << key << ", " << value;
  if (int64_t(op.getKvHeads().size()) != query.getDimSize(1))
    return op.emitOpError("maps ")
           << op.getKvHeads().size() << " heads, but query has "
           << query.getDimSize(1);
  for (auto [head, kv] : llvm::enumerate(op.getKvHeads()))
    if (kv < 0 || kv >= key.getDimSize(1))
      return op.emitOpError("maps query head ")
             << head << " to key/value head " << kv << ", but there are "
             << key.getDimSize(1);
  if (!op.getMask())
    return success();
  auto mask = typeOf(op.getMask());
  SmallVector<int64_t> scores = {query.getDimSize(0), query.getDimSize(1),
                                 query.getDimSize(2), key.getDimSize(2)};
  auto both = broadcastShapes(scores, mask.getShape());
  if (failed(both) || *both != scores ||
      !(mask.getElementType().isInteger(1) ||
        isa<Float32Type, Float16Type, BFloat16Type>(mask.getElementType())))
    return op.emitOpError("mask must be f32 or i1 and broadcast to [")
           << scores << "], but is " << mask;
  return success();
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }
LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  ArrayRef<int64_t> query = typeOf(getQuery()).getShape();
  SmallVector<int64_t> result(query);
  result.back() = typeOf(getValue()).getDimSize(3);
  for (auto [value, name, shape] :
       {std::tuple{getResult(), "result", ArrayRef<int64_t>(result)},
        {getLogSumExp(), "log_sum_exp", query.drop_back()}})
    if (typeOf(value).getShape() != shape) // attention_backward_c5
      return emitOpError() << name << " must be [" << shape << "], but is "
                           << value.getType();
  return verifyAlike(*this, getResult(), getGradient(), "gradient");
}

LogicalResult RotaryOp::verify() {
  auto operand = typeOf(getOperand()), cos = typeOf(getCos());
  if (failed(verifyAlike(*this, getCos(), getSin(), "sin")))
    return failure();
  if (operand.getRank() != 4)
    return emitOpError("operand must be [B, H, S, D], but is ") << operand;
  int64_t half = cos.getRank() ? cos.getShape().back() : 0;
  SmallVector<int64_t> wanted(operand.getShape());
  wanted.back() = half;
  auto both = broadcastShapes(wanted, cos.getShape());
  if (failed(both) || *both != wanted || 2 * half > operand.getDimSize(3) ||
      half == 0)
    return emitOpError(
               "cos and sin must broadcast to [B, H, S, R/2] with R at most ")
           << operand.getDimSize(3) << ", but are " << cos << " for "
           << operand;
  return success();
}

//===----------------------------------------------------------------------===//
// Index and shape
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  if (getFirstRow().has_value() != getAllRows().has_value()) // embedding_c2
    return emitOpError("has ")
           << (getFirstRow() ? "first_row" : "all_rows") << " without "
           << (getFirstRow() ? "all_rows" : "first_row");
  if (!getFirstRow() || typeOf(getTable()).getRank() != 2)
    return success(); // c1 is by inference
  int64_t first = *getFirstRow(), all = *getAllRows(),
          rows = typeOf(getTable()).getDimSize(0);
  if (first < 0 || first > all - rows)
    return emitOpError("has ")
           << rows << " rows from " << first << " on, but there are " << all;
  return success();
}
LogicalResult EmbeddingBackwardOp::verify() {
  if (failed(verifyHasLastDim(*this, getGradient(), "gradient")))
    return failure();
  auto ids = typeOf(getIds()), gradient = typeOf(getGradient());
  if (gradient.getShape().drop_back() == ids.getShape())
    return success();
  return emitOpError("gradient must be ids' shape followed by one dim, but is ")
         << gradient << " for " << ids;
}

LogicalResult ReshapeOp::verify() {
  auto operand = typeOf(getOperand()), result = getType();
  if (operand.getNumElements() != result.getNumElements())
    return emitOpError("cannot hold ")
           << operand.getNumElements() << " elements of " << operand << " in ["
           << getShape() << "], which has " << result.getNumElements();
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto both = broadcastShapes(typeOf(getOperand()).getShape(), getShape());
  if (succeeded(both) && ArrayRef<int64_t>(*both) == getShape())
    return success();
  return emitOpError("cannot broadcast ")
         << getOperand().getType() << " to [" << getShape() << "]";
}

/// The part [offset, offset + stride * (size - 1)] of each dim lies within
/// `whole`.
static LogicalResult verifyPart(Operation *op, ArrayRef<int64_t> offsets,
                                ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> strides,
                                ArrayRef<int64_t> whole) {
  if (offsets.size() != whole.size() || sizes.size() != whole.size() ||
      strides.size() != whole.size())
    return op->emitOpError("needs ")
           << whole.size() << " offsets, sizes and strides, but has "
           << offsets.size() << ", " << sizes.size() << " and "
           << strides.size();
  for (auto [dim, offset, size, stride, extent] :
       llvm::enumerate(offsets, sizes, strides, whole)) {
    int64_t reach = 0, last = 0;
    bool overflows = llvm::MulOverflow(stride, size - 1, reach) ||
                     llvm::AddOverflow(offset, reach, last);
    if (size < 0 || stride == 0 ||
        (size > 0 && (overflows || offset < 0 || offset >= extent || last < 0 ||
                      last >= extent)))
      return op->emitOpError("reaches outside dim ")
             << dim << " of extent " << extent << ": offset " << offset
             << ", size " << size << ", stride " << stride;
  }
  return success();
}

LogicalResult SliceOp::verify() {
  return verifyPart(*this, getOffsets(), getSizes(), getStrides(),
                    typeOf(getOperand()).getShape());
}
LogicalResult SliceBackwardOp::verify() {
  return verifyPart(*this, getOffsets(), typeOf(getGradient()).getShape(),
                    getStrides(), getShape());
}

LogicalResult ArgReduceOp::verify() {
  if (getKind() != ReduceKind::max && getKind() != ReduceKind::min)
    return emitOpError("finds the max or the min, not the ")
           << stringifyReduceKind(getKind()); // arg_reduce_c1
  int64_t dim = getDim();
  auto type = typeOf(getOperand());
  if (dim >= 0 && dim < type.getRank() && type.getDimSize(dim) == 0)
    return emitOpError("looks for a place in no elements: dim ")
           << dim << " of " << type << " is empty"; // arg_reduce_c2
  return success();
}

LogicalResult CumulativeSumOp::verify() {
  int64_t dim = getDim(), rank = typeOf(getOperand()).getRank();
  if (dim >= 0 && dim < rank)
    return success();
  return emitOpError("dim must be one of the operand's ") // cumulative_sum_c2
         << rank << ", but is " << dim;
}

LogicalResult TopKOp::verify() {
  int64_t k = getK(), extent = typeOf(getOperand()).getRank()
                                   ? typeOf(getOperand()).getShape().back()
                                   : 0;
  if (k >= 0 && k <= extent)
    return success();
  return emitOpError("takes ") // top_k_c1
         << k << " of the " << extent << " elements of a row";
}

LogicalResult ScatterNdOp::verify() {
  auto operand = typeOf(getOperand()), indices = typeOf(getIndices()),
       updates = typeOf(getUpdates());
  int64_t tuple = indices.getRank() ? indices.getShape().back() : -1;
  if (tuple < 0 || tuple > operand.getRank())
    return emitOpError("indexes ") // scatter_nd_c1
           << operand << " by tuples in " << indices;
  SmallVector<int64_t> shape(indices.getShape().drop_back());
  llvm::append_range(shape, operand.getShape().drop_front(tuple));
  if (updates.getShape() == ArrayRef<int64_t>(shape) &&
      updates.getElementType() == operand.getElementType())
    return success();
  return emitOpError("updates must be ") // scatter_nd_c2
         << operand.clone(shape) << ", but are " << updates;
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::verify() {
  return verifyRows(*this, getLogits(), getLabels(), "labels");
}
LogicalResult CrossEntropyPartOp::verify() {
  if (failed(verifyRows(*this, getLogits(), getLabels(), "labels")))
    return failure();
  int64_t first = getFirstClass(),
          count = typeOf(getLogits()).getShape().back();
  if (first < 0 || first > int64_t(getClasses()) - count)
    return emitOpError("has ")
           << count << " classes from " << first << " on, but there are "
           << int64_t(getClasses());
  return success();
}
LogicalResult CrossEntropyBackwardOp::verify() {
  if (failed(verifyRows(*this, getLogits(), getLabels(), "labels")))
    return failure();
  return verifyRows(*this, getLogits(), getLogSumExp(), "log_sum_exp");
}
