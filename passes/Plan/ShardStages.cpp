//===- ShardStages.cpp - each device's function from its stage --------------===//
//
// The pass; the expansion of one stage is StageSharder's.
//
//===----------------------------------------------------------------------===//

#include "StageSharder.h"
#include "autohet/Passes/Plan/Passes.h"

namespace autohet {
#define GEN_PASS_DEF_SHARDSTAGES
#include "autohet/Passes/Plan/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

/// Channels of collectives; those below are the stages' transfers, those of the
/// update lie far above.
constexpr int64_t kFirstChannel = int64_t(1) << 18;

struct ShardStages : autohet::impl::ShardStagesBase<ShardStages> {
  void runOnOperation() override {
    if (failed(dist::verifyStages(getOperation())))
      return signalPassFailure();
    StageRanks ranks;
    SmallVector<func::FuncOp> stages;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto stage = func->getAttrOfType<dist::StageAttr>(dist::kStageAttr)) {
        ranks[{stage.getReplica(), stage.getStage()}] =
            SmallVector<int64_t>(stage.getRanks().asArrayRef());
        stages.push_back(func);
      }
    int64_t nextChannel = kFirstChannel;
    for (func::FuncOp stage : stages) {
      StageSharder(stage, ranks, nextChannel).run();
      stage.erase();
    }
  }
};

} // namespace
