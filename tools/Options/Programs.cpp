//===- Programs.cpp - from a plan to each device's program ------------------===//

#include "Programs.h"
#include "Inputs.h"

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Exec/Exec.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Plan/Pipeline.h"
#include "autohet/Passes/Schedule/Pipeline.h"
#include "autohet/Support/Quantity.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace autohet;

func::FuncOp autohet::modelOf(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(het::kBatchSizeAttr))
      return function;
  return nullptr;
}

int64_t autohet::tokensOf(func::FuncOp model) {
  for (BlockArgument argument : model.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getElementType().isInteger() && type.getRank() >= 1)
      return type.getRank() > 1 ? type.getDimSize(1) : 1;
  }
  return 0;
}

LogicalResult autohet::addModels(ModelsBySize &models, const ModelFile &file,
                                 const Plan &plan, MLIRContext &context) {
  for (const Replica &replica : plan.replicas) {
    int64_t size = replica.microbatch_size;
    if (models.count(size))
      continue;
    FailureOr<OwningOpRef<ModuleOp>> model =
        readModel(file, size, /*differentiate=*/true, context);
    if (failed(model))
      return failure();
    func::FuncOp function = modelOf(**model);
    if (failed(bindInputs(function, {})))
      return failure();
    function.setName("model_b" + std::to_string(size));
    models.insert({size, std::move(*model)});
  }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> autohet::placeModels(ModelsBySize &models,
                                                      const Plan &plan,
                                                      const Cluster &cluster,
                                                      MLIRContext &context,
                                                      Verifier verifier) {
  // Copies, for another plan may have to be tried; sizes that this one lacks
  // belong to one that did not fit.
  OwningOpRef<ModuleOp> module;
  for (auto &[size, model] : models) {
    if (llvm::none_of(plan.replicas, [size = size](const Replica &replica) {
          return replica.microbatch_size == size;
        }))
      continue;
    if (!module)
      module = cast<ModuleOp>((*model)->clone());
    else
      module->insert(modelOf(*module), modelOf(*model).clone());
  }
  (*module)->setAttr(dist::kPlanAttr,
                     StringAttr::get(&context, formatPlan(plan)));
  SmallVector<StringRef> nodes;
  for (const Node &node : cluster.nodes)
    nodes.push_back(node.name);
  (*module)->setAttr(dist::kNodesAttr,
                     Builder(&context).getStrArrayAttr(nodes));
  PlanPipelineOptions pipeline;
  pipeline.stateOwner = plan.state_owner;
  for (const Replica &replica : plan.replicas)
    for (const Stage &stage : replica.stages)
      if (stage.state_share != 1)
        for (const std::string &device : stage.devices)
          pipeline.stateShares.push_back(device + "=" +
                                         std::to_string(stage.state_share));
  pipeline.gradientExchange =
      gradientExchangeName(plan.gradient_exchange).str();
  PassManager passes(&context);
  passes.enableVerifier(verifier == Verifier::EachPass);
  buildPlanPipeline(passes, pipeline);
  if (failed(passes.run(*module)))
    return failure();
  return module;
}

LogicalResult autohet::orderPrograms(ModuleOp placed, const Plan &plan,
                                     Verifier verifier) {
  SchedulePipelineOptions pipeline;
  pipeline.schedule = scheduleName(plan.schedule).str();
  pipeline.optimizer = optimizerName(plan.optimizer).str();
  PassManager passes(placed.getContext());
  passes.enableVerifier(verifier == Verifier::EachPass);
  buildOrderPipeline(passes, pipeline);
  return passes.run(placed);
}

LogicalResult autohet::planMemory(ModuleOp programs, Verifier verifier) {
  PassManager passes(programs.getContext());
  passes.enableVerifier(verifier == Verifier::EachPass);
  buildMemoryPipeline(passes);
  return passes.run(programs);
}

std::vector<std::string> autohet::findShortages(ModuleOp programs,
                                                const Plan &plan,
                                                const Cluster &cluster) {
  std::vector<std::string> shortages;
  for (auto program : programs.getOps<exec::ProgramOp>()) {
    unsigned device = *cluster.findDevice(program.getSymName());
    double bytes = program.getTotalBytes();
    double limit = cluster.kindOf(device).memory_bytes;
    if (bytes <= limit)
      continue;
    const Stage &stage =
        plan.replicas[program.getReplica()].stages[program.getStage()];
    shortages.push_back(("device " + program.getSymName() + ", stage " +
                         llvm::Twine(program.getStage()) + " of replica " +
                         llvm::Twine(program.getReplica()) + " (" +
                         llvm::join(stage.units, ", ") + "), needs " +
                         formatQuantity(bytes, Dimension::Bytes) + ", " +
                         formatQuantity(bytes - limit, Dimension::Bytes) +
                         kMoreThanItsMemory +
                         formatQuantity(limit, Dimension::Bytes))
                            .str());
  }
  return shortages;
}

void MemoryExcess::add(const PlannedStep &planned, ModuleOp programs,
                       const Cluster &cluster) {
  for (const DeviceEvaluation &entry : planned.evaluation.devices) {
    auto program = programs.lookupSymbol<exec::ProgramOp>(
        cluster.devices()[entry.device].name);
    const MemoryNeed &need = entry.memory;
    double variable = need.activation_bytes + need.workspace_bytes;
    if (variable <= 0)
      continue;
    double factor =
        1 + (double(program.getTotalBytes()) - need.total()) / variable;
    for (unsigned unit :
         planned.resolved.replicas[entry.replica].stages[entry.stage].units)
      factors[unit] = std::max(factors[unit], factor);
  }
}

void MemoryExcess::correct(UnitTable &estimates) const {
  for (auto [unit, factor] : llvm::zip_equal(estimates.units, factors)) {
    unit.activations *= factor;
    unit.workspace *= factor;
  }
}
