//===- autohet-opt.cpp - every pass and pipeline, on text -------------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Passes/Codegen/Passes.h"
#include "autohet/Passes/Model/Passes.h"
#include "autohet/Passes/Plan/Passes.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"

/// What LLVM's libraries registered when they were loaded: hundreds of options
/// of back ends, among which ours would not be found.
static void hideOptionsOfLibraries() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    entry.second->setHiddenFlag(llvm::cl::ReallyHidden);
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
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "autohet: a compiler for mixed clusters\n", registry));
}
