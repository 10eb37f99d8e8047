//===- Pipeline.cpp - the Model phase as one pipeline ------------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Model/Pipeline.h"
#include "autohet/Passes/Model/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void autohet::buildModelPipeline(OpPassManager &pm,
                                 const ModelPipelineOptions &options) {
  auto add = [&](std::unique_ptr<Pass> pass) {
    pm.addNestedPass<func::FuncOp>(std::move(pass));
  };
  // Nodes get their meaning. Which constants are parameters is decided while
  // each use is still an op of its own.
  OnnxToHetOptions import;
  import.batch = options.batch;
  import.batchDim = options.batchDim;
  import.dims.assign(options.dims.begin(), options.dims.end());
  import.ties.assign(options.ties.begin(), options.ties.end());
  import.shared.assign(options.shared.begin(), options.shared.end());
  import.inference = options.inference;
  pm.addPass(createOnnxToHet(import));
  ClassifyParametersOptions roles;
  roles.constants = options.constants;
  roles.inference = options.inference;
  pm.addPass(createClassifyParameters(roles));
  // Causal masks and doubled angles are seen in the elements only.
  pm.addPass(createInlineTables());
  // Canonical form: the batch is dim 0 everywhere, views are folded into their
  // readers, so that patterns meet one spelling.
  add(createCanonicalizerPass());
  add(createSimplifyGathers());
  add(createUnflatten());
  // What is left of a projection is seen once experts are products.
  add(createDenseExperts());
  add(createSplitProjections());
  add(createCanonicalizerPass());
  // Equal values must be one value for the patterns to see it.
  add(createCSEPass());
  // Meaning, from the inside out: norms and activations before attention, whose
  // pattern spans them.
  add(createFuseNorms());
  add(createFuseGelu());
  add(createFuseRotary());
  add(createFuseAttention());
  add(createCanonicalizerPass());
  add(createCSEPass());
  buildTrainingPipeline(pm, options);
}

void autohet::buildTrainingPipeline(OpPassManager &pm,
                                    const ModelPipelineOptions &options) {
  auto add = [&](std::unique_ptr<Pass> pass) {
    pm.addNestedPass<func::FuncOp>(std::move(pass));
  };
  // Also where nothing is differentiated: what is listed says what is frozen.
  FreezeParametersOptions freeze;
  freeze.all = options.inference;
  if (!options.inference)
    freeze.pattern = options.freeze;
  add(createFreezeParameters(freeze));
  if (options.inference || !options.differentiate) {
    add(createBoundInputs());
    NumberUnitsOptions units;
    units.inference = options.inference;
    add(createNumberUnits(units));
    add(createVerifyModel());
    return;
  }
  AttachLossOptions loss;
  loss.loss = options.loss;
  loss.output = options.output;
  loss.ignoreIndex = options.ignoreIndex;
  add(createAttachLoss(loss));
  add(createBoundInputs());
  add(createDifferentiate());
  // Last: backward ops go to the unit of the op that they serve.
  add(createNumberUnits());
  // The fence: what the Plan phase relies on.
  add(createVerifyModel());
}

void autohet::registerModelPipelines() {
  PassPipelineRegistration<ModelPipelineOptions>(
      "autohet-model",
      "From a file's nodes to the differentiated model in units",
      buildModelPipeline);
}
