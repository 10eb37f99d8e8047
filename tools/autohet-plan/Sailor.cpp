//===- Sailor.cpp - plans under Sailor's simulator --------------------------===//
//
// Published layer profiles instead of a model's facts: the same search, judged
// by Sailor's formulas (docs/cli/autohet-plan.md).
//
//===----------------------------------------------------------------------===//

#include "Options/Diagnostics.h"
#include "Options/Planning.h"
#include "Plan.h"

#include "autohet/Profiles/SailorCosts.h"

using namespace mlir;
using namespace autohet;

LogicalResult autohet::planWithSailor(const PlanOptions &options,
                                      MLIRContext &context) {
  std::vector<std::string> warnings;
  llvm::Expected<SailorData> data =
      loadSailorData(options.sailor_data, warnings);
  if (!data)
    return emitProblem(context, data.takeError());
  llvm::Expected<const SailorModel *> model = data->model(options.model.path);
  if (!model)
    return emitProblem(context, model.takeError());
  llvm::Expected<Cluster> cluster = loadCluster(options.machines, warnings);
  if (!cluster)
    return emitProblem(context, cluster.takeError());
  emitWarnings(context, warnings);
  if (llvm::Error problem =
          SailorCosts::check(*cluster, **model, *data, options.sailor_zone))
    return emitProblem(context, std::move(problem));

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
