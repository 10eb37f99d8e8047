//===- SailorJudge.h - what a plan costs by Sailor's simulator --*- C++ -*-===//
//
// Several planners of other groups have been compared under Sailor's simulator;
// to stand beside them, plans are judged by its formulas:
//
//   step   = (M - 1) max_s(c_s + p_s) + sum_s(c_s + p_s) + update + sync
//   M      = ceil(batch / (microbatch size x groups))
//   c_s    = forward and backward of the slowest group of the stage
//   p_s    = activations sent and gradients sent back; the first stage sends no
//            gradient and the last no activation, and count what they do send
//            once or twice as the original does
//   sync   = the slowest stage's ring all-reduce in buckets of 5e8 bytes, at
//            the rate of one GPU; nothing overlaps
//   memory = 24 bytes a parameter + activations x (stages - stage) + 2 or 3 GB
//
// It also has an extension of our own, by the same formulas: replicas that each
// have their own cuts and number of microbatches.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_SAILORJUDGE_H
#define AUTOHET_PROFILES_SAILORJUDGE_H

#include "autohet/Profiles/SailorData.h"
#include "autohet/Profiles/SailorPlan.h"

namespace autohet {

struct JudgeOptions {
  /// Tensor-parallel ranks of a node share its NIC in a gradient's all-reduce;
  /// the original gives each rank the rate of a single one.
  bool ranks_share_nic = true;
};

struct JudgedStep {
  double step_s = 0;
  double pipeline_s = 0, update_s = 0, sync_s = 0;
  /// Of the device with the least room, and its room: negative does not fit.
  double memory_bytes = 0, room_bytes = 0;

  bool fits() const { return room_bytes >= 0; }
};

llvm::Expected<JudgedStep> judgeSailorPlan(const SailorPlan &plan,
                                           const SailorModel &model,
                                           const SailorData &data,
                                           const JudgeOptions &options);

/// A replica by itself: one group a stage.
struct JudgedReplica {
  struct Stage {
    unsigned begin = 0, end = 0;
    SailorGroup group;
  };
  std::vector<Stage> stages;
  int64_t microbatch_size = 1, microbatches = 1;
};

/// The extension: each replica runs its own (M - 1) period + way; layers with
/// the same holders are reduced together, each device one after the other.
/// Equal replicas cost what judgeSailorPlan() says.
llvm::Expected<JudgedStep> judgeReplicas(llvm::ArrayRef<JudgedReplica> replicas,
                                         const SailorModel &model,
                                         const SailorData &data,
                                         const JudgeOptions &options);

} // namespace autohet

#endif
