//===- Compile.cpp - from a model file to one executable a node -------------===//
//
// The phases in order. The Model phase runs once a distinct microbatch size of
// the plan, each on a module of its own; the functions meet in one module,
// which the other phases take to programs. Files are written last, into a
// folder that is renamed when all is done.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "Kernels.h"
#include "Options/Diagnostics.h"
#include "Options/Inputs.h"
#include "Options/ModelOptions.h"
#include "Options/Programs.h"
#include "OutputFolder.h"
#include "VisibleLabels.h"
#include "WriteJob.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Model/Parameters.h"
#include "autohet/Passes/Model/Units.h"
#include "autohet/Passes/Schedule/MemoryUse.h"
#include "autohet/Passes/Schedule/Passes.h"
#include "autohet/Passes/Schedule/SimulatePrograms.h"
#include "autohet/Report/PlanText.h"
#include "autohet/Simulator/Simulate.h"
#include "autohet/Support/Quantity.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace autohet;

namespace {

class Compiler {
public:
  Compiler(const CompileOptions &options, MLIRContext &context)
      : options(options), context(context), unknown(UnknownLoc::get(&context)),
        kernels(options.cacheFolder) {}

  LogicalResult run();

private:
  /// Before minutes of work for them.
  LogicalResult checkPlaces();

  //===--- phases ---===//
  LogicalResult readCluster();
  LogicalResult chooseTargets();
  LogicalResult refuseGpus();
  LogicalResult refuseVisibleLabels(func::FuncOp model);
  void remarkVisibleLabels(func::FuncOp model);
  FailureOr<OwningOpRef<ModuleOp>> modelPhase(int64_t batch,
                                              bool differentiate);
  LogicalResult choosePlan();
  LogicalResult readPlan();
  LogicalResult preparePlanner();
  PlanObjective planObjective() const {
    return options.inference ? *parsePlanObjective(options.objective)
                             : PlanObjective::Latency;
  }
  LogicalResult searchPlan();
  FailureOr<int64_t> batchWithoutPlan();
  LogicalResult lookAtTwoSamples(func::FuncOp one);
  LogicalResult buildModels();
  LogicalResult finishPlan();
  LogicalResult planPhase();
  LogicalResult schedulePhase();
  LogicalResult placeAndSchedule();
  void printDecisions();
  LogicalResult simulatePrograms();

  //===--- helpers ---===//
  LogicalResult error(const llvm::Twine &message) {
    return emitError(unknown, message);
  }
  LogicalResult error(llvm::Error problem) {
    return emitProblem(context, std::move(problem));
  }
  LogicalResult print() {
    module->print(llvm::outs());
    llvm::outs() << "\n";
    return success();
  }

