//===- autohet-translate.cpp - model files to text IR ---------------------===//
//
//   autohet-translate --import-onnx model.onnx | autohet-opt --onnx-to-het
//
//===----------------------------------------------------------------------===//

#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Frontend/ONNX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

int main(int argc, char **argv) {
  // Hundreds of options of LLVM's back ends, of no use here.
  for (auto &entry : llvm::cl::getRegisteredOptions())
    entry.second->setHiddenFlag(llvm::cl::ReallyHidden);
  // A model's external data lies beside it, so the reader wants the file's
  // name, not its bytes.
  mlir::TranslateToMLIRRegistration import(
      "import-onnx", "read an ONNX model",
      [](llvm::SourceMgr &sources, mlir::MLIRContext *context) {
        const auto *buffer = sources.getMemoryBuffer(sources.getMainFileID());
        return mlir::OwningOpRef<mlir::Operation *>(
            autohet::importOnnxFile(buffer->getBufferIdentifier(), *context));
      },
      [](mlir::DialectRegistry &registry) {
        registry.insert<autohet::onnx::OnnxDialect, mlir::func::FuncDialect>();
      });
  return mlir::failed(
      mlir::mlirTranslateMain(argc, argv, "autohet: model files to text IR"));
}
