//===- OnnxAttention.cpp - opset 23's attention and rotary ----------------===//
//
// Both nodes take [B, H, S, D], or [B, S, H * D] with the number of heads as a
// field; het has the former only.
//
//===----------------------------------------------------------------------===//

#include "OnnxToHet.h"

#include <cmath>

using namespace mlir;
using namespace autohet;

using Results = SmallVectorImpl<Value>;

/// [B, S, H * D] as [B, H, S, D].
static FailureOr<Value> splitHeads(OnnxNode &node, unsigned index,
                                   StringRef field) {
  ArrayRef<int64_t> shape = node.shape(index);
  if (shape.size() == 4)
    return node.operand(index);
  int64_t heads = node.intField(field, 0);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads)
    return node.error() << "operand " << index << " is " << node.type(index)
                        << " with " << field << " " << heads
                        << ", wanted [B, H, S, D] or [B, S, H * D]";
  Value split = node.reshape(node.operand(index),
                             {shape[0], shape[1], heads, shape[2] / heads});
  return node.transpose(split, {0, 2, 1, 3});
}

/// [B, H, S, D] as operand 0 had it.
static Value joinHeads(OnnxNode &node, Value value) {
  if (node.rank(0) == 4)
    return value;
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  SmallVector<int64_t> joined{shape[0], shape[2], shape[1] * shape[3]};
  return node.reshape(node.transpose(value, {0, 2, 1, 3}), joined);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static LogicalResult convertAttention(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  for (unsigned i = 4; i < node.numOperands(); ++i)
    if (node.has(i))
      return node.error() << "operand " << i
                          << " (past keys and values) is not supported";
  for (unsigned i = 1; i < node.numResults(); ++i)
    if (node.isUsed(i))
      return node.error()
             << "result " << i
             << " (present keys and values, scores) is not supported";
  if (node.floatField("softcap", 0) != 0)
    return node.error() << "softcap " << node.floatField("softcap", 0)
                        << " is not supported";

  auto query = splitHeads(node, 0, "q_num_heads");
  auto key = splitHeads(node, 1, "kv_num_heads");
  auto value = splitHeads(node, 2, "kv_num_heads");
  if (failed(query) || failed(key) || failed(value))
    return failure();
  ArrayRef<int64_t> q = tensorType(*query).getShape(),
                    k = tensorType(*key).getShape(),
                    v = tensorType(*value).getShape();
  if (q[0] != k[0] || q[0] != v[0] || k[1] != v[1] || k[2] != v[2] ||
      q[3] != k[3])
    return node.error() << "query [" << q << "], key [" << k << "] and value ["
                        << v << "] do not fit";
  if (k[1] == 0 || q[1] % k[1])
    return node.error() << q[1] << " query heads are no multiple of " << k[1]
                        << " key/value heads";
  SmallVector<int64_t> kvHeads;
  for (int64_t head = 0; head < q[1]; ++head)
    kvHeads.push_back(head / (q[1] / k[1]));

  bool causal = node.intField("is_causal", 0);
  if (causal && q[2] != k[2])
    return node.error() << "is_causal with " << q[2] << " queries and " << k[2]
                        << " keys is not supported";
  Value mask = node.has(3) ? node.operand(3) : Value();
  if (mask) {
    auto both = het::broadcastShapes(node.shape(3), {q[0], q[1], q[2], k[2]});
    Type element = node.type(3).getElementType();
    if (failed(both) ||
        ArrayRef<int64_t>(*both) != ArrayRef<int64_t>{q[0], q[1], q[2], k[2]} ||
        !(element.isF32() || element.isInteger(1)))
      return node.error() << "mask is " << node.type(3)
                          << ", wanted booleans or float32 that broadcast to ["
                          << q[0] << ", " << q[1] << ", " << q[2] << ", "
                          << k[2] << "]";
  }
  // PyTorch gives 0, not NaN, to a query whose boolean mask hides everything.
  bool zeroEmptyRows = mask && node.type(3).getElementType().isInteger(1);
  double scale = node.floatField("scale", 1 / std::sqrt(double(q[3])));
  auto attention =
      het::AttentionOp::create(node.builder(), node.loc(), *query, *key, *value,
                               mask, APFloat(scale), ArrayRef<int64_t>(kvHeads),
                               causal, zeroEmptyRows, /*dropout_p=*/FloatAttr(),
                               /*dropout_op_id=*/IntegerAttr(),
                               DenseI64ArrayAttr(), DenseI64ArrayAttr());
  results.push_back(joinHeads(node, attention.getResult()));
  results.resize(node.numResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

static LogicalResult convertRotary(OnnxNode &node, Results &results) {
  for (unsigned i : {0, 1, 2})
    if (failed(node.needFloats(i)))
      return failure();
  auto operand = splitHeads(node, 0, "num_heads");
  if (failed(operand))
    return failure();
  ArrayRef<int64_t> x = tensorType(*operand).getShape();
  // Tables for the positions at hand, [B, S, R/2]; looked up where positions
  // are given.
  Value tables[2];
  for (unsigned i : {0, 1}) {
    Value table = node.operand(1 + i);
    if (node.has(3)) {
      if (node.rank(1 + i) != 2 ||
          node.shape(3) != ArrayRef<int64_t>{x[0], x[2]})
        return node.error() << "table " << node.type(1 + i) << " and positions "
                            << node.type(3) << " do not fit [" << x << "]";
      table =
          node.create<het::EmbeddingOp>(table, node.operand(3), IntegerAttr());
    }
    ArrayRef<int64_t> shape = tensorType(table).getShape();
    int64_t rotated = node.intField("rotary_embedding_dim", 0);
    if (shape.size() != 3 || (shape[0] != x[0] && shape[0] != 1) ||
        shape[1] != x[2] || shape[2] * 2 > x[3] ||
        (rotated && shape[2] * 2 != rotated))
      return node.error() << "table of shape [" << shape << "] does not fit ["
                          << x << "], wanted [B, S, half of the rotated dims]";
    tables[i] = node.reshape(table, {shape[0], 1, shape[1], shape[2]});
  }
  if (tables[0].getType() != tables[1].getType())
    return node.error() << "cos and sin are " << tables[0].getType() << " and "
                        << tables[1].getType() << ", wanted one type";
  Value rotated = node.create<het::RotaryOp>(
      *operand, tables[0], tables[1], bool(node.intField("interleaved", 0)),
      /*inverse=*/false);
  results.push_back(joinHeads(node, rotated));
  return success();
}

void autohet::addAttentionHandlers(OnnxHandlers &handlers) {
  handlers["Attention"] = convertAttention;
  handlers["RotaryEmbedding"] = convertRotary;
}
