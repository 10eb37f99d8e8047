//===- MixRelaxation.cpp - mixes of fractions of replicas -----------------===//

#include "MixRelaxation.h"
#include "PriceProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace autohet {

// The most samples of all devices is one over the least part of the devices
// that a sample takes, where prices say what the devices' parts are worth:
// PriceProblem without constants.
MixRelaxation relaxMix(const MixProblem &problem, double limit_s) {
  MixRelaxation result;
  result.replicas.resize(problem.templates.size());
  result.losses.assign(problem.templates.size(),
                       std::numeric_limits<double>::infinity());
  ClassCounts rooms = problem.rooms();
  PriceProblem planes;
  planes.resource_count = rooms.size();
  std::vector<unsigned> columns;
  std::vector<double> samples;
  for (auto [index, made] : llvm::enumerate(problem.templates)) {
    double gain = static_cast<double>(made.microbatch_size) *
                  static_cast<double>(made.microbatchesWithin(limit_s));
    ClassCounts needs = problem.needsOf(made);
    if (gain <= 0 || llvm::any_of(llvm::zip_equal(needs, rooms), [](auto pair) {
          return std::get<0>(pair) > std::get<1>(pair);
        }))
      continue;
    PriceProblem::Plane &plane = planes.planes.emplace_back();
    for (auto [need, room] : llvm::zip_equal(needs, rooms))
      plane.slopes.push_back(need ? need / (gain * room) : 0);
    columns.push_back(index);
    samples.push_back(gain);
  }
  if (columns.empty())
    return result;
  PriceSolution solution = solvePrices(planes);
  result.samples = 1 / solution.objective;
  for (auto [column, index] : llvm::enumerate(columns)) {
    result.replicas[index] =
        solution.weights[column] * result.samples / samples[column];
    result.losses[index] =
        samples[column] *
        (planes.planes[column].at(solution.prices) * result.samples - 1);
  }
  return result;
}

} // namespace autohet
