//===- Plan.cpp - from a model and machines to a plan -----------------------===//
//
// The model phase for one sample gives the units; the planner sees nothing else
// of the model. No weight is read and no code made.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "Finalists.h"
#include "Options/Diagnostics.h"
#include "Options/Programs.h"

#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Units.h"
#include "autohet/Support/Tree.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace autohet;

namespace {

// Of a deadline, for the search, where finalists are looked at behind it.
constexpr double searchPart = 0.65;

/// What planning needs of a model.
struct PlannedModel {
  UnitTable units;
  int64_t tokens = 0;      ///< of a sample
  int64_t fixed_batch = 0; ///< of the file; 0: free
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
  ModelFile file = options.model;
  file.shapes_only = true;
  FailureOr<OwningOpRef<ModuleOp>> module =
      readModel(file, batch ? batch : 1, /*differentiate=*/true, context);
  if (failed(module))
    return failure();
  for (auto function : (*module)->getOps<func::FuncOp>()) {
    if (!function->hasAttr(het::kBatchSizeAttr))
      continue;
    result.units = collectUnits(function);
    result.tokens = tokensOf(function);
  }
  return result;
}

/// A config may say that its model is trained in 16 bits; plans are made for
/// what
/// `--precision` says.
void remarkOnPrecision(const PlanOptions &options, MLIRContext &context) {
  StringRef path = options.model.path;
  if (options.precision != Precision::FP32 ||
      llvm::sys::path::extension(path) != ".json")
    return;
  // Whoever read the model has said what is wrong with the file.
  llvm::Expected<std::string> text = readTextFile(path);
  if (!text)
    return llvm::consumeError(text.takeError());
  llvm::Expected<Tree> tree = parseJson(*text, path);
  if (!tree)
    return llvm::consumeError(tree.takeError());
  for (const char *key : {"dtype", "torch_dtype"}) {
    const Tree *type = tree->find(key);
    if (!type || (type->text != "bfloat16" && type->text != "float16"))
      continue;
    emitRemark(FileLineColLoc::get(&context, path, type->location.line,
                                   type->location.column))
        << "'" << key << "' is " << type->text
        << ", but the plan is for fp32, in which programs compute: "
           "--precision="
        << (type->text == "float16" ? "fp16" : "bf16")
        << " plans with that precision's rates";
    return;
  }
}

/// Products of 16-bit numbers leave 16-bit values behind. A parameter keeps its
/// 16 bytes with AdamW: two of 2 in place of one of 4, and float32 state.
void useHalfWidth(UnitTable &units) {
  for (Unit &unit : units.units) {
    for (PassWork *pass : {&unit.forward, &unit.backward}) {
      for (Work *work : {&pass->per_sample, &pass->once,
                         &pass->whole_per_sample, &pass->whole_once})
        work->traffic_bytes /= 2;
      for (RankExchange &exchange : pass->exchanges)
        exchange.bytes_per_sample /= 2;
    }
    unit.activations *= 0.5;
    unit.workspace *= 0.5;
    for (UnitEdge &edge : unit.successors)
      edge.bytes_per_sample /= 2;
  }
}

/// A legal plan of a file.
FailureOr<Plan> readPlan(StringRef path, const PlannedModel &model,
                         const Cluster &cluster, MLIRContext &context) {
  llvm::Expected<Plan> plan = loadPlan(path, PlanPurpose::Planning);
  if (!plan)
    return emitProblem(context, plan.takeError());
  std::vector<std::string> problems = verifyPlan(*plan, model.units, cluster);
  for (const std::string &problem : problems)
    emitError(UnknownLoc::get(&context)) << path << ": " << problem;
  if (!problems.empty())
    return failure();
  return std::move(*plan);
}

bool keeps(const Plan &plan, Keeping keeping) {
  for (const Replica &replica : plan.replicas)
    for (const Stage &stage : replica.stages)
      if (stage.keeping == keeping)
        return true;
  return false;
}

/// Without the devices that one of the patterns names, each of which must name
/// some.
llvm::Expected<Cluster> without(const Cluster &cluster,
                                llvm::ArrayRef<std::string> patterns) {
  if (patterns.empty())
    return cluster;
  llvm::Expected<Cluster> lost = cluster.filter(patterns);
  if (!lost)
    return llvm::createStringError("--lost: " +
                                   llvm::toString(lost.takeError()));
  std::vector<std::string> left;
  for (const Device &device : cluster.devices())
    if (!lost->findDevice(device.name))
      left.push_back(device.name);
  if (left.empty())
    return llvm::createStringError("--lost: no device is left");
  return cluster.filter(left);
}

FailureOr<ReplanResult> replanFrom(const PlanOptions &options,
                                   PlannerOptions planner,
                                   const PlannedModel &model,
                                   const Cluster &cluster, Cluster &left,
                                   MLIRContext &context) {
  FailureOr<Plan> before = readPlan(options.from, model, cluster, context);
  if (failed(before))
    return failure();
  // What stays as it is must be allowed, too.
  for (auto [keeping, isAllowed, name] :
       {std::tuple(Keeping::Inputs, planner.allow_recompute, "recompute"),
        {Keeping::OnHost, planner.allow_offload, "offload"}})
    if (!isAllowed && keeps(*before, keeping))
      return emitError(UnknownLoc::get(&context))
             << "the plan of '" << options.from << "' has stages that " << name
             << ", which nothing executes yet: --allow " << name
             << " plans with it";
  for (const std::string &pattern : options.joined) {
    llvm::Expected<Cluster> joined = cluster.filter({pattern});
    if (!joined)
      return emitProblem(
          context, llvm::createStringError("--joined: " +
                                           llvm::toString(joined.takeError())));
    for (const Replica &replica : before->replicas)
      for (const Stage &stage : replica.stages)
        for (const std::string &device : stage.devices)
          if (joined->findDevice(device))
            return emitError(UnknownLoc::get(&context))
                   << "--joined: the plan of '" << options.from << "' used '"
                   << device << "' already";
  }
  llvm::Expected<Cluster> rest = without(cluster, options.lost);
  if (!rest)
    return emitProblem(context, rest.takeError());
  left = std::move(*rest);
  // The batch is kept unless another one is asked for.
  if (!options.has_batch)
    planner.global_batch = before->global_batch;
  if (!options.has_owner)
    planner.state_owner = before->state_owner;
  if (options.has_optimizer && planner.optimizer != before->optimizer)
    return emitError(UnknownLoc::get(&context))
           << "--optimizer " << optimizerName(planner.optimizer)
           << ", but the plan of '" << options.from << "' has "
           << optimizerName(before->optimizer) << ": its state is what moves";
  ReplanOptions again{planner, options.speed_weight, options.move_weight};
  llvm::Expected<ReplanResult> result =
      replan(model.units, *before, cluster, left, again);
  if (!result)
    return emitProblem(context, result.takeError());
  return std::move(*result);
}

/// What the command line says of a plan that is given, and the plan does not.
std::string disagreement(const PlanOptions &options, const Plan &plan) {
  const PlannerOptions &asked = options.planner;
  auto differ = [](const std::string &flag, const std::string &value,
                   const std::string &planned) {
    return "--" + flag + " " + value + ", but the plan has " + planned;
  };
  if (options.has_batch && asked.global_batch != plan.global_batch)
    return differ("global-batch", std::to_string(asked.global_batch),
                  std::to_string(plan.global_batch));
  for (const Replica &replica : plan.replicas)
    if (asked.microbatch_size &&
        *asked.microbatch_size != replica.microbatch_size)
      return differ("microbatch", std::to_string(*asked.microbatch_size),
                    "microbatches of " +
                        std::to_string(replica.microbatch_size));
  if (options.has_optimizer && asked.optimizer != plan.optimizer)
    return differ("optimizer", optimizerName(asked.optimizer).str(),
                  optimizerName(plan.optimizer).str());
  if (asked.schedule && *asked.schedule != plan.schedule)
    return differ("schedule", scheduleName(*asked.schedule).str(),
                  scheduleName(plan.schedule).str());
  if (options.has_owner && asked.state_owner != plan.state_owner)
    return differ("state-owner", asked.state_owner, plan.state_owner);
  return "";
}

FailureOr<PlannerResult> judge(const PlanOptions &options,
                               const PlannedModel &model,
                               const Cluster &cluster,
                               std::optional<int64_t> microbatchSize,
                               MLIRContext &context) {
  FailureOr<Plan> plan = readPlan(options.plan, model, cluster, context);
  if (failed(plan))
    return failure();
  if (std::string wrong = disagreement(options, *plan); !wrong.empty())
    return emitError(UnknownLoc::get(&context))
           << wrong << " (" << options.plan << ")";
  if (options.model.inference)
    plan->optimizer = OptimizerKind::None;
  return judgePlan(*plan, "the plan of " + options.plan, model.units, cluster,
                   microbatchSize, options.planner.objective);
}

/// The best plan of which the programs fit, too. The search estimates memory;
/// where the plan that it likes best does not fit, it goes on with better
/// estimates.
FailureOr<PlannerResult>
searchForFitting(PlannerOptions planner, const UnitTable &units,
                 const Cluster &cluster, FinalistJudge &finalists,
                 PlanTextFacts &facts, MLIRContext &context) {
  UnitTable estimates = units;
  if (finalists.count() > 0)
    planner.choose_finalist = [&](llvm::ArrayRef<PlannedStep> plans) {
      return finalists.choose(plans, estimates);
    };
  FailureOr<PlannerResult> best = failure();
  double best_s = std::numeric_limits<double>::infinity();
  // Larger estimates may leave out what would fit: theirs are no bounds.
  double bound_s = best_s, effort_s = 0;
  for (unsigned attempt = 1;; ++attempt) {
    // Finalists need some of the time.
    PlannerOptions search = planner;
    if (finalists.count() > 0)
      search.deadline = search.deadline.part(searchPart);
    llvm::Expected<PlannerResult> found =
        planCluster(estimates, cluster, search);
    if (!found && failed(best))
      return emitProblem(context, found.takeError());
    if (!found) {
      llvm::consumeError(found.takeError()); // no other one fits
      break;
    }
    if (finalists.hasFailed())
      return failure();
    bound_s = std::min(bound_s, found->lower_bound_s);
    effort_s += found->effort.seconds;
    if (finalists.chosenSeconds() < best_s) {
      best = std::move(*found);
      best_s = finalists.chosenSeconds();
      facts = finalists.facts();
    }
    bool isLate = planner.deadline.isOver();
    bool isLast = attempt == kMaxPlans || isLate;
    for (const std::string &shortage : finalists.shortages())
      if (!isLast)
        emitWarning(UnknownLoc::get(&context))
            << "plan " << attempt
            << " does not fit, another one is sought: " << shortage;
      else if (failed(best))
        emitError(UnknownLoc::get(&context))
            << shortage
            << (isLate ? ", and --deadline leaves no time to seek another plan"
                       : "");
    if (isLast || finalists.shortages().empty())
      break;
    finalists.memoryExcess().correct(estimates);
  }
  if (succeeded(best)) {
    best->lower_bound_s = bound_s;
    best->effort.seconds = effort_s;
  }
  return best;
}

/// A plan whose programs a device cannot hold is no alternative.
void dropUnfit(std::vector<PlannedStep> &alternatives,
               ArrayRef<Finalist> finalists) {
  llvm::erase_if(alternatives, [&](const PlannedStep &step) {
    return llvm::any_of(finalists, [&](const Finalist &finalist) {
      return !finalist.why_not.empty() &&
             formatPlan(finalist.step.plan) == formatPlan(step.plan);
    });
  });
}

} // namespace

