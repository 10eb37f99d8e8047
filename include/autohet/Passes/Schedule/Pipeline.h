//===- Pipeline.h - the Schedule phase as one pipeline ---------*- C++ -*-===//

#ifndef AUTOHET_PASSES_SCHEDULE_PIPELINE_H
#define AUTOHET_PASSES_SCHEDULE_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include <string>

namespace autohet {

struct SchedulePipelineOptions
    : mlir::PassPipelineOptions<SchedulePipelineOptions> {
  Option<std::string> schedule{*this, "schedule",
                               llvm::cl::desc("1f1b or gpipe"),
                               llvm::cl::init("1f1b")};
  Option<std::string> optimizer{*this, "optimizer",
                                llvm::cl::desc("sgd, adam, adamw or none"),
                                llvm::cl::init("sgd")};
};

/// From each device's function to its exec program, memory not yet planned:
/// what scratch kernels need is known when they are compiled, which comes
/// between.
void buildOrderPipeline(mlir::OpPassManager &pm,
                        const SchedulePipelineOptions &options);

/// A place for every buffer, scratch included.
void buildMemoryPipeline(mlir::OpPassManager &pm);

/// Both.
void buildSchedulePipeline(mlir::OpPassManager &pm,
                           const SchedulePipelineOptions &options);

} // namespace autohet

#endif
