//===- ShardStages.cpp - each device's function from its stage --------------===//
//
// The pass, and stages of one device; the expansion of a stage over several is
// StageSharder's.
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

/// A stage of one device is that device's function already: what is left are
/// the ranks of the stages that it sends to and receives from.
void becomeProgram(func::FuncOp stage, const StageRanks &ranks) {
  auto info = stage->getAttrOfType<dist::StageAttr>(dist::kStageAttr);
  dist::ProgramAttr program = programOf(info, 0);
  auto ranksOf = [&](int64_t peer) -> ArrayRef<int64_t> {
    return ranks.find({info.getReplica(), peer})->second;
  };
  for (Operation &op : llvm::make_early_inc_range(stage.getBody().front())) {
    if (auto recv = dyn_cast<dist::RecvOp>(op)) {
      recv.setPeer(ranksOf(recv.getPeer()).front());
    } else if (auto send = dyn_cast<dist::SendOp>(op)) {
      OpBuilder builder(send);
      for (int64_t reader : ranksOf(send.getPeer()))
        cast<dist::SendOp>(builder.clone(op)).setPeer(reader);
      send.erase();
    }
  }
  stage.setName(program.getDevice().getValue());
  stage->setDiscardableAttrs({NamedAttribute(dist::kProgramAttr, program)});
  llvm::BitVector unread(stage.getNumArguments());
  for (BlockArgument argument : stage.getArguments())
    if (argument.use_empty())
      unread.set(argument.getArgNumber());
  (void)stage.eraseArguments(unread);
}

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
      auto info = stage->getAttrOfType<dist::StageAttr>(dist::kStageAttr);
      if (info.getRanks().size() == 1) {
        becomeProgram(stage, ranks);
        continue;
      }
      StageSharder(stage, ranks, nextChannel).run();
      stage.erase();
    }
  }
};

} // namespace
