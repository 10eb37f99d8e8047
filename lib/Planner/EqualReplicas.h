//===- EqualReplicas.h - a replica of given devices -------------*- C++ -*-===//
//
// Where all replicas are to be alike, what each has is known: its part of every
// class. The pipeline over those devices whose longest stage is shortest is a
// question of how few units can be left over: for every part of the devices,
// how far from the end they reach within a period. Periods are halved.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_EQUALREPLICAS_H
#define AUTOHET_LIB_PLANNER_EQUALREPLICAS_H

#include "StageTables.h"
#include "autohet/Support/Deadline.h"

namespace autohet {

/// The number of parts of `devices`, or `most` + 1.
size_t partsOfDevices(const ClassCounts &devices, size_t most);

/// The stages of `leastStage` devices or more, messages counted as a part of
/// them, on no more than `devices`; nothing if they cannot hold the model, or
/// that is not known in time.
std::optional<Template> fitDevices(const TemplateSpace &space,
                                   StageTables &tables, int64_t microbatchSize,
                                   const ClassCounts &devices,
                                   unsigned leastStage,
                                   const Deadline &deadline);

} // namespace autohet

#endif
