//===- Placement.h - templates on named devices -----------------*- C++ -*-===//
//
// The search counts devices; a plan names them. All devices of a stage are of
// one node. Neighbouring stages come to one node where that has room, and large
// stages are placed before small ones, so that nodes are filled without rest.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_PLACEMENT_H
#define AUTOHET_LIB_PLANNER_PLACEMENT_H

#include "autohet/Planner/Template.h"

namespace autohet {

struct CountedTemplate {
  Template made;
  int64_t replicas = 0;
};
/// What replicas a plan has. Theirs are the numbers of microbatches that are
/// still open.
using TemplateMix = std::vector<CountedTemplate>;

int64_t replicaCount(const TemplateMix &mix);
ClassCounts devicesOf(const TemplateMix &mix, size_t classes);

enum class PlacementOrder {
  ByReplica, ///< a replica's stages come near one another: short transfers
  ByStage,   ///< equal stages of all replicas do: cheap gradients
  BySize     ///< large stages first, wherever they belong: fits most often
};

/// One replica after the other in the order of the mix, each with one
/// microbatch. Nothing where stages do not fit into nodes in that order.
std::optional<ResolvedPlan> placeTemplates(const TemplateMix &mix,
                                           const PlanCosts &costs,
                                           PlacementOrder order);

/// The templates of a plan, equal replicas counted together; nothing where a
/// stage is of no shape that `costs` has, or not a run of units. Devices of a
/// stage get shares by speed, whatever the plan says. Templates are not
/// measured.
std::optional<TemplateMix> mixOfPlan(const ResolvedPlan &plan,
                                     const PlanCosts &costs);

} // namespace autohet

#endif
