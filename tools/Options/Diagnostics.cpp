//===- Diagnostics.cpp - messages as all tools print them -----------------===//

#include "Diagnostics.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace autohet;

/// "file:line:column", "file", the node's name: what a message is about, as far
/// as it is known, else empty.
static std::string placeOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    std::string inner = placeOf(name.getChildLoc());
    return (inner.empty() ? "" : inner + ": ") + "node '" +
           name.getName().str() + "'";
  }
  if (auto file = dyn_cast<FileLineColLoc>(location)) {
    std::string place = file.getFilename().str();
    if (file.getLine())
      place += ":" + std::to_string(file.getLine()) + ":" +
               std::to_string(file.getColumn());
    return place;
  }
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string place = placeOf(part); !place.empty())
        return place;
  return "";
}

static void print(Diagnostic &diagnostic, StringRef tool, unsigned depth,
                  llvm::raw_ostream &os) {
  static const char *const kinds[] = {"note", "warning", "error", "remark"};
  std::string place = placeOf(diagnostic.getLocation());
  os.indent(2 * depth) << (place.empty() ? tool : place) << ": "
                       << kinds[unsigned(diagnostic.getSeverity())] << ": "
                       << diagnostic.str() << "\n";
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, tool, depth + 1, os);
}

DiagnosticPrinter::DiagnosticPrinter(MLIRContext &context, StringRef tool)
    : tool(tool.str()), handler(&context, [this](Diagnostic &diagnostic) {
        std::string text;
        llvm::raw_string_ostream os(text);
        print(diagnostic, this->tool, 0, os);
        // A model is read once for each size of microbatch.
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error ||
            said.insert(text).second)
          llvm::errs() << text;
        return success();
      }) {
  context.printOpOnDiagnostic(false);
}

std::unique_ptr<ScopedDiagnosticHandler>
KeptDiagnostics::keep(MLIRContext &context) {
  context.printOpOnDiagnostic(false);
  return std::make_unique<ScopedDiagnosticHandler>(
      &context, [this](Diagnostic &diagnostic) {
        kept.push_back(std::move(diagnostic));
        return success();
      });
}

/// The same place in another context, as far as placeOf() tells it.
static Location copyOf(Location location, MLIRContext &context) {
  if (auto name = dyn_cast<NameLoc>(location))
    return NameLoc::get(StringAttr::get(&context, name.getName().getValue()),
                        copyOf(name.getChildLoc(), context));
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return FileLineColLoc::get(&context, file.getFilename().getValue(),
                               file.getLine(), file.getColumn());
  if (auto fused = dyn_cast<FusedLoc>(location))
    return FusedLoc::get(
        &context, llvm::map_to_vector(fused.getLocations(), [&](Location part) {
          return copyOf(part, context);
        }));
  return UnknownLoc::get(&context);
}

void KeptDiagnostics::sayIn(MLIRContext &context) const {
  for (const Diagnostic &diagnostic : kept) {
    Diagnostic copy(copyOf(diagnostic.getLocation(), context),
                    diagnostic.getSeverity());
    copy << diagnostic.str();
    for (const Diagnostic &note :
         const_cast<Diagnostic &>(diagnostic).getNotes())
      copy.attachNote(copyOf(note.getLocation(), context)) << note.str();
    context.getDiagEngine().emit(std::move(copy));
  }
}

/// The place of "file:line:column<separator>text", and the text.
static std::pair<Location, StringRef>
splitPlace(MLIRContext &context, StringRef line, StringRef separator) {
  auto [place, text] = line.split(separator);
  if (text.empty())
    return {UnknownLoc::get(&context), line};
  unsigned row = 0, column = 0;
  auto takeNumber = [file = &place](unsigned &value) {
    auto [rest, number] = file->rsplit(':');
    if (!number.getAsInteger(10, value))
      *file = rest;
  };
  takeNumber(column);
  takeNumber(row);
  return {FileLineColLoc::get(&context, place, row, column), text};
}

LogicalResult autohet::emitProblem(MLIRContext &context, llvm::Error problem) {
  std::string message = llvm::toString(std::move(problem));
  for (StringRef line : llvm::split(message, '\n')) {
    auto [location, text] = splitPlace(context, line, ": error: ");
    emitError(location, text);
  }
  return failure();
}

void autohet::emitWarnings(MLIRContext &context,
                           ArrayRef<std::string> warnings) {
  for (StringRef line : warnings) {
    if (line.contains(": remark: ")) {
      auto [location, text] = splitPlace(context, line, ": remark: ");
      emitRemark(location, text);
      continue;
    }
    auto [location, text] = splitPlace(context, line, ": warning: ");
    emitWarning(location, text);
  }
}
