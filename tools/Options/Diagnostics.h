//===- Diagnostics.h - messages as all tools print them --------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_OPTIONS_DIAGNOSTICS_H
#define AUTOHET_TOOLS_OPTIONS_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

namespace autohet {

/// Prints what the context's diagnostics say to standard error, a line each:
/// "place: error: text". What has no place is of the tool. What is no error is
/// said once.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(mlir::MLIRContext &context, llvm::StringRef tool);

private:
  std::string tool;
  llvm::StringSet<> said;
  mlir::ScopedDiagnosticHandler handler;
};

/// What a context of another thread says, kept to be said in this one's.
class KeptDiagnostics {
public:
  /// While the result lives, nothing is printed.
  [[nodiscard]] std::unique_ptr<mlir::ScopedDiagnosticHandler>
  keep(mlir::MLIRContext &context);
  /// Says it all, in its order.
  void sayIn(mlir::MLIRContext &context) const;

private:
  std::vector<mlir::Diagnostic> kept;
};

/// Each line of an error of a text file's reader ("cluster.yaml:3:7: error:
/// ...") as a diagnostic at its place.
mlir::LogicalResult emitProblem(mlir::MLIRContext &context,
                                llvm::Error problem);
/// The same of warnings.
void emitWarnings(mlir::MLIRContext &context,
                  llvm::ArrayRef<std::string> warnings);

} // namespace autohet

#endif
