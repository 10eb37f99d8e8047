//===- OnnxParameters.h - which constants are parameters -------*- C++ -*-===//
//
// A file's constants have the exporter's names and layouts. Here each gets the
// name and shape that it has in PyTorch, as far as the file still tells.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_MODEL_ONNXPARAMETERS_H
#define AUTOHET_PASSES_MODEL_ONNXPARAMETERS_H

#include "autohet/Dialect/Onnx/Onnx.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <optional>

namespace autohet {

/// Whether an exporter made a constant's name up: `val_12`, `onnx::MatMul_34`.
bool isCounterName(llvm::StringRef name);

/// Whether an exporter may have made a constant's name up. Those of parameters
/// have dots, but for a model's very own.
bool mayBeComputed(onnx::InitializerOp constant);

/// `a.ffn.weight` for `a.ffn_1.weight`, as the second call of a module would
/// call it.
std::string nameOfFirstCall(llvm::StringRef parameter);

/// The uses of a constant; those of an Identity's result in place of its own.
llvm::SmallVector<mlir::OpOperand *> usesOf(mlir::Value constant);

/// Whether each use of a constant is as the right factor of a matrix product.
bool isRightFactor(onnx::InitializerOp constant);
/// Whether a use of it is as a table whose rows are looked up.
bool isLookedUp(onnx::InitializerOp constant);

/// Null after an error.
std::unique_ptr<llvm::MemoryBuffer> readBytes(onnx::InitializerOp constant);
/// Whether `b` holds the elements of `a`, or of its transpose. Nothing:
/// neither.
mlir::FailureOr<std::optional<bool>> isCopy(onnx::InitializerOp a,
                                            onnx::InitializerOp b);

class OnnxParameters {
public:
  struct Parameter {
    std::string name;
    /// The other names that it has in PyTorch, where it is tied.
    llvm::SmallVector<std::string, 1> aliases;
    /// The parameter is the transpose of the constant in the file.
    bool transposed = false;
    /// Several uses are intended.
    bool shared = false;
    /// Another constant that this one is a copy of, perhaps a transposed one.
    onnx::InitializerOp original;
    bool copyIsTransposed = false;
    /// Leading dims along which the exporter has written the same again.
    unsigned repeatedDims = 0;
    /// The number that all elements are, where these are no parameter.
    std::optional<float> fill;
  };

  /// `ties` are `NAME=OTHER`; names may be the file's or the derived ones.
  /// `batch` is that of a file that fixes it, else 0.
  static mlir::FailureOr<OnnxParameters>
  analyze(mlir::func::FuncOp graph, llvm::ArrayRef<std::string> ties,
          llvm::ArrayRef<std::string> shared, bool inference, int64_t batch);

  /// One use of the constant: its value, as the file has it.
  mlir::Value use(onnx::InitializerOp constant, mlir::OpBuilder &builder,
                  mlir::Location loc);

  /// The constant's elements, where they are few; else a use of it.
  mlir::Value elements(onnx::InitializerOp constant, mlir::OpBuilder &builder);
  /// Nothing is trained: what is small is a number, whatever it is used for.
  bool inference = false;

  /// Creates a `het.weight_source` for each parameter that `function` uses.
  void createSources(mlir::func::FuncOp function, mlir::OpBuilder &builder);

private:
  mlir::LogicalResult tie(mlir::func::FuncOp graph, llvm::StringRef name,
                          llvm::StringRef other);
  /// `claims`: how many constants want a name.
  mlir::LogicalResult linkRepeatedCalls(llvm::StringMap<unsigned> &claims);
  /// Constants that are only made to be written into.
  mlir::LogicalResult findFills();
  /// Constants that are written again for each sample of a fixed batch.
  mlir::LogicalResult findRepeated(int64_t batch);
  bool isListed(onnx::InitializerOp constant) const {
    return listed && listed->contains(constant.getName());
  }
  void mentionEqualConstants();
  /// Constants that hold another parameter next to something else.
  void warnOfJoined();
  /// Single numbers that lie among a module's parameters, and are values.
  void warnOfNumbers(mlir::func::FuncOp graph) const;
  mlir::LogicalResult nameAliases(mlir::func::FuncOp graph);
  void nameByModules(mlir::func::FuncOp graph, llvm::StringSet<> &taken);
  void nameBiases(llvm::StringSet<> &taken);
  static void addAlias(Parameter &parameter, const std::string &name,
                       llvm::StringSet<> &taken);
  onnx::InitializerOp originalOf(onnx::InitializerOp constant);
  onnx::InitializerOp find(llvm::StringRef name);

  llvm::MapVector<mlir::Operation *, Parameter> parameters;
  /// The names of all that are trained, where the file says so.
  std::optional<llvm::StringSet<>> listed;
};

} // namespace autohet

#endif
