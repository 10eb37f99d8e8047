//===- Statistics.h - how far estimates are from measurements ---*- C++ -*-===//

#ifndef AUTOHET_BENCH_PLANNER_STATISTICS_H
#define AUTOHET_BENCH_PLANNER_STATISTICS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>
#include <vector>

namespace autohet {

struct Comparison {
  std::string name;
  double estimated = 0, measured = 0;

  double error() const { return estimated / measured - 1; }
};

/// "mean 5.2 %, median …": of the absolute errors.
std::string summarise(const std::vector<Comparison> &comparisons);

/// Spearman's: 1 where both order alike.
double rankCorrelation(const std::vector<Comparison> &comparisons);

/// Moves each constant up and down by shrinking steps while the mean error of
/// `compare` falls: for a handful of constants on smooth models.
void fitConstants(std::vector<double *> constants,
                  llvm::function_ref<std::vector<Comparison>()> compare);

} // namespace autohet

#endif
