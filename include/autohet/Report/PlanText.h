//===- PlanText.h - a plan as a picture in text -----------------*- C++ -*-===//
//
// What a planner has to say, for a terminal and for programs: the plan with
// equal replicas and devices drawn once, what it costs in time, memory and
// money, how good it is, and what else there was.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_REPORT_PLANTEXT_H
#define AUTOHET_REPORT_PLANTEXT_H

#include "autohet/Planner/Planner.h"

namespace llvm::json {
class Value;
} // namespace llvm::json

namespace autohet {

/// A plan that was looked at more closely than by the search's estimates.
struct Finalist {
  PlannedStep step;
  /// Of a step, by its programs and by short runs of them.
  std::optional<double> simulated_s, measured_s;
  /// Of its programs, as their memory is planned: of each of the evaluation's
  /// devices.
  std::vector<double> program_bytes;
  /// Why it cannot be the plan; empty if it can.
  std::string why_not;
  /// Why there was no closer look; empty if there was.
  std::string left_out;
  bool is_chosen = false;
};

/// What a plan does not say of its job.
struct PlanTextFacts {
  /// Of one sample; 0: samples are not of tokens.
  int64_t tokens = 0;
  /// What the rates are of.
  Precision precision = Precision::FP32;
  /// Also why the plan is as it is, sentence by sentence.
  bool remarks = false;
  /// By rising estimate, with the seconds that looking at them took.
  std::vector<Finalist> finalists = {};
  double simulating_s = 0, measuring_s = 0;
};

std::string formatPlanText(const PlannerResult &result, const UnitTable &table,
                           const Cluster &cluster, const PlanTextFacts &facts);

/// The same as numbers; docs/formats/plan-report.md.
llvm::json::Value describePlanAsJson(const PlannerResult &result,
                                     const UnitTable &table,
                                     const Cluster &cluster,
                                     const PlanTextFacts &facts);

/// The shape of a plan in one line: "2 x (4 A100 > 2 H20), 1 x (8 V100)".
std::string formatPlanShape(const PlannedStep &step, const Cluster &cluster);

/// "n0/0-3, n1" for many devices: runs of a node's devices, and whole nodes.
std::string formatDevices(llvm::ArrayRef<unsigned> devices,
                          const Cluster &cluster);

} // namespace autohet

#endif
