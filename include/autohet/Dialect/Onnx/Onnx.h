//===- Onnx.h - the onnx dialect --------------------------------*- C++ -*-===//

#ifndef AUTOHET_DIALECT_ONNX_ONNX_H
#define AUTOHET_DIALECT_ONNX_ONNX_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "autohet/Dialect/Onnx/OnnxDialect.h.inc"
#include "autohet/Dialect/Onnx/OnnxEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "autohet/Dialect/Onnx/OnnxAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "autohet/Dialect/Onnx/OnnxTypes.h.inc"

#define GET_OP_CLASSES
#include "autohet/Dialect/Onnx/OnnxOps.h.inc"

namespace autohet::onnx {

/// Attribute names of graph inputs and outputs, spelled once.
inline constexpr llvm::StringLiteral kNameAttr = "onnx.name";
/// On an argument: the value that it always has.
inline constexpr llvm::StringLiteral kValueAttr = "onnx.value";
inline constexpr llvm::StringLiteral kDimsAttr = "onnx.dims";
/// On a result: the type that the file says it has.
inline constexpr llvm::StringLiteral kDeclaredAttr = "onnx.declared";
/// On the graph: the other names of tied parameters, each with the name that it
/// has there, where the file lists them.
inline constexpr llvm::StringLiteral kAliasesAttr = "onnx.aliases";
/// On the graph: the names of all parameters, where the file lists them.
inline constexpr llvm::StringLiteral kParametersAttr = "onnx.parameters";
/// On the graph: the names of those that are not trained, where it lists them.
inline constexpr llvm::StringLiteral kFrozenAttr = "onnx.frozen";

} // namespace autohet::onnx

#endif
