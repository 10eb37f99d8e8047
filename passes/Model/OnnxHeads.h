//===- OnnxHeads.h - heads of attention nodes -------------------*- C++ -*-===//
//
// Attention has many nodes, of ONNX and of onnxruntime; all work on heads
// [B, H, S, D], which most take and give as [B, S, H * D].
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_ONNXHEADS_H
#define AUTOHET_PASSES_MODEL_ONNXHEADS_H

#include "OnnxMath.h"

namespace autohet {

/// [B, S, heads * D] as [B, heads, S, D].
mlir::Value splitHeads(OnnxNode &node, mlir::Value value, int64_t heads);
/// [B, H, S, D] as [B, S, H * D].
mlir::Value joinHeads(OnnxNode &node, mlir::Value value);

/// Each key/value head `groups` times, as the query heads that read it follow
/// each other.
mlir::Value repeatHeads(OnnxNode &node, mlir::Value value, int64_t groups);
/// lhs [B, H, S, K] times rhs, whose dim `contracted` (2 or 3) is K.
mlir::Value multiplyHeads(OnnxNode &node, mlir::Value lhs, mlir::Value rhs,
                          int64_t contracted);

/// `het.attention`, whose query heads read the key/value heads in turn.
mlir::Value attention(OnnxNode &node, mlir::Value query, mlir::Value key,
                      mlir::Value value, mlir::Value mask, double scale,
                      bool causal, bool zeroEmptyRows);

/// Turns heads [B, H, S, D] by the rows of the tables [.., R/2] that stand at
/// `positions`, [B, S] or [1, S]. An error where they do not fit.
mlir::FailureOr<mlir::Value> rotateHeads(OnnxNode &node, mlir::Value value,
                                         mlir::Value cos, mlir::Value sin,
                                         mlir::Value positions,
                                         bool interleaved);

} // namespace autohet

#endif
