//===- StepBound.cpp - no plan is faster than this ------------------------===//

#include "autohet/Planner/StepBound.h"
#include "PriceProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

namespace autohet {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Templates that cost this much more than the cheapest tell nothing.
constexpr double keptWithin = 1.1;
constexpr size_t keptPerRound = 12;
// Prices at most grow and shrink by this factor, but to at least that.
constexpr double longestStep = 1.5, leastPrice = 0.02;
// A round prices this much more exactly than bound and relaxation are apart.
constexpr double finer = 0.3;
constexpr double coarsest = 0.05;

class Relaxation {
public:
  Relaxation(TemplateSearch &search, const StepBoundProblem &problem)
      : search(search), problem(problem), classes(problem.available.size()) {
    for (unsigned count : problem.available)
      amounts.push_back(std::max(1u, count));
    amounts.push_back(static_cast<double>(
        problem.max_replicas.value_or(search.templates().max_replicas)));
    if (problem.max_devices)
      amounts.push_back(*problem.max_devices);
    // Nothing is charged for a class of which there is nothing, and no template
    // may use it: see startPrices().
    planes.resource_count = amounts.size();
  }

  StepBound run() {
    search.is_late = problem.is_late;
    std::vector<double> prices = startPrices(), bestPrices = prices;
    double tolerance = problem.first_tolerance;
    for (const Template &made : problem.known)
      addPlane(made);
    if (!problem.may_generate) {
      PriceSolution solution = solvePrices(planes);
      result.relaxed_s = solution.objective;
      weights = solution.weights;
      finish(solution.prices);
      return std::move(result);
    }
    if (!problem.known.empty()) {
      PriceSolution solution = solvePrices(planes);
      // Few templates leave some devices without a price: not that far at once.
      prices = bestPrices = step(prices, solution.prices);
      // Where a bound is known that is enough, that is asked for at once.
      double apart = 1 - problem.enough_s / solution.objective;
      if (problem.enough_s < never && apart < tolerance)
        tolerance = std::max(apart, finer * problem.tolerance);
    }
    for (unsigned round = 0; round < problem.max_rounds; ++round) {
      DevicePrices charged = perDevice(prices);
      double known_s = never;
      for (const Template &made : result.templates)
        known_s = std::min(known_s,
                           chargedSeconds(made, charged, problem.global_batch));
      TemplateSearch::Cheapest cheapest =
          search.cheapest(charged, known_s, tolerance);
      if (cheapest.bound_s > result.bound_s) {
        result.bound_s = cheapest.bound_s;
        bestPrices = prices;
      }
      bool isNew = add(cheapest.found, charged);
      if (result.templates.empty())
        break; // nothing fits
      PriceSolution solution = solvePrices(planes);
      result.relaxed_s = solution.objective;
      weights = solution.weights;
      double apart = 1 - result.bound_s / result.relaxed_s;
      if (apart <= problem.tolerance || result.bound_s >= problem.enough_s ||
          problem.is_late())
        break;
      // The same point again, only finer.
      double next =
          std::clamp(finer * apart, finer * problem.tolerance, coarsest);
      if (!isNew)
        next = std::min(next, tolerance / 4);
      if (next < 1e-5)
        break;
      tolerance = next;
      prices = step(bestPrices, solution.prices);
    }
    finish(bestPrices);
    return std::move(result);
  }

private:
  // In proportion to speed: the prices if nothing but arithmetic counted.
  std::vector<double> startPrices() const {
    if (!problem.start_prices.empty())
      return problem.start_prices;
    const PlanCosts &costs = search.templates().costs;
    std::vector<double> prices(amounts.size(), 0);
    double sum = 0;
    for (unsigned index = 0; index < classes; ++index)
      sum += prices[index] =
          problem.available[index] *
          costs.machines().kinds[costs.classes()[index].kind].flops_per_s;
    for (double &price : prices)
      price /= sum;
    return prices;
  }

  // Planes far from the best point say little there: each price at most
  // doubles or halves, and early ones by no more than a part of that.
  std::vector<double> step(llvm::ArrayRef<double> from,
                           llvm::ArrayRef<double> to) const {
    std::vector<double> prices;
    double sum = 0;
    for (auto [old, wanted] : llvm::zip_equal(from, to)) {
      double limited = std::clamp(wanted, old / longestStep,
                                  std::max(old * longestStep, leastPrice));
      sum += prices.emplace_back(limited);
    }
    for (double &price : prices)
      price /= sum;
    return prices;
  }

  DevicePrices perDevice(llvm::ArrayRef<double> prices) const {
    DevicePrices result;
    double each =
        problem.max_devices ? prices.back() / *problem.max_devices : 0;
    for (unsigned index = 0; index < classes; ++index)
      result.of_class.push_back(each + prices[index] / amounts[index]);
    result.of_replica = prices[classes] / amounts[classes];
    return result;
  }

  bool add(llvm::ArrayRef<Template> found, const DevicePrices &prices) {
    bool isNew = false;
    size_t kept = 0;
    for (const Template &made : found) {
      if (++kept > keptPerRound ||
          chargedSeconds(made, prices, problem.global_batch) >
              keptWithin *
                  chargedSeconds(found.front(), prices, problem.global_batch))
        break;
      if (llvm::any_of(result.templates, [&](const Template &other) {
            return other.isSame(made);
          }))
        continue;
      isNew = true;
      addPlane(made);
    }
    return isNew;
  }

  void addPlane(const Template &made) {
    PriceProblem::Plane &plane = planes.planes.emplace_back();
    plane.constant = made.way_s - made.slack_s + made.rest_s - made.period_s;
    double factor = made.period_s * static_cast<double>(problem.global_batch) /
                    static_cast<double>(made.microbatch_size);
    double used = 0;
    for (unsigned index = 0; index < classes; ++index) {
      used += made.devices[index];
      plane.slopes.push_back(factor * made.devices[index] / amounts[index]);
    }
    plane.slopes.push_back(factor / amounts[classes]);
    if (problem.max_devices)
      plane.slopes.push_back(factor * used / amounts[classes + 1]);
    result.templates.push_back(made);
  }

  // A template's weight is its part of the batch, in units of what one replica
  // does within the time.
  void finish(llvm::ArrayRef<double> bestPrices) {
    result.prices = perDevice(bestPrices);
    result.resource_prices = bestPrices.vec();
    result.replicas.assign(result.templates.size(), 0);
    double scarcest = 0;
    for (unsigned resource = 0; resource < amounts.size(); ++resource) {
      double used = 0;
      for (auto [weight, plane] : llvm::zip(weights, planes.planes))
        used += weight * plane.slopes[resource];
      scarcest = std::max(scarcest, used);
    }
    for (auto [index, weight] : llvm::enumerate(weights)) {
      const Template &made = result.templates[index];
      result.replicas[index] =
          weight * made.period_s * static_cast<double>(problem.global_batch) /
          static_cast<double>(made.microbatch_size) / scarcest;
    }
    if (result.templates.empty())
      result.bound_s = never;
  }

  TemplateSearch &search;
  const StepBoundProblem &problem;
  size_t classes;
  std::vector<double> amounts; ///< of each resource
  PriceProblem planes;
  std::vector<double> weights;
  StepBound result;
};

} // namespace

StepBound boundStep(TemplateSearch &search, const StepBoundProblem &problem) {
  return Relaxation(search, problem).run();
}

} // namespace autohet
