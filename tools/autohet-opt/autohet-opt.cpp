//===- autohet-opt.cpp - every pass and pipeline, on text -------------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Passes/Codegen/Passes.h"
#include "autohet/Passes/Model/Passes.h"
#include "autohet/Passes/Plan/Passes.h"
#include "autohet/Passes/Schedule/Passes.h"
#include "autohet/Support/InputFile.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ToolOutputFile.h"

/// What LLVM's libraries registered when they were loaded: hundreds of options
/// of back ends, among which ours would not be found.
static void hideOptionsOfLibraries() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    entry.second->setHiddenFlag(llvm::cl::ReallyHidden);
}

/// As MLIR's own main, which reads a device without an end until memory is
/// full, and says what is wrong with a file without the word "error".
static mlir::LogicalResult runOnFile(llvm::StringRef input,
                                     llvm::StringRef output,
                                     mlir::DialectRegistry &registry,
                                     const mlir::MlirOptMainConfig &config) {
  auto text = autohet::readInputFile(input, autohet::kMostModelBytes);
  if (!text) {
    llvm::errs() << input << ": error: " << llvm::toString(text.takeError())
                 << "\n";
    return mlir::failure();
  }
  std::string problem;
  auto file = mlir::openOutputFile(output, &problem);
  if (!file) {
    llvm::errs() << "autohet-opt: error: " << problem << "\n";
    return mlir::failure();
  }
  if (failed(mlir::MlirOptMain(file->os(), std::move(*text), registry, config)))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

int main(int argc, char **argv) {
  hideOptionsOfLibraries();
  mlir::DialectRegistry registry;
  registry.insert<autohet::het::HetDialect, autohet::onnx::OnnxDialect,
                  autohet::dist::DistDialect, autohet::exec::ExecDialect,
                  mlir::func::FuncDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect, mlir::DLTIDialect>();
  autohet::registerKernelDialects(registry);
  mlir::registerTransformsPasses();
  autohet::registerModelPasses();
  autohet::registerModelPipelines();
  autohet::registerPlanPasses();
  autohet::registerPlanPipelines();
  autohet::registerSchedulePasses();
  autohet::registerSchedulePipelines();
  autohet::registerCodegenPasses();
  autohet::registerCodegenPipelines();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "autohet: a compiler for mixed clusters\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  bool printsList = config.shouldShowDialects() || config.shouldListPasses();
  return mlir::asMainReturnCode(
      input == "-" || printsList
          ? mlir::MlirOptMain(argc, argv, input, output, registry)
          : runOnFile(input, output, registry, config));
}
