//===- ONNX.h - reading ONNX files -----------------------------*- C++ -*-===//
//
// Reading is mechanical: every node becomes one `onnx.node`, under its own
// name. What nodes mean is decided by the pass `onnx-to-het`.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_FRONTEND_ONNX_H
#define AUTOHET_FRONTEND_ONNX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace autohet {

/// The operator sets of ai.onnx that are understood, both ends included.
inline constexpr int64_t kFirstOpset = 1;
inline constexpr int64_t kLastOpset = 28;

/// Reads the model at `path` as a module with one function of onnx ops. Weights
/// stay where they are, and are named by file and offset. Returns null after a
/// diagnostic if the file is not a model, or not one that can be read.
mlir::OwningOpRef<mlir::ModuleOp> importOnnxFile(llvm::StringRef path,
                                                 mlir::MLIRContext &context);

} // namespace autohet

#endif
