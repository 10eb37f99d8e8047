//===- Report.cpp - what autohet-plan prints --------------------------------===//

#include "Plan.h"
#include "autohet/Plan/MegatronLayout.h"
#include "autohet/Report/MovesText.h"
#include "autohet/Report/PlanText.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace autohet;

LogicalResult autohet::writeOutput(StringRef path, StringRef text,
                                   MLIRContext &context) {
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (!code) {
    file << text;
    file.flush();
    code = file.error();
    file.clear_error();
    // No half of a plan is left behind.
    if (code && llvm::sys::fs::is_regular_file(path))
      llvm::sys::fs::remove(path);
  }
  if (code)
    return emitError(UnknownLoc::get(&context))
           << "cannot write '" << path << "': " << code.message();
  return success();
}

/// What a plan's flags are, or why it has none: no error, for the plan is good.
static void printMegatron(const PlannerResult &result, const UnitTable &units) {
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

/// Whether a config's samples are as long as it allows, since nobody said more.
static bool isLongest(const ModelFile &model) {
  return llvm::sys::path::extension(model.path) == ".json" &&
         !model.sequence_length;
}

LogicalResult autohet::report(const PlanOptions &options,
                              const PlannerResult &result,
                              const UnitTable &units, const Cluster &cluster,
                              int64_t tokens, MLIRContext &context,
                              PlanTextFacts facts, const ReplanResult *moves) {
  facts.tokens = tokens;
  facts.precision = options.precision;
  facts.remarks = options.remarks;
  if (options.isJson) {
    llvm::json::Value text = describePlanAsJson(result, units, cluster, facts);
    if (moves)
      (*text.getAsObject())["moves"] =
          describeMovesAsJson(*moves, units, cluster);
    llvm::outs() << llvm::formatv("{0:2}\n", text);
  } else {
    double parameters = 0;
    for (const UnitParameter &parameter : units.parameters)
      parameters += parameter.bytes / sizeof(float);
    llvm::outs() << llvm::formatv("model: {0}, {1} parameters in {2} units",
                                  options.model.path, int64_t(parameters),
                                  units.units.size());
    if (tokens)
      llvm::outs() << ", samples of " << tokens << " tokens"
                   << (isLongest(options.model)
                           ? " (the config's longest: --seq-len gives another)"
                           : "");
    llvm::outs() << "\n" << formatPlanText(result, units, cluster, facts);
    if (moves)
      llvm::outs() << formatMoves(*moves, units, cluster);
  }
  if (options.megatron)
    printMegatron(result, units);
  if (options.output.empty())
    return success();
  return writeOutput(options.output, formatPlan(result.best.plan), context);
}
