//===- MixRelaxation.h - mixes of fractions of replicas ---------*- C++ -*-===//
//
// The linear program behind MixProblem: within a given time each template does
// a known, whole number of microbatches, but there may be fractions of
// replicas. It says what no mix can do, which templates are out of the
// question, and which numbers of replicas are worth rounding.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_MIXRELAXATION_H
#define AUTOHET_LIB_PLANNER_MIXRELAXATION_H

#include "MixProblem.h"

namespace autohet {

struct MixRelaxation {
  double samples = 0;           ///< no mix does more
  std::vector<double> replicas; ///< of each template
  /// What a mix with one of that template loses at least, in samples; infinity
  /// for templates that do nothing in the time.
  std::vector<double> losses;
};

MixRelaxation relaxMix(const MixProblem &problem, double limit_s);

} // namespace autohet

#endif