LogicalResult autohet::plan(const PlanOptions &options, MLIRContext &context) {
  double begin_s = options.planner.deadline.now();
  std::vector<std::string> warnings;
  llvm::Expected<Cluster> cluster = loadCluster(options.machines, warnings);
  if (!cluster)
    return emitProblem(context, cluster.takeError());
  emitWarnings(context, warnings);
  if (llvm::Error problem = cluster->usePrecision(options.precision))
    return emitProblem(context, std::move(problem));

  if (options.planner.allow_offload &&
      llvm::none_of(cluster->kinds, [](const DeviceKind &kind) {
        return kind.host_bandwidth_bytes_per_s > 0;
      }))
    return emitError(UnknownLoc::get(&context))
           << "--allow=offload: no device kind of the cluster has a "
              "host_bandwidth";

  FailureOr<PlannedModel> model = readUnits(options, context);
  if (failed(model))
    return failure();
  if (options.precision != Precision::FP32)
    useHalfWidth(model->units);
  remarkOnPrecision(options, context);

  PlannerOptions planner = options.planner;
  // A deadline is the whole process's: printing takes about as long as reading.
  planner.deadline = planner.deadline.before(planner.deadline.now() - begin_s);
  if (!planner.microbatch_size && model->fixed_batch)
    planner.microbatch_size = model->fixed_batch;
  FinalistJudge finalists(options, *cluster, planner.deadline, context);
  if (llvm::Error problem = finalists.checkMeasuring())
    return emitProblem(context, std::move(problem));
  if (finalists.count() > 0)
    planner.max_alternatives =
        std::max(planner.max_alternatives, finalists.count() - 1);
  FailureOr<PlannerResult> result;
  std::optional<ReplanResult> replanned;
  PlanTextFacts facts;
  if (!options.from.empty()) {
    if (finalists.count() > 0)
      planner.choose_finalist = [&](llvm::ArrayRef<PlannedStep> plans) {
        return finalists.choose(plans, model->units);
      };
    Cluster left;
    FailureOr<ReplanResult> found =
        replanFrom(options, planner, *model, *cluster, left, context);
    if (failed(found))
      return failure();
    *cluster = std::move(left);
    result = found->planned;
    replanned = std::move(*found);
  } else if (!options.plan.empty()) {
    result = judge(options, *model, *cluster, planner.microbatch_size, context);
    if (failed(result))
      return failure();
    if (finalists.count() > 0)
      finalists.choose(result->best, model->units);
  } else {
    result = searchForFitting(planner, model->units, *cluster, finalists, facts,
                              context);
    if (failed(result))
      return failure();
  }

  if (finalists.hasFailed())
    return failure();
  // Such plans are not sought again.
  if (!options.from.empty() || !options.plan.empty()) {
    facts = finalists.facts();
    if (std::isinf(finalists.chosenSeconds()))
      emitWarning(UnknownLoc::get(&context))
          << "the plan does not fit: " << facts.finalists.front().why_not;
  }
  dropUnfit(result->alternatives, facts.finalists);
  return report(options, *result, model->units, *cluster, model->tokens,
                context, std::move(facts), replanned ? &*replanned : nullptr);
}
