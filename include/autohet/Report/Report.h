//===- Report.h - a job on one page -----------------------------*- C++ -*-===//
//
// One static HTML file without any other resource, so that it can be mailed,
// archived beside a checkpoint and opened on a machine without network: what is
// the plan, what will it cost, where do time and memory go.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_REPORT_REPORT_H
#define AUTOHET_REPORT_REPORT_H

#include "autohet/Planner/Planner.h"

namespace autohet {

/// A number on top of the page.
struct ReportFact {
  std::string name, value;
};

/// A bar of the comparison of step times.
struct ReportBar {
  std::string name;
  double seconds = 0;
};

enum class SpanKind { Forward, Backward, Wait, Transfer, Other };

struct ReportSpan {
  SpanKind kind = SpanKind::Other;
  std::string name;
  double start_s = 0, end_s = 0;
};

struct ReportLane {
  std::string name;
  std::vector<ReportSpan> spans; ///< by rising start, not overlapping
};

struct ReportDevice {
  std::string name, kind;
  double flops_per_s = 0, memory_limit_bytes = 0;
  /// "replica 0, stage 1", or empty where it is idle.
  std::string role;
  double busy = 0;                                    ///< part of the step
  std::vector<std::pair<std::string, double>> memory; ///< what for, bytes
};

struct ReportStage {
  std::string units, devices;
  double weight = 1; ///< for its width: units or seconds
};

struct ReportReplica {
  std::string name; ///< "replica 0: 20 microbatches of 4"
  std::vector<ReportStage> stages;
};

struct Report {
  std::string title;
  std::vector<ReportFact> facts;
  std::vector<ReportBar> comparison;
  std::vector<ReportReplica> replicas;
  std::vector<ReportLane> timeline;
  std::vector<ReportDevice> devices;
  std::vector<std::string> notes;
};

/// What is known of an evaluated plan. Facts, bars and lanes may be added, such
/// as measured times.
Report describePlan(llvm::StringRef title, const PlannedStep &step,
                    const UnitTable &table, const Cluster &cluster);
/// As above, with what the planner found beside it.
Report describePlan(llvm::StringRef title, const PlannerResult &result,
                    const UnitTable &table, const Cluster &cluster);

std::string formatReport(const Report &report);

} // namespace autohet

#endif
