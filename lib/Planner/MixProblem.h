//===- MixProblem.h - how many replicas of each template --------*- C++ -*-===//
//
// The whole numbers behind the relaxation: so many replicas of each of some
// templates, within the devices that there are, that the batch is done first.
// Within a given time a replica of a template does a known number of samples:
// that is a knapsack with a dimension for each class, and the time is found by
// halving. Where replicas may be fractions it is a linear program, whose prices
// leave few templates to the knapsack. That is exact where there are few
// devices; of many, most go to whole parts of the linear program's solution.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_MIXPROBLEM_H
#define AUTOHET_LIB_PLANNER_MIXPROBLEM_H

#include "Placement.h"
#include "autohet/Support/Deadline.h"

namespace autohet {

struct MixProblem {
  int64_t global_batch = 1;
  ClassCounts available;
  std::optional<unsigned> max_devices;
  std::vector<Template> templates;
  /// No mix is faster than the one, or wanted if not faster than the other.
  double least_s = 0, limit_s = std::numeric_limits<double>::infinity();
  /// Of the knapsack: numbers of devices of each class.
  size_t max_states = 20000;
  /// When to stop with the best mix so far.
  Deadline deadline;

  /// Of each class, and of all devices where they are limited.
  ClassCounts rooms() const;
  ClassCounts needsOf(const Template &made) const;

  std::string check() const;
  std::string verify(const TemplateMix &mix) const;
};

/// When the last replica of a mix is done with the batch, at best; infinity
/// without replicas.
double secondsOfMix(const TemplateMix &mix, int64_t globalBatch);

/// Exact up to a thousandth where all devices are within `max_states`. Empty
/// where no template fits or no mix is fast enough.
TemplateMix solveMix(const MixProblem &problem);
TemplateMix solveMixByBruteForce(const MixProblem &problem);

} // namespace autohet

#endif
