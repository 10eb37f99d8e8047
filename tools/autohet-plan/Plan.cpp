//===- Plan.cpp - from a model and machines to a plan -----------------------===//
//
// The model phase for one sample gives the units; the planner sees nothing else
// of the model. No weight is read and no code made.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "Options/Diagnostics.h"
#include "Options/Planning.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Units.h"
#include "autohet/Plan/MegatronLayout.h"
#include "autohet/Report/PlanText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace autohet;

namespace {

/// What planning needs of a model.
struct PlannedModel {
  UnitTable units;
  int64_t tokens = 0;      ///< of a sample
  int64_t fixed_batch = 0; ///< of the file; 0: free
  double parameter_count = 0;
};

FailureOr<PlannedModel> readUnits(const PlanOptions &options,
                                  MLIRContext &context) {
  PlannedModel result;
  FailureOr<int64_t> fixed = batchOf(options.model, context);
  if (failed(fixed))
    return failure();
  result.fixed_batch = *fixed;
  int64_t batch = options.planner.microbatch_size.value_or(*fixed);
  // What units cost for one sample does not depend on the microbatch.
  FailureOr<OwningOpRef<ModuleOp>> module = readModel(
      options.model, batch ? batch : 1, /*differentiate=*/true, context);
  if (failed(module))
    return failure();
  for (auto function : (*module)->getOps<func::FuncOp>()) {
    if (!function->hasAttr(het::kBatchSizeAttr))
      continue;
    result.units = collectUnits(function);
    // Tokens lie along dim 1 of the first integer input.
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || !type.getElementType().isInteger() || type.getRank() < 1)
        continue;
      result.tokens = type.getRank() > 1 ? type.getDimSize(1) : 1;
      break;
    }
  }
  for (const UnitParameter &parameter : result.units.parameters)
    result.parameter_count += parameter.bytes / sizeof(float);
  return result;
}

/// Products of 16-bit numbers leave 16-bit values behind. A parameter keeps its
/// 16 bytes with AdamW: two of 2 in place of one of 4, and float32 state.
void useHalfWidth(UnitTable &units) {
  for (Unit &unit : units.units) {
    for (double *bytes : {&unit.forward_traffic_bytes,
                          &unit.backward_traffic_bytes, &unit.activation_bytes,
                          &unit.workspace_bytes, &unit.all_reduce_bytes})
      *bytes /= 2;
    for (UnitEdge &edge : unit.successors)
      edge.bytes_per_sample /= 2;
  }
}

LogicalResult writeOutput(StringRef path, StringRef text,
                          MLIRContext &context) {
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (!code) {
    file << text;
    file.flush();
    code = file.error();
    file.clear_error();
  }
  if (code)
    return emitError(UnknownLoc::get(&context))
           << "cannot write '" << path << "': " << code.message();
  return success();
}

FailureOr<PlannerResult> judge(const PlanOptions &options,
                               const PlannedModel &model,
                               const Cluster &cluster, MLIRContext &context) {
  llvm::Expected<Plan> plan = loadPlan(options.plan);
  if (!plan)
    return emitProblem(context, plan.takeError());
  std::vector<std::string> problems = verifyPlan(*plan, model.units, cluster);
  for (const std::string &problem : problems)
    emitError(UnknownLoc::get(&context)) << options.plan << ": " << problem;
  if (!problems.empty())
    return failure();
  return judgePlan(*plan, "the plan of " + options.plan, model.units, cluster);
}

/// What a plan's flags are, or why it has none: no error, for the plan is good.
void printMegatron(const PlannerResult &result, const UnitTable &units) {
  std::vector<std::string> reasons;
  MegatronLayout layout = exportToMegatron(
      result.best.resolved, units, result.best.plan.global_batch, reasons);
  if (reasons.empty())
    llvm::outs() << "megatron: " << layout.flags() << "\n";
  else
    llvm::outs() << "megatron: has no flags for this plan\n";
  for (const std::string &reason : reasons)
    llvm::outs() << "  " << reason << "\n";
}

} // namespace

LogicalResult autohet::plan(const PlanOptions &options, MLIRContext &context) {
  std::vector<std::string> warnings;
  llvm::Expected<Cluster> cluster = loadCluster(options.machines, warnings);
  if (!cluster)
    return emitProblem(context, cluster.takeError());
  emitWarnings(context, warnings);
  if (llvm::Error problem = cluster->usePrecision(options.precision))
    return emitProblem(context, std::move(problem));

  FailureOr<PlannedModel> model = readUnits(options, context);
  if (failed(model))
    return failure();
  if (options.precision != Precision::FP32)
    useHalfWidth(model->units);

  PlannerOptions planner = options.planner;
  if (!planner.microbatch_size && model->fixed_batch)
    planner.microbatch_size = model->fixed_batch;
  FailureOr<PlannerResult> result;
  if (!options.plan.empty()) {
    result = judge(options, *model, *cluster, context);
    if (failed(result))
      return failure();
  } else {
    llvm::Expected<PlannerResult> found =
        planCluster(model->units, *cluster, planner);
    if (!found)
      return emitProblem(context, found.takeError());
    result = std::move(*found);
  }

  PlanTextFacts facts;
  facts.tokens = model->tokens;
  facts.precision = options.precision;
  facts.remarks = options.remarks;
  if (options.isJson)
    llvm::outs() << llvm::formatv(
        "{0:2}\n", describePlanAsJson(*result, model->units, *cluster, facts));
  else
    llvm::outs() << llvm::formatv(
                        "model: {0}, {1} parameters in {2} units, samples of "
                        "{3} tokens\n",
                        options.model.path, int64_t(model->parameter_count),
                        model->units.units.size(), model->tokens)
                 << formatPlanText(*result, model->units, *cluster, facts);
  if (options.megatron)
    printMegatron(*result, model->units);
  if (options.output.empty())
    return success();
  return writeOutput(options.output, formatPlan(result->best.plan), context);
}
