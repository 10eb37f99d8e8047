//===- autohet-translate.cpp - model files to text IR ---------------------===//
//
//   autohet-translate --import-onnx model.onnx | autohet-opt --onnx-to-het
//
//===----------------------------------------------------------------------===//

#include "Options/Diagnostics.h"
#include "Options/ModelOptions.h"

#include "autohet/Dialect/Onnx/Onnx.h"
#include "autohet/Frontend/ONNX.h"
#include "autohet/runtime/streams.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace autohet;

namespace {

cl::OptionCategory translating("Translating");

struct CommandLine {
  cl::opt<std::string> input{cl::Positional, cl::desc("<model.onnx>")};
  cl::opt<bool> importOnnx{"import-onnx", cl::desc("Read an ONNX model"),
                           cl::cat(translating)};
  cl::opt<std::string> output{
      "o", cl::desc("Where to write; standard output otherwise"),
      cl::value_desc("file"), cl::init("-"), cl::cat(translating)};
};

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  ah_ignore_size_signal(); // which LLVM would have reported as a crash
  CommandLine line;
  cl::HideUnrelatedOptions(translating);
  static constexpr llvm::StringLiteral tool = "autohet-translate";
  if (!parseCommandLine(argc, argv, tool, "autohet: model files to text IR\n"))
    return 1;
  auto fail = [](const llvm::Twine &text) {
    llvm::errs() << tool << ": error: " << text << "\n";
    return 1;
  };
  if (!line.importOnnx)
    return fail("translate what? Give --import-onnx; see --help");
  if (line.input.empty())
    return fail("which model? Give a file; see --help");
  mlir::MLIRContext context;
  context.loadDialect<onnx::OnnxDialect, mlir::func::FuncDialect>();
  DiagnosticPrinter printer(context, tool);
  // A model's external data lies beside it, so the reader wants the file's
  // name, not its bytes.
  mlir::OwningOpRef<mlir::ModuleOp> module =
      importOnnxFile(line.input, context);
  if (!module)
    return 1;
  if (line.output == "-") {
    llvm::outs() << *module << "\n";
    return exitStatus(mlir::success(), tool);
  }
  llvm::Error lost =
      llvm::writeToOutput(line.output, [&](llvm::raw_ostream &os) {
        os << *module << "\n";
        return llvm::Error::success();
      });
  if (lost)
    return fail("cannot write '" + line.output +
                "': " + llvm::toString(std::move(lost)));
  return 0;
}
