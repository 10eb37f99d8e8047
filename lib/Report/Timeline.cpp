//===- Timeline.cpp - lanes of spans as SVG -------------------------------===//
//
// A thousand microbatches on eight devices are more rectangles than a browser
// likes and than anyone sees: neighbours of one kind that are thinner than a
// pixel become one.
//
//===----------------------------------------------------------------------===//

#include "Html.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <algorithm>
#include <cmath>

namespace autohet {

// Of the picture, which scales with the page.
static constexpr double width = 1000, labelWidth = 110, laneHeight = 26;
static constexpr double thinnest = 0.8;

const char *styleOf(SpanKind kind) {
  switch (kind) {
  case SpanKind::Forward:
    return "forward";
  case SpanKind::Backward:
    return "backward";
  case SpanKind::Wait:
    return "wait";
  case SpanKind::Transfer:
    return "transfer";
  case SpanKind::Other:
    return "other";
  }
  llvm_unreachable("covered switch");
}

static std::vector<ReportSpan> mergeThin(const std::vector<ReportSpan> &spans,
                                         double pixelsPerSecond) {
  std::vector<ReportSpan> merged;
  auto isThin = [&](const ReportSpan &span) {
    return (span.end_s - span.start_s) * pixelsPerSecond < thinnest;
  };
  unsigned count = 1;
  for (const ReportSpan &span : spans) {
    bool joins =
        !merged.empty() && merged.back().kind == span.kind &&
        (isThin(span) || isThin(merged.back())) &&
        (span.start_s - merged.back().end_s) * pixelsPerSecond < thinnest;
    if (!joins) {
      merged.push_back(span);
      count = 1;
      continue;
    }
    merged.back().end_s = span.end_s;
    merged.back().name = std::to_string(++count) + " × " + styleOf(span.kind);
  }
  return merged;
}

/// 1, 2 or 5 times a power of ten: about eight marks for `end`.
static double axisStep(double end) {
  double raw = end / 8, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power)
      return factor * power;
  return 10 * power;
}

void writeTimeline(llvm::ArrayRef<ReportLane> lanes, llvm::raw_ostream &os) {
  double end = 0;
  for (const ReportLane &lane : lanes)
    for (const ReportSpan &span : lane.spans)
      end = std::max(end, span.end_s);
  if (end <= 0)
    return;
  double scale = (width - labelWidth) / end;
  double height = static_cast<double>(lanes.size()) * laneHeight + 24;
  os << "<svg class=\"timeline\" viewBox=\"0 0 " << width << " " << height
     << "\" role=\"img\" aria-label=\"Timeline of one step\">\n";
  for (double mark = 0; mark <= end; mark += axisStep(end)) {
    double x = labelWidth + mark * scale;
    os << llvm::format("<line class=\"grid\" x1=\"%.2f\" x2=\"%.2f\" y1=\"0\" "
                       "y2=\"%.0f\"/>",
                       x, x, height - 20)
       << llvm::format("<text class=\"axis\" x=\"%.2f\" y=\"%.0f\">", x,
                       height - 6)
       << formatQuantity(mark, Dimension::Seconds) << "</text>\n";
  }
  for (auto [index, lane] : llvm::enumerate(lanes)) {
    double y = static_cast<double>(index) * laneHeight;
    os << llvm::format("<text class=\"lane\" x=\"0\" y=\"%.1f\">", y + 17)
       << escape(lane.name) << "</text>\n";
    for (const ReportSpan &span : mergeThin(lane.spans, scale))
      os << "<rect class=\"" << styleOf(span.kind) << "\" "
         << llvm::format("x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"",
                         labelWidth + span.start_s * scale, y + 3,
                         std::max(0.3, (span.end_s - span.start_s) * scale),
                         laneHeight - 6)
         << "><title>" << escape(span.name) << ": "
         << formatQuantity(span.start_s, Dimension::Seconds) << " to "
         << formatQuantity(span.end_s, Dimension::Seconds)
         << "</title></rect>\n";
  }
  os << "</svg>\n";
}

} // namespace autohet
