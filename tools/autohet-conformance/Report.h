//===- Report.h - what all cases together say --------------------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_CONFORMANCE_REPORT_H
#define AUTOHET_TOOLS_CONFORMANCE_REPORT_H

#include "Case.h"

namespace autohet::conformance {

const char *nameOf(Outcome outcome);
/// One line a case.
std::string lineOf(const CaseResult &result);
/// Figures by folder and in all.
std::string summarize(const std::vector<CaseResult> &results);
/// docs/onnx-support.md.
std::string formatMarkdown(const std::vector<CaseResult> &results,
                           const Settings &settings);

} // namespace autohet::conformance

#endif
