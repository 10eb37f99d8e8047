//===- Pipeline.cpp - the Plan phase as one pipeline ------------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Plan/Pipeline.h"
#include "autohet/Passes/Plan/Passes.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void autohet::buildPlanPipeline(OpPassManager &pm,
                                const PlanPipelineOptions &options) {
  // Stages first: what is divided among a stage's devices depends on the stage.
  AssignStagesOptions assign;
  assign.stages = options.stages;
  assign.globalBatch = options.globalBatch;
  pm.addPass(createAssignStages(assign));
  pm.addPass(createShardStages());
  // Last: who holds which box of a parameter is known only now.
  SynchronizeGradientsOptions synchronize;
  synchronize.stateOwner = options.stateOwner;
  synchronize.stateShares.assign(options.stateShares.begin(),
                                 options.stateShares.end());
  synchronize.exchange = options.gradientExchange;
  pm.addPass(createSynchronizeGradients(synchronize));
}

void autohet::registerPlanPipelines() {
  PassPipelineRegistration<PlanPipelineOptions>(
      "autohet-plan", "From the model to each device's function",
      buildPlanPipeline);
}
