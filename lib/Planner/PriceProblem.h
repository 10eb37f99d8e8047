//===- PriceProblem.h - the prices that bound a step best -------*- C++ -*-===//
//
// A linear program of few rows and many columns. Each template gives a plane
//
//   seconds(prices) = constant + Σ_r slope_r · price_r
//
// over the prices of all resources, which are at least 0 and sum to 1; the
// lowest of the planes is to be as high as possible. The dual solution says how
// much of each template the best fractional plan has.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_PRICEPROBLEM_H
#define AUTOHET_LIB_PLANNER_PRICEPROBLEM_H

#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace autohet {

struct PriceProblem {
  struct Plane {
    double constant = 0;
    std::vector<double> slopes; ///< of each resource, at least 0

    double at(llvm::ArrayRef<double> prices) const;
  };
  unsigned resource_count = 0;
  std::vector<Plane> planes;

  std::string check() const;
  /// The lowest plane there.
  double objective(llvm::ArrayRef<double> prices) const;
};

struct PriceSolution {
  double objective = 0;
  std::vector<double> prices;
  std::vector<double> weights; ///< of each plane; they sum to 1
};

/// Exact up to rounding: a simplex method on the dual.
PriceSolution solvePrices(const PriceProblem &problem);

} // namespace autohet

#endif
