//===- Inputs.h - what feeds a model, and where its samples lie --*- C++ -*-===//
//
// Facts of the job that a model's file does not state, as attributes of the
// model's function.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_OPTIONS_INPUTS_H
#define AUTOHET_TOOLS_OPTIONS_INPUTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>

namespace autohet {

/// Gives arguments of an imported graph the values of the files that `binds`
/// name, NAME=FILE: they become constants.
mlir::LogicalResult bindValues(mlir::func::FuncOp graph,
                               llvm::ArrayRef<std::string> binds);
/// Whether KIND of a NAME=KIND is a file rather than a word.
bool isValueFile(llvm::StringRef kind);

/// `--bind NAME=kind` and the defaults by name: where the inputs come from that
/// data files do not have. Also bounds ids and labels by what they index. A
/// name that is no input is an error.
mlir::LogicalResult bindInputs(mlir::func::FuncOp model,
                               llvm::ArrayRef<std::string> binds);

/// "inputs: input_ids=tokens attention_mask=ones": what bindInputs decided.
std::string formatInputs(mlir::func::FuncOp model);

/// Which dim of each output counts samples, as a model of several samples
/// knows, for one of a single sample, where it cannot be seen.
void copyBatchDims(mlir::func::FuncOp from, mlir::func::FuncOp to);

} // namespace autohet

#endif
