//===- MegatronLayout.h - a plan as flags of Megatron-LM --------*- C++ -*-===//
//
// Who runs Megatron can take a plan of ours along, where its flags can say it:
// equal replicas, one tensor-parallel degree, stages of whole layers.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLAN_MEGATRONLAYOUT_H
#define AUTOHET_PLAN_MEGATRONLAYOUT_H

#include "autohet/Plan/Plan.h"

namespace autohet {

struct MegatronLayout {
  int64_t tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1;
  int64_t microbatch = 1, global_batch = 1;
  /// "Et*3|t*5|t*4L": embedding, layers and loss, stage by stage.
  std::string layout;

  /// As one writes them on a command line.
  std::string flags() const;
};

/// Empty `reasons` where the plan can be said, else everything that cannot.
MegatronLayout exportToMegatron(const ResolvedPlan &plan,
                                const UnitTable &table, int64_t globalBatch,
                                std::vector<std::string> &reasons);

} // namespace autohet

#endif
