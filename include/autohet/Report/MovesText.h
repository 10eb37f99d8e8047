//===- MovesText.h - what a change of machines moves ------------*- C++ -*-===//

#ifndef AUTOHET_REPORT_MOVESTEXT_H
#define AUTOHET_REPORT_MOVESTEXT_H

#include "autohet/Planner/Replan.h"

namespace llvm::json {
class Value;
} // namespace llvm::json

namespace autohet {

/// For a terminal: sums, and what each device gets from which.
std::string formatMoves(const ReplanResult &result, const UnitTable &table,
                        const Cluster &cluster);

/// Every slice; docs/formats/plan-report.md.
llvm::json::Value describeMovesAsJson(const ReplanResult &result,
                                      const UnitTable &table,
                                      const Cluster &cluster);

} // namespace autohet

#endif
