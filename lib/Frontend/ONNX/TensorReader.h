//===- TensorReader.h - the constants of a model file ----------*- C++ -*-===//
//
// A TensorProto holds its elements in one of four ways. Here it becomes either
// a value in the IR or a place in a file.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_FRONTEND_ONNX_TENSORREADER_H
#define AUTOHET_LIB_FRONTEND_ONNX_TENSORREADER_H

#include "WireScan.h"
#include "onnx-ml.pb.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace autohet::onnx {

/// A constant: `value`, or `size` bytes of `file`.
struct Constant {
  mlir::RankedTensorType type;
  mlir::DenseElementsAttr value;
  std::string file;
  ByteRange place;
};

/// The MLIR type of an ONNX element type; null where there is none here.
mlir::Type elementType(int32_t onnxType, mlir::MLIRContext *context);
/// As the standard spells it.
std::string nameOfElement(int32_t onnxType);
/// The type, or null after a diagnostic that starts with `what`.
mlir::Type convertElementType(int32_t onnxType, const llvm::Twine &what,
                              mlir::Location loc);

class TensorReader {
public:
  /// `modelPath` as the user gave it; external data lies beside it.
  TensorReader(llvm::StringRef modelPath) : modelPath(modelPath) {}

  /// Reads a tensor that the diagnostics call `what`. Floats of two or more
  /// elements, which are weights, stay in their file; so do others that are
  /// known to be parameters.
  mlir::FailureOr<Constant> read(const ::onnx::TensorProto &tensor,
                                 const TensorBytes &bytes,
                                 const llvm::Twine &what, mlir::Location loc,
                                 bool isParameter = false);

private:
  mlir::FailureOr<ByteRange> locateExternal(const ::onnx::TensorProto &tensor,
                                            uint64_t expected,
                                            const std::string &what,
                                            mlir::Location loc,
                                            std::string &file);

  std::string modelPath;
};

} // namespace autohet::onnx

#endif
