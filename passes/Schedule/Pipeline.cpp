//===- Pipeline.cpp - the Schedule phase as one pipeline --------------------===//
//
// The order of the phase's passes and the reason for each place.
//
//===----------------------------------------------------------------------===//

#include "autohet/Passes/Schedule/Pipeline.h"
#include "autohet/Passes/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

void autohet::buildOrderPipeline(OpPassManager &pm,
                                 const SchedulePipelineOptions &options) {
  // Products first: the transposes they need are kernels like any other.
  pm.addNestedPass<func::FuncOp>(createNormalizeMatmuls());
  pm.addPass(createFormKernels());
  OrderMicrobatchesOptions order;
  order.schedule = options.schedule;
  order.optimizer = options.optimizer;
  pm.addPass(createOrderMicrobatches(order));
}

void autohet::buildMemoryPipeline(OpPassManager &pm) {
  // Scratch is memory like any other.
  pm.addPass(createAddScratch());
  // Last: liveness is a property of the final order.
  pm.addPass(createPlanMemory());
}

void autohet::buildSchedulePipeline(OpPassManager &pm,
                                    const SchedulePipelineOptions &options) {
  buildOrderPipeline(pm, options);
  buildMemoryPipeline(pm);
}

void autohet::registerSchedulePipelines() {
  PassPipelineRegistration<SchedulePipelineOptions>(
      "autohet-schedule", "From each device's function to its exec program",
      buildSchedulePipeline);
}
