//===- MixNeighbours.h - the mixes that are one change away -----*- C++ -*-===//

#ifndef AUTOHET_LIB_PLANNER_MIXNEIGHBOURS_H
#define AUTOHET_LIB_PLANNER_MIXNEIGHBOURS_H

#include "Placement.h"
#include "autohet/Planner/TemplateSearch.h"

namespace autohet {

/// All mixes that differ from `mix` by one change and take no more than
/// `available`. `search` fits pipelines to devices. Templates are not measured,
/// and memory is not looked at.
std::vector<TemplateMix> neighboursOf(const TemplateMix &mix,
                                      TemplateSearch &search,
                                      const ClassCounts &available);

} // namespace autohet

#endif
