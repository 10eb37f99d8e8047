//===- ShardStages.cpp - each device's function from its stage --------------===//

#include "autohet/Dialect/Dist/Dist.h"
#include "autohet/Dialect/Het/Het.h"
#include "autohet/Passes/Plan/Passes.h"

namespace autohet {
#define GEN_PASS_DEF_SHARDSTAGES
#include "autohet/Passes/Plan/Passes.h.inc"
} // namespace autohet

using namespace mlir;
using namespace autohet;

namespace {

struct ShardStages : autohet::impl::ShardStagesBase<ShardStages> {
  void runOnOperation() override {
    llvm::DenseMap<std::pair<int64_t, int64_t>, dist::StageAttr> stages;
    SmallVector<func::FuncOp> funcs;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto stage = func->getAttrOfType<dist::StageAttr>(dist::kStageAttr)) {
        stages[{stage.getReplica(), stage.getStage()}] = stage;
        funcs.push_back(func);
      }
    for (func::FuncOp func : funcs) {
      auto stage = func->getAttrOfType<dist::StageAttr>(dist::kStageAttr);
      if (stage.getRanks().size() != 1) {
        func.emitError("stages of several devices are not sharded yet");
        return signalPassFailure();
      }
      for (Operation &op : func.getBody().front()) {
        auto peer = [&](int64_t other) {
          return stages.lookup({stage.getReplica(), other}).getRanks()[0];
        };
        if (auto send = dyn_cast<dist::SendOp>(op))
          send.setPeer(peer(send.getPeer()));
        if (auto recv = dyn_cast<dist::RecvOp>(op))
          recv.setPeer(peer(recv.getPeer()));
      }
      auto device = cast<StringAttr>(stage.getDevices()[0]);
      func->removeAttr(dist::kStageAttr);
      func->setAttr(dist::kProgramAttr,
                    dist::ProgramAttr::get(&getContext(), device, stage.getRanks()[0], stage.getWorld(),
                                           stage.getReplica(), stage.getStage(), stage.getStages(),
                                           stage.getMicrobatches(), stage.getMicrobatchSize(),
                                           stage.getFirstSample(), stage.getGlobalBatch()));
      func.setName(device.getValue());
    }
  }
};

} // namespace
