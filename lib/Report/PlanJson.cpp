//===- PlanJson.cpp - a planner's result for programs ---------------------===//

#include "PlanFigures.h"
#include "autohet/Report/PlanText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

namespace json = llvm::json;

namespace autohet {
namespace {

json::Object memoryAsJson(const MemoryNeed &memory, double limit) {
  return json::Object{{"parameters_bytes", memory.parameter_bytes},
                      {"gradients_bytes", memory.gradient_bytes},
                      {"state_bytes", memory.state_bytes},
                      {"activations_bytes", memory.activation_bytes},
                      {"transfers_bytes", memory.transfer_bytes},
                      {"exchange_bytes", memory.exchange_bytes},
                      {"workspace_bytes", memory.workspace_bytes},
                      {"total_bytes", memory.total()},
                      {"limit_bytes", limit}};
}

json::Array devicesAsJson(const PlannedStep &step, const Cluster &cluster) {
  json::Array devices;
  for (const DeviceEvaluation &entry : step.evaluation.devices) {
    const DeviceKind &kind = cluster.kindOf(entry.device);
    devices.push_back(json::Object{
        {"device", cluster.devices()[entry.device].name},
        {"kind", kind.name},
        {"replica", entry.replica},
        {"stage", entry.stage},
        {"busy_s", entry.busy_s},
        {"memory", memoryAsJson(entry.memory, kind.memory_bytes)}});
  }
  return devices;
}

json::Object otherAsJson(llvm::StringRef name, const PlannedStep &step,
                         const Cluster &cluster) {
  return json::Object{{"name", name.str()},
                      {"step_s", step.evaluation.step_s},
                      {"shape", formatPlanShape(step, cluster)}};
}

} // namespace

json::Value describePlanAsJson(const PlannerResult &result,
                               const UnitTable &table, const Cluster &cluster,
                               const PlanTextFacts &facts) {
  const PlannedStep &best = result.best;
  const PlanEvaluation &evaluation = best.evaluation;
  PlanFigures figures = computeFigures(best, table, cluster, facts.tokens);
  json::Array modes, alternatives, idle;
  for (const ModeResult &mode : result.modes) {
    llvm::StringRef name = plannerModeName(mode.mode);
    json::Object entry{{"name", name}, {"why_not", mode.why_not}};
    if (mode.step)
      entry = otherAsJson(name, *mode.step, cluster);
    entry["search_s"] = mode.seconds;
    modes.push_back(std::move(entry));
  }
  for (auto [number, other] : llvm::enumerate(result.alternatives))
    alternatives.push_back(
        otherAsJson(std::to_string(number + 1), other, cluster));
  for (const IdleDevices &group : result.idle) {
    json::Array names;
    for (unsigned device : group.devices)
      names.push_back(cluster.devices()[device].name);
    idle.push_back(
        json::Object{{"devices", std::move(names)}, {"reason", group.reason}});
  }
  json::Array finalists;
  for (const Finalist &finalist : facts.finalists) {
    json::Object entry{{"predicted_s", finalist.step.evaluation.step_s},
                       {"simulated_s", finalist.simulated_s},
                       {"measured_s", finalist.measured_s},
                       {"chosen", finalist.is_chosen},
                       {"shape", formatPlanShape(finalist.step, cluster)}};
    json::Array memory;
    for (auto [device, bytes] :
         llvm::zip(finalist.step.evaluation.devices, finalist.program_bytes))
      memory.push_back(
          json::Object{{"device", cluster.devices()[device.device].name},
                       {"predicted_bytes", device.memory.total()},
                       {"program_bytes", bytes}});
    entry["memory"] = std::move(memory);
    if (!finalist.why_not.empty())
      entry["why_not"] = finalist.why_not;
    if (!finalist.left_out.empty())
      entry["left_out"] = finalist.left_out;
    finalists.push_back(std::move(entry));
  }
  json::Array reasons; // which name files, that is any bytes
  for (const std::string &reason : result.reasons)
    reasons.push_back(json::fixUTF8(reason));
  json::Object report{{"format", "autohet-plan-report"},
                      {"version", 1},
                      {"step_s", evaluation.step_s},
                      {"pipeline_s", evaluation.pipeline_s},
                      {"exposed_gradients_s", evaluation.exposed_sync_s},
                      {"agreement_s", evaluation.agreement_s},
                      {"update_s", evaluation.update_s},
                      {"exposed_parameters_s", evaluation.exposed_parameters_s},
                      {"bubble", evaluation.bubble},
                      {"samples_per_s", figures.samples_per_s},
                      {"tokens_per_s", figures.tokens_per_s},
                      {"model_flops_utilisation", figures.utilisation},
                      {"precision", precisionName(facts.precision)},
                      {"lower_bound_s", result.lower_bound_s},
                      {"gap", result.gap()},
                      {"search_s", result.effort.seconds},
                      {"shape", formatPlanShape(best, cluster)},
                      {"devices", devicesAsJson(best, cluster)},
                      {"idle", std::move(idle)},
                      {"modes", std::move(modes)},
                      {"alternatives", std::move(alternatives)},
                      {"reasons", std::move(reasons)}};
  if (!finalists.empty()) {
    report["finalists"] = std::move(finalists);
    report["simulating_s"] = facts.simulating_s;
    report["measuring_s"] = facts.measuring_s;
  }
  if (evaluation.latency_s > 0) {
    report["latency_s"] = evaluation.latency_s;
    report["interval_s"] = evaluation.interval_s;
  }
  if (figures.unpriced.empty() && figures.usd_per_step > 0) {
    report["usd_per_step"] = figures.usd_per_step;
    report["usd_per_million_tokens"] = figures.usd_per_million_tokens;
  }
  // As plan.json has it: what the numbers are of.
  if (auto plan = json::parse(formatPlan(best.plan)))
    report["plan"] = std::move(*plan);
  else
    llvm::consumeError(plan.takeError());
  return report;
}

} // namespace autohet
