//===- FormatResult.cpp - a plan as a picture in text ---------------------===//

#include "autohet/Planner/Planner.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace autohet {

static std::string seconds(double value) {
  return formatQuantity(value, Dimension::Seconds);
}

std::string PlannerResult::gapText() const {
  // A percentage of more than 100 is no nearness.
  if (gap() > 1)
    return llvm::formatv("this one takes {0:f1} times as long", 1 + gap())
        .str();
  return llvm::formatv("this one is within {0:f1} % of the best", 100 * gap())
      .str();
}

std::string formatPlannerResult(const PlannerResult &result,
                                const UnitTable &table,
                                const Cluster &cluster) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const Plan &plan = result.best.plan;
  const PlanEvaluation &evaluation = result.best.evaluation;
  os << "plan: " << plan.replicas.size() << " replica"
     << (plan.replicas.size() == 1 ? "" : "s") << ", schedule "
     << scheduleName(plan.schedule) << ", global batch " << plan.global_batch
     << "\n";
  size_t entry = 0;
  for (auto [r, replica] : llvm::enumerate(plan.replicas)) {
    os << "  replica " << r << ": " << replica.microbatches
       << " microbatches of " << replica.microbatch_size << "\n";
    for (auto [s, stage] : llvm::enumerate(replica.stages)) {
      os << "    stage " << s << ": " << llvm::join(stage.units, ", ") << "\n";
      for (size_t i = 0; i < stage.devices.size(); ++i, ++entry) {
        const DeviceEvaluation &device = evaluation.devices[entry];
        const DeviceKind &kind = cluster.kindOf(device.device);
        os << "      " << stage.devices[i] << " (" << kind.name << "): busy "
           << llvm::format("%.0f %%", 100 * device.busy_s / evaluation.step_s)
           << ", memory "
           << formatQuantity(device.memory.total(), Dimension::Bytes) << " of "
           << formatQuantity(kind.memory_bytes, Dimension::Bytes) << "\n";
      }
    }
  }
  os << "step: " << seconds(evaluation.step_s) << " predicted = pipelines "
     << seconds(evaluation.pipeline_s) << " + exposed gradients "
     << seconds(evaluation.exposed_sync_s) << " + agreement "
     << seconds(evaluation.agreement_s) << " + update "
     << seconds(evaluation.update_s) << " + exposed parameters "
     << seconds(evaluation.exposed_parameters_s) << "; bubble "
     << llvm::format("%.1f %%", 100 * evaluation.bubble) << "\n";
  for (const std::string &reason : result.reasons)
    os << "note: " << reason << "\n";
  return text;
}

} // namespace autohet
