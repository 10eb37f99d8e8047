//===- Sailor.cpp - plans under Sailor's simulator --------------------------===//
//
// Published layer profiles instead of a model's facts: the same search, judged
// by Sailor's formulas (docs/cli/autohet-plan.md).
//
//===----------------------------------------------------------------------===//

#include "Options/Diagnostics.h"
#include "Plan.h"

#include "autohet/Profiles/SailorCosts.h"

using namespace mlir;
using namespace autohet;

LogicalResult autohet::planWithSailor(const PlanOptions &options,
                                      MLIRContext &context) {
  std::vector<std::string> warnings, holes;
  llvm::Expected<SailorData> data = loadSailorData(options.sailor_data, holes);
  if (!data)
    return emitProblem(context, data.takeError());
  llvm::Expected<const SailorModel *> model = data->model(options.model.path);
  if (!model)
    return emitProblem(context, model.takeError());
  llvm::Expected<Cluster> cluster = loadCluster(options.machines, warnings);
  if (!cluster)
    return emitProblem(context, cluster.takeError());
  // Entries that were left out, of this model only.
  for (llvm::StringRef hole : holes)
    if (hole.contains("(" + options.model.path + " on ")) {
      auto [place, text] = hole.split(": error: ");
      warnings.push_back((place + ": warning: " + text).str());
    }
  emitWarnings(context, warnings);
  if (llvm::Error problem =
          SailorCosts::check(*cluster, **model, *data, options.sailor_zone))
    return emitProblem(context, std::move(problem));

  // Rates are not asked for, and memory is the data's unless the file has it.
  for (DeviceKind &kind : cluster->kinds) {
    if (kind.source.empty())
      continue;
    kind.source.clear();
    if (llvm::Expected<const SailorKind *> known = data->kind(kind.name))
      kind.memory_bytes = (*known)->memory_bytes;
    else // a kind without devices: check() knows those with
      llvm::consumeError(known.takeError());
  }

  UnitTable units = unitsOfSailorModel(**model);
  SailorCosts costs(units, *cluster, **model, *data, options.sailor_zone, {});
  llvm::Expected<PlannerResult> result = planCluster(costs, options.planner);
  if (!result)
    return emitProblem(context, result.takeError());
  if (failed(report(options, *result, units, *cluster, /*tokens=*/0, context)))
    return failure();
  if (options.sailor_output.empty())
    return success();
  llvm::Expected<SailorPlan> plan = exportToSailor(
      costs, result->best.resolved, options.planner.global_batch);
  if (!plan)
    return emitProblem(context, plan.takeError());
  return writeOutput(options.sailor_output, formatSailorPlan(*plan), context);
}
