//===- Config.h - reading model configs ------------------------*- C++ -*-===//
//
// A config.json of Hugging Face says everything of a model but its weights:
// that is enough to plan it, and to train it from drawn ones. The model is
// built as `het`, with the very ops that the importer of ONNX files ends with,
// so that all that follows is the same.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_FRONTEND_CONFIG_H
#define AUTOHET_FRONTEND_CONFIG_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace autohet {

/// Of a sample, in tokens.
inline constexpr int64_t kLongestSequence = int64_t(1) << 20;

struct ConfigOptions {
  int64_t batch = 1;
  /// 0: the longest that the config allows.
  int64_t sequence_length = 0;
  /// Encoders always have the input `attention_mask`; decoders, whose samples
  /// are full as a rule, only where this asks for it.
  bool padding_mask = false;
  /// As the config says; else no dropout at all.
  bool dropout = true;
  /// With what the config adds to the loss; inference has none.
  bool loss_terms = true;
  /// Tables hold any numbers: enough for costs, which are those of shapes.
  bool shapes_only = false;
  /// A remark for each key that was read and changes nothing.
  bool list_ignored = false;
};

/// Whether a model's path names a config instead of an ONNX file.
bool isConfigFile(llvm::StringRef path);

/// A module with one function, the model, whose parameters have the names and
/// shapes of the family's safetensors. Returns null after a diagnostic for each
/// thing that is wrong or not supported.
mlir::OwningOpRef<mlir::ModuleOp> importConfigFile(llvm::StringRef path,
                                                   const ConfigOptions &options,
                                                   mlir::MLIRContext &context);

} // namespace autohet

#endif
