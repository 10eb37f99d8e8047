//===- Reader.h - from an ONNX file to the onnx dialect --------*- C++ -*-===//
//
// What the reader's files share: Reader.cpp has the file with its inputs,
// outputs and initializers, ReadNodes.cpp its nodes, subgraphs and functions.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_ONNX_READER_H
#define AUTOHET_LIB_FRONTEND_ONNX_READER_H

#include "TensorReader.h"
#include "autohet/Dialect/Onnx/Onnx.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace autohet::onnx {

using Opsets = llvm::StringMap<int64_t>;

/// Names and what they stand for. A subgraph sees those around it, the body of
/// a function only its own.
struct Scope {
  Scope *outer = nullptr;
  llvm::StringMap<mlir::Value> values;
  llvm::StringMap<mlir::Attribute> declared; ///< types, by the value's name

  mlir::Value lookup(llvm::StringRef name) const {
    for (const Scope *scope = this; scope; scope = scope->outer)
      if (mlir::Value value = scope->values.lookup(name))
        return value;
    return {};
  }
};

/// The attributes of the call whose body is being read: those that the body's
/// nodes refer to.
using Attributes = llvm::StringMap<const ::onnx::AttributeProto *>;

class Reader {
public:
  Reader(llvm::StringRef path, mlir::MLIRContext &context)
      : path(path), builder(&context), tensors(path),
        fileLoc(mlir::FileLineColLoc::get(&context, path, 0, 0)) {}

  mlir::OwningOpRef<mlir::ModuleOp> read();

private:
  //===--- Reader.cpp ---===//
  mlir::LogicalResult parse(llvm::StringRef bytes);
  mlir::LogicalResult readOpsets();
  mlir::LogicalResult readMetadata(mlir::func::FuncOp function);
  mlir::LogicalResult readInputs(mlir::func::FuncOp function);
  mlir::LogicalResult readInitializers();
  mlir::LogicalResult readOutputs(mlir::func::FuncOp function);
  mlir::LogicalResult define(llvm::StringRef name, mlir::Value value,
                             mlir::Location loc);
  using Declarations =
      ::google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto>;
  /// What a graph says of its values' types.
  void readDeclared(const Declarations &values);
  void declare(llvm::StringRef name, mlir::Value value);
  void setDeclared(NodeOp node);
  void createInitializer(llvm::StringRef name, const Constant &constant,
                         mlir::Location loc);

  //===--- ReadNodes.cpp ---===//
  mlir::LogicalResult sortNodes();
  mlir::LogicalResult readNode(const ::onnx::NodeProto &node,
                               llvm::ArrayRef<TensorBytes> bytes);
  mlir::LogicalResult readConstantNode(const ::onnx::NodeProto &node,
                                       llvm::ArrayRef<TensorBytes> bytes,
                                       mlir::Location loc);
  mlir::LogicalResult readCall(const ::onnx::NodeProto &node,
                               const ::onnx::FunctionProto &function,
                               llvm::ArrayRef<mlir::Value> inputs,
                               mlir::Location loc);
  mlir::LogicalResult readSubgraph(const ::onnx::GraphProto &graph,
                                   mlir::Region &region, mlir::Location loc);
  mlir::LogicalResult checkAttribute(const ::onnx::AttributeProto &attribute,
                                     const std::string &what,
                                     mlir::Location loc);
  mlir::FailureOr<mlir::Attribute>
  readAttribute(const ::onnx::AttributeProto &attribute,
                const TensorBytes &bytes, const std::string &what,
                mlir::Location loc);
  const ::onnx::AttributeProto *
  resolve(const ::onnx::AttributeProto &attribute) const;
  const ::onnx::FunctionProto *
  findFunction(const ::onnx::NodeProto &node) const;

  std::string path;
  mlir::OpBuilder builder;
  TensorReader tensors;
  mlir::Location fileLoc;
  ::onnx::ModelProto model;
  TensorPlaces places;
  llvm::StringSet<> parameters; ///< that the file lists
  /// The nodes, each after those whose results it uses.
  llvm::SmallVector<int> order;

  llvm::DenseMap<mlir::Value, mlir::Attribute> declaredTypes;

  // Of what is being read: the graph, a subgraph or a function's body.
  Opsets opsets;
  Scope graph;
  Scope *scope = &graph;
  const Attributes *attributes = nullptr; // null outside of functions
  unsigned depth = 0;
  uint64_t nodeCount = 0;
};

/// "" and "ai.onnx" are one domain.
inline llvm::StringRef canonicalDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

} // namespace autohet::onnx

#endif
