//===- PlanFigures.h - the numbers behind a plan's text ---------*- C++ -*-===//

#ifndef AUTOHET_LIB_REPORT_PLANFIGURES_H
#define AUTOHET_LIB_REPORT_PLANFIGURES_H

#include "autohet/Planner/Planner.h"

namespace autohet {

/// Devices of one stage that are alike in kind and share.
struct DeviceGroup {
  unsigned kind = 0;              ///< into the cluster
  double share = 1;               ///< of what the stage divides, each
  size_t count = 0;               ///< in one replica
  std::vector<unsigned> examples; ///< those of the group's first replica
  double busiest_s = 0;
  MemoryNeed fullest;
};

/// Replicas of one shape, work and memory.
struct ReplicaGroup {
  std::vector<unsigned> replicas; ///< ascending
  std::vector<std::vector<DeviceGroup>> stages;
};

std::vector<ReplicaGroup> groupReplicas(const PlannedStep &step,
                                        const Cluster &cluster);

struct PlanFigures {
  double samples_per_s = 0, tokens_per_s = 0;
  double flops_per_s = 0; ///< of the model
  double utilisation = 0; ///< of the used devices' rates
  double exposed_s = 0;   ///< communication that nothing hides
  double usd_per_step = 0, usd_per_million_tokens = 0;
  double idle_usd_per_hour = 0;
  std::vector<std::string> unpriced; ///< kinds that are used
};

PlanFigures computeFigures(const PlannedStep &step, const UnitTable &table,
                           const Cluster &cluster, int64_t tokens);

} // namespace autohet

#endif
