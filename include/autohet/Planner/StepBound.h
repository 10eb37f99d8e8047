//===- StepBound.h - no plan is faster than this ----------------*- C++ -*-===//
//
// The linear relaxation of the whole planning problem: any mixture of any
// templates, in fractions, within the devices that there are. Columns
// (templates) are generated at prices of devices, prices follow from columns.
// Every set of prices proves a bound; the best one is kept.
//
// If all devices' prices sum to 1, some replica of any plan does at least the
// share of the batch that its devices are charged with, and no template does
// its share in less than TemplateSearch::cheapest() says.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_STEPBOUND_H
#define AUTOHET_PLANNER_STEPBOUND_H

#include "autohet/Planner/TemplateSearch.h"
#include <functional>

namespace autohet {

struct StepBoundProblem {
  int64_t global_batch = 1;
  ClassCounts available;
  std::optional<unsigned> max_devices;
  /// Replicas of a plan, where fewer than the templates are for.
  std::optional<int64_t> max_replicas;
  /// Templates to begin with.
  std::vector<Template> known;
  /// Of each resource, to begin near; empty: in proportion to speed.
  std::vector<double> start_prices;
  /// Whether more are looked for. If not, the result is the best mixture of the
  /// known ones, and no bound.
  bool may_generate = true;
  /// How near bound and relaxation should come, as a fraction.
  double tolerance = 0.002;
  unsigned max_rounds = 60;
  /// Of the first round.
  double first_tolerance = 0.05;
  /// A bound that is above this needs no better one.
  double enough_s = std::numeric_limits<double>::infinity();
  /// When to stop with what is known.
  Deadline deadline;
};

struct StepBound {
  /// Infinity where no template fits into memory at all.
  double bound_s = 0;
  /// Of the relaxation: no mixture of the templates below is faster. Infinity
  /// without templates.
  double relaxed_s = 0;
  std::vector<Template> templates;
  /// How many replicas of each the relaxation has.
  std::vector<double> replicas;
  DevicePrices prices;
  /// The same for each resource: classes, replicas, and devices where they are
  /// limited. They sum to 1.
  std::vector<double> resource_prices;
};

StepBound boundStep(TemplateSearch &search, const StepBoundProblem &problem);

} // namespace autohet

#endif
