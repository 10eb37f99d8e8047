//===- OnnxHeads.cpp - heads of attention nodes ---------------------------===//
//
// See OnnxHeads.h.
//
//===----------------------------------------------------------------------===//

#include "OnnxHeads.h"

using namespace mlir;
using namespace autohet;

Value autohet::splitHeads(OnnxNode &node, Value value, int64_t heads) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  Value split =
      node.reshape(value, {shape[0], shape[1], heads, shape[2] / heads});
  return node.transpose(split, {0, 2, 1, 3});
}

Value autohet::joinHeads(OnnxNode &node, Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  SmallVector<int64_t> joined{shape[0], shape[2], shape[1] * shape[3]};
  return node.reshape(node.transpose(value, {0, 2, 1, 3}), joined);
}

Value autohet::repeatHeads(OnnxNode &node, Value value, int64_t groups) {
  if (groups == 1)
    return value;
  SmallVector<int64_t> shape(tensorType(value).getShape());
  SmallVector<int64_t> split{shape[0], shape[1], 1, shape[2], shape[3]};
  Value one = node.reshape(value, split);
  split[2] = groups;
  shape[1] *= groups;
  return node.reshape(node.broadcast(one, split), shape);
}

Value autohet::multiplyHeads(OnnxNode &node, Value lhs, Value rhs,
                             int64_t contracted) {
  return node.create<het::MatmulOp>(
      lhs, rhs, ArrayRef<int64_t>{0, 1}, ArrayRef<int64_t>{0, 1},
      ArrayRef<int64_t>{3}, ArrayRef<int64_t>{contracted});
}

Value autohet::attention(OnnxNode &node, Value query, Value key, Value value,
                         Value mask, double scale, bool causal,
                         bool zeroEmptyRows) {
  int64_t heads = tensorType(query).getDimSize(1);
  int64_t groups = heads / tensorType(key).getDimSize(1);
  SmallVector<int64_t> kvHeads;
  for (int64_t head = 0; head < heads; ++head)
    kvHeads.push_back(head / groups);
  return het::AttentionOp::create(
             node.builder(), node.loc(), query, key, value, mask,
             APFloat(scale), ArrayRef<int64_t>(kvHeads), causal, zeroEmptyRows,
             /*dropout_p=*/FloatAttr(), /*dropout_op_id=*/IntegerAttr(),
             DenseI64ArrayAttr(), DenseI64ArrayAttr())
      .getResult();
}

FailureOr<Value> autohet::rotateHeads(OnnxNode &node, Value value, Value cos,
                                      Value sin, Value positions,
                                      bool interleaved) {
  ArrayRef<int64_t> x = tensorType(value).getShape();
  RankedTensorType table = tensorType(cos);
  if (table.getRank() != 2 || table != tensorType(sin) ||
      2 * table.getDimSize(1) > x[3] ||
      table.getElementType() != tensorType(value).getElementType())
    return node.error() << "tables " << cos.getType() << " and "
                        << sin.getType() << " do not fit heads [" << x
                        << "], wanted [positions, half of the rotated dims]";
  ArrayRef<int64_t> at = tensorType(positions).getShape();
  if (at.size() != 2 || at[1] != x[2] || (at[0] != x[0] && at[0] != 1))
    return node.error() << "positions are " << positions.getType()
                        << ", wanted [" << x[0] << ", " << x[2] << "]";
  SmallVector<int64_t> rows{at[0], 1, at[1], table.getDimSize(1)};
  for (Value *side : {&cos, &sin})
    *side = node.reshape(node.create<het::EmbeddingOp>(
                             *side, positions, IntegerAttr(), IntegerAttr()),
                         rows);
  return node.create<het::RotaryOp>(value, cos, sin, interleaved,
                                    /*inverse=*/false);
}
