//===- DescribePlan.cpp - what a report says of a plan --------------------===//

#include "autohet/Report/Report.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace autohet {
namespace {

std::string seconds(double value) {
  return formatQuantity(value, Dimension::Seconds);
}

void addReplicas(const PlannedStep &step, Report &report) {
  for (auto [r, replica] : llvm::enumerate(step.plan.replicas)) {
    ReportReplica &entry = report.replicas.emplace_back();
    entry.name = llvm::formatv("replica {0}: {1} microbatches of {2}", r,
                               replica.microbatches, replica.microbatch_size)
                     .str();
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      entry.stages.push_back(
          {llvm::join(stage.units, ", "), llvm::join(stage.devices, " + "),
           static_cast<double>(
               step.resolved.replicas[r].stages[s].units.size())});
  }
}

void addDevices(const PlannedStep &step, const Cluster &cluster,
                Report &report) {
  for (auto [index, device] : llvm::enumerate(cluster.devices())) {
    const DeviceKind &kind = cluster.kindOf(index);
    ReportDevice &entry = report.devices.emplace_back();
    entry.name = device.name;
    entry.kind = kind.name;
    entry.flops_per_s = kind.flops_per_s;
    entry.memory_limit_bytes = kind.memory_bytes;
  }
  for (const DeviceEvaluation &used : step.evaluation.devices) {
    ReportDevice &entry = report.devices[used.device];
    entry.role =
        llvm::formatv("replica {0}, stage {1}", used.replica, used.stage).str();
    entry.busy = used.busy_s / step.evaluation.step_s;
    const MemoryNeed &memory = used.memory;
    entry.memory = {{"parameters", memory.parameter_bytes},
                    {"gradients", memory.gradient_bytes},
                    {"optimizer state", memory.state_bytes},
                    {"activations", memory.activation_bytes},
                    {"messages", memory.transfer_bytes + memory.exchange_bytes},
                    {"temporaries", memory.workspace_bytes}};
  }
}

void addTimeline(const PlannedStep &step, const Cluster &cluster,
                 Report &report) {
  for (const DeviceEvaluation &used : step.evaluation.devices) {
    ReportLane &lane = report.timeline.emplace_back();
    lane.name = cluster.devices()[used.device].name;
    double free = 0;
    for (const PipelineCommand &command :
         step.evaluation.timelineOf(used.replica).stages[used.stage]) {
      if (command.start_s > free)
        lane.spans.push_back(
            {SpanKind::Wait, "waiting", free, command.start_s});
      lane.spans.push_back(
          {command.is_backward ? SpanKind::Backward : SpanKind::Forward,
           (command.is_backward ? "backward " : "forward ") +
               std::to_string(command.microbatch),
           command.start_s, command.end_s});
      free = command.end_s;
    }
  }
}

} // namespace

Report describePlan(llvm::StringRef title, const PlannedStep &step,
                    const UnitTable &table, const Cluster &cluster) {
  Report report;
  report.title = title.str();
  const PlanEvaluation &evaluation = step.evaluation;
  report.facts = {
      {"predicted step", seconds(evaluation.step_s)},
      {"global batch", std::to_string(step.plan.global_batch)},
      {"samples a second",
       llvm::formatv("{0:f1}", static_cast<double>(step.plan.global_batch) /
                                   evaluation.step_s)
           .str()},
      {"bubble", llvm::formatv("{0:f1} %", 100 * evaluation.bubble).str()},
      {"exposed communication",
       seconds(evaluation.exposed_sync_s + evaluation.exposed_parameters_s +
               evaluation.agreement_s)},
      {"schedule", scheduleName(step.plan.schedule).str()},
      {"gradient exchange",
       gradientExchangeName(step.plan.gradient_exchange).str()},
      {"optimizer", optimizerName(step.plan.optimizer).str()}};
  if (evaluation.latency_s > 0)
    report.facts = {
        {"one batch, predicted", seconds(evaluation.latency_s)},
        {"from batch to batch", seconds(evaluation.interval_s)},
        {"global batch", std::to_string(step.plan.global_batch)},
        {"bubble", llvm::formatv("{0:f1} %", 100 * evaluation.bubble).str()}};
  report.comparison = {{"this plan, predicted", evaluation.step_s}};
  addReplicas(step, report);
  addDevices(step, cluster, report);
  addTimeline(step, cluster, report);
  return report;
}

Report describePlan(llvm::StringRef title, const PlannerResult &result,
                    const UnitTable &table, const Cluster &cluster) {
  Report report = describePlan(title, result.best, table, cluster);
  if (result.symmetric)
    report.comparison.push_back({"best symmetric plan, predicted",
                                 result.symmetric->evaluation.step_s});
  report.comparison.push_back({"lower bound", result.lower_bound_s});
  report.notes = result.reasons;
  return report;
}

} // namespace autohet
