//===- ModelFile.h - from a model's file to het ----------------*- C++ -*-===//
//
// One way from what a user names, an ONNX file or a model's config, to what the
// Model phase ends with, for all tools that take a model.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_MODELFILE_H
#define AUTOHET_PASSES_MODEL_MODELFILE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <string>
#include <vector>

namespace autohet {

/// What a user says of a model.
struct ModelFile {
  std::string path;
  // Of ONNX files.
  std::vector<std::string> dims, ties, shared;
  std::string batch_dim, constants;
  /// Called with the file's graph before its nodes get their meaning.
  std::function<mlir::LogicalResult(mlir::func::FuncOp)> prepare_graph;
  // Of configs.
  int64_t sequence_length = 0; ///< 0: the longest that the config allows
  bool padding_mask = false, dropout = true, verbose = false;
  bool shapes_only = false; ///< not to be run: tables may hold any numbers
  // Of both.
  std::string freeze, loss = "cross-entropy", loss_output;
  int64_t ignore_index = -100;
  bool inference = false; ///< outputs only: no loss, nothing is trained

  bool isConfig() const;
};

/// The batch that the file, with its dims bound, has; 0 where it is free. Fails
/// after a diagnostic, as the other one does.
mlir::FailureOr<int64_t> batchOf(const ModelFile &file,
                                 mlir::MLIRContext &context);

/// The Model phase for microbatches of `batch` samples (0: as in the file);
/// without loss and gradients where `differentiate` is false.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
readModel(const ModelFile &file, int64_t batch, bool differentiate,
          mlir::MLIRContext &context);

} // namespace autohet

#endif