  const CompileOptions &options;
  MLIRContext &context;
  Location unknown;
  std::optional<Cluster> cluster;
  Plan plan;
  std::optional<PlannerOptions> wanted; ///< where a plan is searched
  UnitTable estimates;                  ///< that the planner sees
  PlannerResult planned;                ///< the plan with its predicted cost
  bool isModelRead = false;             ///< at some batch
  double simulated_s = 0;               ///< a step of the programs
  UnitTable units;
  OwningOpRef<ModuleOp> module, placed; ///< the latter for --emit=planned
  ModelsBySize models;
  llvm::StringMap<cpu::TargetOptions> targets; ///< by device name
  KernelSet kernels;
};

//===----------------------------------------------------------------------===//
// Cluster and plan
//===----------------------------------------------------------------------===//

LogicalResult Compiler::readCluster() {
  std::vector<std::string> warnings;
  llvm::Expected<Cluster> read = loadCluster(options.machines, warnings);
  if (!read)
    return error(read.takeError());
  emitWarnings(context, warnings);
  cluster = std::move(*read);
  return chooseTargets();
}

/// Before anything is compiled for them.
LogicalResult Compiler::refuseGpus() {
  if (options.emit < Emit::Objects)
    return success();
  for (const Replica &replica : plan.replicas)
    for (const Stage &stage : replica.stages)
      for (const std::string &name : stage.devices) {
        std::optional<unsigned> device = cluster->findDevice(name);
        if (device && cluster->kindOf(*device).is_gpu)
          return error("device " + name + " is a GPU (" +
                       cluster->kindOf(*device).name +
                       "): plans and simulations are all that there is for it "
                       "yet");
      }
  return success();
}

/// Flags win over what the cluster file says of a kind.
LogicalResult Compiler::chooseTargets() {
  cpu::TargetOptions flags;
  flags.cpu = options.target;
  flags.features = options.features;
  for (unsigned device = 0; device < cluster->devices().size(); ++device) {
    llvm::Expected<cpu::TargetOptions> target =
        targetOf(cluster->kindOf(device), flags);
    if (!target)
      return error(target.takeError());
    targets[cluster->devices()[device].name] = *target;
  }
  return success();
}

/// The pinned plan; what the planner finds; or, where there is nothing to
/// choose, the model whole on the cluster's only device.
LogicalResult Compiler::choosePlan() {
  if (!options.plan.empty())
    return readPlan();
  bool needsModelOnly =
      options.emit == Emit::Differentiated || options.emit == Emit::Units;
  bool isSizeFree = false;
  if (!needsModelOnly && !options.microbatch && options.globalBatch) {
    FailureOr<int64_t> inFile = batchOf(options.modelFile, context);
    if (failed(inFile))
      return failure();
    isSizeFree = *inFile == 0;
  }
  if (!needsModelOnly && (cluster->devices().size() > 1 || isSizeFree))
    return success(succeeded(preparePlanner()) && succeeded(searchPlan()));
  // 0: the batch that the file has.
  FailureOr<int64_t> size =
      needsModelOnly ? batchWithoutPlan() : options.microbatch;
  if (failed(size))
    return failure();
  Replica replica;
  replica.microbatch_size = *size;
  replica.microbatches = 1;
  replica.stages.push_back({{}, {cluster->devices().front().name}, {}});
  plan.replicas = {replica};
  return success();
}

LogicalResult Compiler::readPlan() {
  llvm::Expected<Plan> read = loadPlan(options.plan);
  if (!read)
    return error(read.takeError());
  plan = std::move(*read);
  if (options.inference)
    plan.optimizer = OptimizerKind::None;
  if (options.globalBatch && options.globalBatch != plan.global_batch)
    return error("--global-batch " + llvm::Twine(options.globalBatch) +
                 ", but the plan " + options.plan + " is for " +
                 llvm::Twine(plan.global_batch));
  auto mustAgree = [&](bool isGiven, StringRef option, StringRef value,
                       StringRef planned) -> LogicalResult {
    if (!isGiven || value == planned)
      return success();
    return error("--" + option + " " + value + ", but the plan " +
                 options.plan + " has " + planned);
  };
  if (failed(mustAgree(options.isOptimizerGiven && !options.inference,
                       "optimizer", options.optimizer,
                       optimizerName(plan.optimizer))) ||
      failed(mustAgree(!options.schedule.empty(), "schedule", options.schedule,
                       scheduleName(plan.schedule))) ||
      failed(mustAgree(options.isStateOwnerGiven, "state-owner",
                       options.stateOwner, plan.state_owner)))
    return failure();
  for (const Replica &replica : plan.replicas)
    if (options.microbatch && options.microbatch != replica.microbatch_size)
      return error("--microbatch " + llvm::Twine(options.microbatch) +
                   ", but the plan " + options.plan + " has microbatches of " +
                   llvm::Twine(replica.microbatch_size));
  return success();
}

/// Plans with the units of a provisional model: what they cost for one sample
/// does not depend on the microbatch.
LogicalResult Compiler::preparePlanner() {
  if (!options.globalBatch)
    return error("a cluster of " + llvm::Twine(cluster->devices().size()) +
                 " devices needs --global-batch, 1 or more: how many samples "
                 "they share in a step");
  FailureOr<int64_t> fixed = options.microbatch
                                 ? options.microbatch
                                 : batchOf(options.modelFile, context);
  if (failed(fixed))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> provisional =
      modelPhase(*fixed ? *fixed : 1, true);
  if (failed(provisional))
    return failure();
  estimates = collectUnits(modelOf(**provisional));
  wanted.emplace();
  wanted->global_batch = options.globalBatch;
  wanted->optimizer = *parseOptimizer(options.optimizer);
  wanted->mode = options.planner;
  wanted->objective = planObjective();
  wanted->threads = std::max(1u, options.threads);
  if (options.planner == PlannerMode::Symmetric)
    wanted->compare.clear();
  wanted->state_owner = options.stateOwner;
  if (*fixed)
    wanted->microbatch_size = *fixed;
  if (!options.schedule.empty())
    wanted->schedule = *parseSchedule(options.schedule);
  return success();
}

LogicalResult Compiler::searchPlan() {
  llvm::Expected<PlannerResult> found =
      planCluster(estimates, *cluster, *wanted);
  if (!found)
    return error(found.takeError());
  planned = std::move(*found);
  plan = planned.best.plan;
  return success();
}

/// What is printed before there is a plan is the same for any batch: the one
/// asked for, 0 for the file's own, or one sample where the file leaves it
/// open.
FailureOr<int64_t> Compiler::batchWithoutPlan() {
  if (options.microbatch)
    return options.microbatch;
  FailureOr<int64_t> inFile = batchOf(options.modelFile, context);
  if (failed(inFile))
    return failure();
  return *inFile ? 0 : 1;
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

FailureOr<OwningOpRef<ModuleOp>> Compiler::modelPhase(int64_t batch,
                                                      bool differentiate) {
  // What is warned of is in the file, whatever the batch: it is said once.
  ScopedDiagnosticHandler said(&context, [&](Diagnostic &diagnostic) {
    return success(isModelRead &&
                   diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  FailureOr<OwningOpRef<ModuleOp>> model =
      readModel(options.modelFile, batch, differentiate, context);
  isModelRead |= succeeded(model);
  if (succeeded(model) && failed(refuseVisibleLabels(modelOf(**model))))
    return failure();
  return model;
}

/// A config says what kind of model it is.
LogicalResult Compiler::refuseVisibleLabels(func::FuncOp model) {
  if (!options.modelFile.isConfig() || options.isObjectiveGiven ||
      options.inference || options.emit < Emit::Objects)
    return success();
  bool seesAll = false;
  model.walk([&](het::AttentionOp op) { seesAll |= !op.getCausal(); });
  if (!seesAll)
    return success();
  return error(
      "in " + options.modelFile.path +
      " every token attends to all others, the next one too, so next "
      "tokens cannot be its labels; say what they are: "
      "--objective=masked (hidden tokens, as BERT is trained) or given "
      "(--labels of a run); causal trains on next tokens all the same");
}

/// What an ONNX file's labels are, only its user knows: they may come with
/// `--labels` of a run.
void Compiler::remarkVisibleLabels(func::FuncOp model) {
  if (options.modelFile.isConfig() || options.isObjectiveGiven ||
      options.emit < Emit::Objects || !hasLabelOfEachToken(model))
    return;
  if (Operation *attention = findVisibleFuture(model))
    emitRemark(attention->getLoc())
        << "neither this attention nor any other has a causal mask: every "
           "token sees the next one, and a model that is trained on next "
           "tokens, as by default, learns to copy them; say what its labels "
           "are: --objective=masked (hidden tokens, as BERT is trained), given "
           "(--labels of a run) or causal";
}

/// One differentiated model a distinct microbatch size; the plan's open
/// questions (the file's own batch, all units on one device) are answered here.
LogicalResult Compiler::buildModels() {
  for (Replica &replica : plan.replicas) {
    if (replica.microbatch_size && models.count(replica.microbatch_size))
      continue;
    FailureOr<OwningOpRef<ModuleOp>> built =
        modelPhase(replica.microbatch_size, true);
    if (failed(built))
      return failure();
    func::FuncOp model = modelOf(**built);
    auto batch = model ? model->getAttrOfType<IntegerAttr>(het::kBatchSizeAttr)
                       : nullptr;
    if (!batch)
      return error(options.modelFile.path +
                   ": the model has neither inputs "
                   "with samples nor anything to compute");
    int64_t size = batch.getInt();
    if (!replica.microbatch_size)
      replica.microbatch_size = size;
    if (failed(bindInputs(model, options.binds)))
      return failure();
    if (!options.inference)
      remarkVisibleLabels(model);
    model.setName("model_b" + std::to_string(size));
    models.insert({size, std::move(*built)});
  }
  units = collectUnits(modelOf(*models.front().second));
  auto one = models.find(1);
  if (one == models.end())
    return success();
  if (models.size() == 1)
    return lookAtTwoSamples(modelOf(*one->second));
  for (auto &[size, model] : models)
    if (size != 1)
      copyBatchDims(modelOf(*model), modelOf(*one->second));
  return success();
}

/// A model at a microbatch of 1 cannot show whether samples would meet, nor
/// along which dim: where the file's batch is free, it is looked at with two.
LogicalResult Compiler::lookAtTwoSamples(func::FuncOp one) {
  auto countsSamples = [&](BlockArgument argument) {
    auto dim = one.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                 het::kBatchDimAttr);
    return dim && dim.getInt() >= 0;
  };
  if (options.inference && llvm::none_of(one.getArguments(), countsSamples))
    return success();
  FailureOr<int64_t> inFile = batchOf(options.modelFile, context);
  if (failed(inFile) || *inFile != 0)
    return success(succeeded(inFile));
  // What is no error has been said of the model itself.
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  FailureOr<OwningOpRef<ModuleOp>> two = modelPhase(2, /*differentiate=*/false);
  if (failed(two))
    return error("that is of two samples, which a microbatch of 1 stands for; "
                 "if the model is of one sample only, fix its batch: "
                 "--dim NAME=1");
  copyBatchDims(modelOf(**two), one);
  return success();
}

/// Fills in what was open until the units were known, and judges the plan.
LogicalResult Compiler::finishPlan() {
  if (options.plan.empty() && !wanted) {
    Replica &replica = plan.replicas.front();
    plan.global_batch =
        options.globalBatch ? options.globalBatch : replica.microbatch_size;
    replica.microbatches = plan.global_batch / replica.microbatch_size;
    if (plan.global_batch % replica.microbatch_size) {
      auto [below, above] =
          nearestBatches({replica.microbatch_size}, plan.global_batch);
      return error(
          "a global batch of " + llvm::Twine(plan.global_batch) +
          " does not divide into microbatches of " +
          llvm::Twine(replica.microbatch_size) + "; the nearest that do are " +
          (below ? std::to_string(*below) + " and " : "") + llvm::Twine(above));
    }
    for (const Unit &unit : units.units)
      replica.stages.front().units.push_back(unit.id);
    plan.structure_hash = units.structure_hash;
    plan.schedule =
        *parseSchedule(options.schedule.empty() ? "1f1b" : options.schedule);
    plan.state_owner = options.stateOwner;
    plan.optimizer = *parseOptimizer(options.optimizer);
  }
  std::vector<std::string> problems = verifyPlan(plan, units, *cluster);
  for (const std::string &problem : problems)
    (void)error((options.plan.empty() ? "plan" : "plan " + options.plan) +
                ": " + problem);
  if (!problems.empty())
    return failure();
  // Written out, it is a plan of this model.
  plan.structure_hash = units.structure_hash;
  if (wanted)
    return success();
  FailureOr<int64_t> fixed = options.microbatch
                                 ? options.microbatch
                                 : batchOf(options.modelFile, context);
  if (failed(fixed))
    return failure();
  planned =
      judgePlan(plan,
                options.plan.empty() ? "one device: nothing to plan"
                                     : "the plan of " + options.plan,
                units, *cluster, *fixed ? std::optional(*fixed) : std::nullopt,
                planObjective());
  return success();
}

//===----------------------------------------------------------------------===//
// Plan, Schedule
//===----------------------------------------------------------------------===//

LogicalResult Compiler::planPhase() {
  FailureOr<OwningOpRef<ModuleOp>> placedModels =
      placeModels(models, plan, *cluster, context);
  if (failed(placedModels))
    return failure();
  module = std::move(*placedModels);
  return success();
}

LogicalResult Compiler::schedulePhase() {
  if (failed(orderPrograms(*module, plan)) ||
      failed(kernels.compile(*module, targets, options.threads)))
    return failure();
  return planMemory(*module);
}

/// From a plan to programs that fit. The planner estimates memory; where the
/// programs need more than their devices have, the estimate is corrected by
/// what they need, and the search goes on. A pinned plan is refused.
LogicalResult Compiler::placeAndSchedule() {
  for (unsigned attempt = 1;; ++attempt) {
    if (failed(buildModels()) || failed(finishPlan()) || failed(planPhase()))
      return failure();
    // Whether a pinned plan fits is not yet asked.
    if (options.emit == Emit::Planned && !wanted)
      return success();
    if (options.emit == Emit::Planned)
      placed = module->clone();
    if (failed(schedulePhase()))
      return failure();
    std::vector<std::string> shortages = findShortages(*module, plan, *cluster);
    if (shortages.empty())
      return success();
    if (!wanted || attempt == kMaxPlans) {
      for (const std::string &shortage : shortages)
        (void)error(shortage);
      return failure();
    }
    for (const std::string &shortage : shortages)
      emitWarning(unknown,
                  "plan " + llvm::Twine(attempt) +
                      " does not fit, another one is sought: " + shortage);
    MemoryExcess excess(estimates);
    excess.add(planned.best, *module, *cluster);
    excess.correct(estimates);
    if (failed(searchPlan()))
      return failure();
  }
}

/// Of what was decided, for people; beside a module on standard output.
void Compiler::printDecisions() {
  llvm::raw_ostream &os =
      options.emit < Emit::Objects ? llvm::errs() : llvm::outs();
  os << formatInputs(modelOf(*models.front().second));
  if (options.machines.hasRates()) {
    PlanTextFacts facts;
    facts.tokens = tokensOf(modelOf(*models.front().second));
    os << formatPlanText(planned, units, *cluster, facts);
  }
  os << formatMemoryUse(*module, [&](StringRef device) {
    return cluster->kindOf(*cluster->findDevice(device)).memory_bytes;
  });
}

/// What a step takes by the programs that will run: the planner's closed forms
/// know nothing of single commands.
LogicalResult Compiler::simulatePrograms() {
  FailureOr<SimProgram> programs = simProgramOf(*module, *cluster);
  if (failed(programs))
    return failure();
  SimOptions steps;
  steps.steps = 3; // the first begins with nothing under way
  llvm::Expected<SimResult> result = simulate(*programs, steps);
  if (!result)
    return error("the programs wait for each other forever: " +
                 llvm::toString(result.takeError()));
  simulated_s = result->step_s.back();
  if (options.machines.hasRates())
    llvm::outs() << "simulated: "
                 << formatQuantity(simulated_s, Dimension::Seconds)
                 << " a step of the programs\n";
  return success();
}

//===----------------------------------------------------------------------===//
// In order
//===----------------------------------------------------------------------===//

LogicalResult Compiler::checkPlaces() {
  if (options.emit >= Emit::Objects)
    if (llvm::Error problem = checkFolder(options.output))
      return error(std::move(problem));
  if (!options.cacheFolder.empty())
    if (llvm::Error problem = checkFolder(options.cacheFolder))
      return error("--kernel-cache " + options.cacheFolder + ": " +
                   llvm::toString(std::move(problem)));
  return success();
}

LogicalResult Compiler::run() {
  if (failed(checkPlaces()))
    return failure();
  // Before a plan for it is searched; a plan that is given is verified.
  if (options.globalBatch > kLargestGlobalBatch)
    return error("--global-batch " + llvm::Twine(options.globalBatch) +
                 ": at most " + llvm::Twine(kLargestGlobalBatch));
  if (options.emit == Emit::Imported) {
    FailureOr<int64_t> batch = batchWithoutPlan();
    if (failed(batch))
      return failure();
    FailureOr<OwningOpRef<ModuleOp>> model = modelPhase(*batch, false);
    if (failed(model))
      return failure();
    module = std::move(*model);
    std::string list;
    llvm::raw_string_ostream stream(list);
    printParameters(*module, stream);
    // Comments, so that what is printed is still a module.
    SmallVector<StringRef> lines;
    StringRef(list).split(lines, '\n', -1, false);
    for (StringRef line : lines)
      llvm::outs() << "// " << line << "\n";
    return print();
  }
  if (failed(readCluster()) || failed(choosePlan()) || failed(refuseGpus()))
    return failure();
  if (options.emit == Emit::Differentiated || options.emit == Emit::Units)
    if (failed(buildModels()))
      return failure();
  if (options.emit == Emit::Differentiated) {
    module = std::move(models.front().second);
    return print();
  }
  if (options.emit == Emit::Units) {
    llvm::outs() << formatUnitTable(units);
    return success();
  }
  if (failed(placeAndSchedule()))
    return failure();
  if (options.emit == Emit::Planned) {
    if (placed)
      module = std::move(placed);
    return print();
  }
  printDecisions();
  if (options.emit == Emit::Scheduled || options.emit == Emit::Programs)
    return print();
  if (failed(simulatePrograms()))
    return failure();
  return writeJob({options, plan, planned, units, *cluster, *module, kernels,
                   targets, simulated_s});
}

} // namespace

LogicalResult autohet::compile(const CompileOptions &options,
                               MLIRContext &context) {
  return Compiler(options, context).run();
}
