//===- Html.h - writing HTML and SVG ----------------------------*- C++ -*-===//

#ifndef AUTOHET_LIB_REPORT_HTML_H
#define AUTOHET_LIB_REPORT_HTML_H

#include "autohet/Report/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace autohet {

/// Text with what HTML would read as markup escaped.
inline std::string escape(llvm::StringRef text) {
  std::string escaped;
  llvm::raw_string_ostream os(escaped);
  llvm::printHTMLEscaped(text, os);
  return escaped;
}

/// The class that the page's style gives a colour.
const char *styleOf(SpanKind kind);

/// The lanes as one picture with an axis of time.
void writeTimeline(llvm::ArrayRef<ReportLane> lanes, llvm::raw_ostream &os);

} // namespace autohet

#endif
