//===- Report.cpp - a job on one page -------------------------------------===//

#include "Html.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <algorithm>

namespace autohet {
namespace {

const char *const style = R"(<style>
:root { color-scheme: light dark; --ink: #1d2433; --soft: #667085; --page: #fff;
  --panel: #f5f6f8; --line: #d9dde3; --forward: #3b82c4; --backward: #1f4e79;
  --wait: #d9dde3; --transfer: #d98c2b; --other: #8a94a6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3;
  --page: #14171c; --panel: #1e232b; --line: #363d49; --forward: #5aa2e0;
  --backward: #8ec2ee; --wait: #363d49; --transfer: #e0a458; --other: #78839a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--page); max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.facts { display: flex; flex-wrap: wrap; gap: .8rem; }
.facts div { background: var(--panel); border-radius: 8px; padding: .6rem 1rem; }
.facts b { display: block; font-size: 1.25rem; } .facts span, .soft { color: var(--soft); }
.row { display: grid; grid-template-columns: 13rem 1fr 9rem; gap: .8rem; align-items: center; margin: .3rem 0; }
.bar { display: flex; height: 18px; background: var(--panel); border-radius: 4px; overflow: hidden; }
.bar i { display: block; height: 100%; } .right { text-align: right; }
.replica { display: flex; gap: 4px; margin: .3rem 0 1rem; }
.stage { background: var(--panel); border-left: 4px solid var(--forward); border-radius: 4px;
  padding: .4rem .7rem; min-width: 6rem; overflow-wrap: anywhere; }
svg.timeline { width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--ink); } svg .axis { fill: var(--soft); }
svg .grid { stroke: var(--line); stroke-width: 1; }
.forward { fill: var(--forward); background: var(--forward); }
.backward { fill: var(--backward); background: var(--backward); }
.wait { fill: var(--wait); background: var(--wait); }
.transfer { fill: var(--transfer); background: var(--transfer); }
.other { fill: var(--other); background: var(--other); }
.over { outline: 2px solid #c43b3b; }
.key span { margin-right: 1.2rem; } .key i { display: inline-block; width: 12px; height: 12px;
  border-radius: 3px; margin-right: .4rem; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: var(--soft); font-weight: 500; }
td, th { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
</style>
)";

// What fills memory, in the order of describePlan()'s parts.
const char *const memoryStyles[] = {"forward", "backward", "other", "transfer",
                                    "wait"};

class ReportWriter {
public:
  ReportWriter(const Report &report, llvm::raw_ostream &os)
      : report(report), os(os) {}

  void write() {
    os << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n"
       << "<title>" << escape(report.title) << "</title>\n"
       << style << "</head>\n<body>\n<h1>" << escape(report.title) << "</h1>\n";
    writeFacts();
    writeComparison();
    writePlan();
    if (!report.timeline.empty()) {
      os << "<h2>One step</h2>\n";
      writeTimelineKey();
      writeTimeline(report.timeline, os);
    }
    writeMemory();
    writeCluster();
    writeNotes();
    os << "</body>\n</html>\n";
  }

private:
  void writeFacts() {
    os << "<div class=\"facts\">\n";
    for (const ReportFact &fact : report.facts)
      os << "<div><span>" << escape(fact.name) << "</span><b>"
         << escape(fact.value) << "</b></div>\n";
    os << "</div>\n";
  }

  void writeComparison() {
    if (report.comparison.empty())
      return;
    double longest = 0;
    for (const ReportBar &bar : report.comparison)
      longest = std::max(longest, bar.seconds);
    os << "<h2>Step time</h2>\n";
    for (const ReportBar &bar : report.comparison)
      os << "<div class=\"row\"><span>" << escape(bar.name)
         << "</span><div class=\"bar\">"
         << llvm::format("<i class=\"forward\" style=\"width:%.2f%%\"></i>",
                         longest > 0 ? 100 * bar.seconds / longest : 0)
         << "</div><span class=\"right\">"
         << formatQuantity(bar.seconds, Dimension::Seconds)
         << "</span></div>\n";
  }

  void writePlan() {
    os << "<h2>Plan</h2>\n";
    for (const ReportReplica &replica : report.replicas) {
      os << "<div class=\"soft\">" << escape(replica.name)
         << "</div>\n<div class=\"replica\">\n";
      for (const ReportStage &stage : replica.stages)
        os << llvm::format("<div class=\"stage\" style=\"flex:%.4f\">",
                           stage.weight)
           << "<b>" << escape(stage.devices) << "</b><br>"
           << escape(stage.units) << "</div>\n";
      os << "</div>\n";
    }
  }

  void writeKey(llvm::ArrayRef<std::pair<const char *, std::string>> entries) {
    os << "<p class=\"key\">";
    for (const auto &[name, text] : entries)
      os << "<span><i class=\"" << name << "\"></i>" << escape(text)
         << "</span>";
    os << "</p>\n";
  }

  // Only what the picture has.
  void writeTimelineKey() {
    std::vector<std::pair<const char *, std::string>> key;
    for (SpanKind kind : {SpanKind::Forward, SpanKind::Backward,
                          SpanKind::Transfer, SpanKind::Wait, SpanKind::Other})
      if (llvm::any_of(report.timeline, [&](const ReportLane &lane) {
            return llvm::any_of(lane.spans, [&](const ReportSpan &span) {
              return span.kind == kind;
            });
          }))
        key.push_back({styleOf(kind), styleOf(kind)});
    writeKey(key);
  }

  void writeMemory() {
    os << "<h2>Memory</h2>\n";
    double largest = 0;
    std::vector<std::pair<const char *, std::string>> key;
    for (const ReportDevice &device : report.devices) {
      largest = std::max(largest, device.memory_limit_bytes);
      for (size_t part = key.size(); part < device.memory.size(); ++part)
        key.push_back({memoryStyles[part % std::size(memoryStyles)],
                       device.memory[part].first});
    }
    writeKey(key);
    for (const ReportDevice &device : report.devices) {
      if (device.role.empty())
        continue;
      double total = 0;
      for (const auto &part : device.memory)
        total += part.second;
      double limit = device.memory_limit_bytes;
      os << "<div class=\"row\"><span>" << escape(device.name) << " <span "
         << "class=\"soft\">" << escape(device.role)
         << "</span></span><div class=\"bar" << (total > limit ? " over" : "")
         << "\">";
      for (auto [part, entry] : llvm::enumerate(device.memory))
        os << "<i class=\"" << memoryStyles[part % std::size(memoryStyles)]
           << llvm::format("\" style=\"width:%.3f%%\" title=\"",
                           100 * entry.second / std::max(total, limit))
           << escape(entry.first) << ": "
           << formatQuantity(entry.second, Dimension::Bytes) << "\"></i>";
      os << "</div><span class=\"right\">"
         << formatQuantity(total, Dimension::Bytes) << " of "
         << formatQuantity(limit, Dimension::Bytes) << "</span></div>\n";
    }
  }

  void writeCluster() {
    os << "<h2>Cluster</h2>\n<table>\n<tr><th>device</th><th>kind</th>"
          "<th>arithmetic</th><th>memory</th><th>role</th><th>busy</th></tr>\n";
    for (const ReportDevice &device : report.devices) {
      os << "<tr><td>" << escape(device.name) << "</td><td>"
         << escape(device.kind) << "</td><td>"
         << formatQuantity(device.flops_per_s, Dimension::FlopsPerSecond)
         << "</td><td>"
         << formatQuantity(device.memory_limit_bytes, Dimension::Bytes)
         << "</td><td>" << escape(device.role.empty() ? "idle" : device.role)
         << "</td><td>";
      if (!device.role.empty())
        os << llvm::format("%.0f %%", 100 * device.busy);
      os << "</td></tr>\n";
    }
    os << "</table>\n";
  }

  void writeNotes() {
    if (report.notes.empty())
      return;
    os << "<h2>Notes</h2>\n<ul>\n";
    for (const std::string &note : report.notes)
      os << "<li>" << escape(note) << "</li>\n";
    os << "</ul>\n";
  }

  const Report &report;
  llvm::raw_ostream &os;
};

} // namespace

std::string formatReport(const Report &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ReportWriter(report, os).write();
  return text;
}

} // namespace autohet
