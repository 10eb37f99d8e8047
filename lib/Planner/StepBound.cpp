//===- StepBound.cpp - no plan is faster than this ------------------------===//

#include "autohet/Planner/StepBound.h"
#include "PriceProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace autohet {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Templates that cost this much more than the cheapest tell nothing.
constexpr double keptWithin = 1.1;
constexpr size_t keptPerRound = 12;
// Prices at most grow and shrink by this factor; below that, to any.
constexpr double longestStep = 1.5, leastPrice = 0.02;
// A round prices this much more exactly than bound and relaxation are apart.
constexpr double finer = 0.1;
constexpr double coarsest = 0.05;
// A round as exact as asked for, without a new template, that gains less of the
// tolerance is the last.
constexpr double leastGain = 0.2;
// Times of mixtures are as exact as this part of the tolerance.
constexpr double relaxedTolerance = 0.1;
// Sums of fractions that lack no more than this part of the batch are it. A
// mixture that does just the batch would else be taken for one that does not,
// and its prices charge templates with no more than they do.
constexpr double lackedPart = 1e-6;
// Of start prices.
constexpr unsigned shareRounds = 100;
// Replicas of more than a half, a third, … of the cluster are resources.
constexpr unsigned largeKinds = 3;

class Relaxation {
public:
  Relaxation(TemplateSearch &search, const StepBoundProblem &problem)
      : search(search), problem(problem), classes(problem.available.size()) {
    for (unsigned count : problem.available)
      amounts.push_back(std::max(1u, count));
    amounts.push_back(static_cast<double>(
        problem.max_replicas.value_or(search.templates().max_replicas)));
    for (unsigned index = 0; index < largeKinds; ++index)
      amounts.push_back(index + 1);
    if (problem.max_devices)
      amounts.push_back(*problem.max_devices);
    // Nothing is charged for a class of which there is nothing, and no template
    // may use it: see startPrices().
    const PlanCosts &costs = search.templates().costs;
    double sum = 0;
    for (unsigned index = 0; index < classes; ++index) {
      double rate =
          costs.machines().kinds[costs.classes()[index].kind].flops_per_s;
      partOfClass.push_back(rate);
      sum += problem.available[index] * rate;
    }
    for (double &part : partOfClass)
      part /= sum;
  }

  StepBound run() {
    search.deadline = problem.deadline;
    std::vector<double> prices = startPrices(), bestPrices = prices;
    double tolerance = problem.first_tolerance;
    // Whether prices are just those of the mixture.
    bool isWanted = false;
    for (const Template &made : problem.known)
      addColumn(made);
    if (!problem.may_generate) {
      finish(relax());
      return std::move(result);
    }
    if (!problem.known.empty() && problem.max_rounds > 1) {
      // Few templates leave some devices without a price: not that far at once.
      prices = bestPrices = step(prices, relax());
    }
    for (unsigned round = 0; round < problem.max_rounds; ++round) {
      DevicePrices charged = perDevice(prices);
      double known_s = never;
      for (const Template &made : result.templates)
        known_s = std::min(known_s,
                           chargedSeconds(made, charged, problem.global_batch));
      // What is enough is asked for as such: that is soon shown or refuted.
      bool mayBeEnough = problem.enough_s <= known_s;
      TemplateSearch::Cheapest cheapest =
          search.cheapest(charged, std::min(known_s, problem.enough_s),
                          mayBeEnough ? 0 : tolerance);
      double gain = cheapest.bound_s - result.bound_s;
      if (gain > 0) {
        result.bound_s = cheapest.bound_s;
        bestPrices = prices;
      }
      bool isNew = add(cheapest.found, charged);
      if (result.templates.empty())
        break; // nothing fits, or nothing was found in time
      std::vector<double> wanted = relax();
      double apart = 1 - result.bound_s / result.relaxed_s;
      if (apart <= problem.tolerance || result.bound_s >= problem.enough_s ||
          problem.deadline.isOver())
        break;
      // The same point again, only finer.
      double next =
          std::clamp(finer * apart, 0.3 * problem.tolerance, coarsest);
      bool isStuck =
          !isNew && gain < leastGain * problem.tolerance * result.bound_s;
      if (isStuck && !isWanted) {
        // Small steps lead nowhere: there the mixture shows to be the best one,
        // or there is a template that is better.
        isWanted = true;
        tolerance = std::min(next, tolerance);
        prices = std::move(wanted);
        continue;
      }
      if (isStuck && round > 0 && tolerance <= problem.tolerance)
        break;
      if (!isNew)
        next = std::min(next, tolerance / 4);
      if (next < 1e-5)
        break;
      tolerance = next;
      isWanted = isWanted && !isNew;
      prices = isWanted ? std::move(wanted) : step(bestPrices, wanted);
    }
    finish(bestPrices);
    return std::move(result);
  }

private:
  // The prices if nothing but units' times counted.
  std::vector<double> startPrices() const {
    if (!problem.start_prices.empty())
      return problem.start_prices;
    std::vector<double> prices = sharePrices();
    prices.resize(amounts.size(), 0);
    return prices;
  }

  // Classes share the units so that all are done at once: where a class has
  // more to do than others at the prices so far, it becomes dearer. No prices
  // are wrong, and these need not be the best ones.
  std::vector<double> sharePrices() const {
    std::vector<double> prices(classes);
    for (unsigned index = 0; index < classes; ++index)
      prices[index] = problem.available[index] * partOfClass[index];
    std::vector<std::vector<double>> seconds = shareSeconds();
    std::vector<double> best = prices;
    double best_s = 0;
    for (unsigned round = 1; round <= shareRounds; ++round) {
      std::vector<double> busy_s(classes);
      double all_s = 0;
      for (const std::vector<double> &ofUnit : seconds) {
        unsigned cheapest = 0;
        for (unsigned index = 1; index < classes; ++index)
          if (prices[index] * ofUnit[index] <
              prices[cheapest] * ofUnit[cheapest])
            cheapest = index;
        busy_s[cheapest] += ofUnit[cheapest];
        all_s += prices[cheapest] * ofUnit[cheapest];
      }
      if (all_s > best_s) {
        best_s = all_s;
        best = prices;
      }
      double most_s = *std::max_element(busy_s.begin(), busy_s.end());
      double sum = 0;
      for (auto [price, busy] : llvm::zip_equal(prices, busy_s))
        sum += price *= std::exp(busy / most_s / std::sqrt(round));
      for (double &price : prices)
        price /= sum;
    }
    return best;
  }

  /// What all devices of each class take for each unit together.
  std::vector<std::vector<double>> shareSeconds() const {
    const TemplateSpace &space = search.templates();
    std::vector<std::vector<double>> seconds(
        space.costs.units().units.size(), std::vector<double>(classes, never));
    for (auto [shape, made] : llvm::enumerate(space.costs.shapes())) {
      if (made.parts.size() > 1 || !space.allows(shape))
        continue;
      unsigned index = made.parts.front().machine_class;
      for (auto [unit, ofUnit] : llvm::enumerate(seconds))
        if (problem.available[index] > 0)
          ofUnit[index] = std::min(
              ofUnit[index],
              space.costs
                      .unitSeconds(shape, unit, space.microbatch_sizes.back())
                      .total() *
                  made.parts.front().count / problem.available[index]);
    }
    return seconds;
  }

  // Planes far from the best point say little there: prices change by a factor
  // at most, but low ones may become nothing.
  std::vector<double> step(llvm::ArrayRef<double> from,
                           llvm::ArrayRef<double> to) const {
    std::vector<double> prices;
    double sum = 0;
    for (auto [old, wanted] : llvm::zip_equal(from, to)) {
      double limited =
          std::clamp(wanted, old > leastPrice ? old / longestStep : 0,
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
    result.part_of_class = partOfClass;
    for (unsigned index = classes + 1; index <= classes + largeKinds; ++index)
      result.of_large.push_back(prices[index] / amounts[index]);
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
      addColumn(made);
    }
    return isNew;
  }

  /// What one replica of a template takes of each resource, as a part of it.
  void addColumn(const Template &made) {
    std::vector<double> &parts = columns.emplace_back();
    double used = 0;
    for (unsigned index = 0; index < classes; ++index) {
      used += made.devices[index];
      parts.push_back(made.devices[index] / amounts[index]);
    }
    parts.push_back(1 / amounts[classes]);
    double size = 0;
    for (auto [count, part] : llvm::zip_equal(made.devices, partOfClass))
      size += count * part;
    for (unsigned index = 0; index < largeKinds; ++index)
      parts.push_back(isLargerThanPart(size, index) /
                      amounts[classes + 1 + index]);
    if (problem.max_devices)
      parts.push_back(used / amounts.back());
    result.templates.push_back(made);
  }

  /// Microbatches within a time, at most.
  double microbatchesWithin(const Template &made, double limit_s) const {
    double room = limit_s - (made.way_s - made.slack_s + made.rest_s);
    if (room < 0)
      return 0;
    // Work on no elements takes no time: as many as there are.
    if (made.period_s <= 0)
      return static_cast<double>(problem.global_batch);
    return 1 + std::floor(room / made.period_s * (1 + 1e-12) + 1e-9);
  }

  /// What mixtures of the templates do within a time.
  struct Mixture {
    double samples = 0;
    std::vector<double> prices;   ///< at which no template does more
    std::vector<double> replicas; ///< of each template
  };

  Mixture mixWithin(double limit_s) const {
    Mixture mixture;
    mixture.replicas.resize(result.templates.size());
    PriceProblem planes;
    planes.resource_count = amounts.size();
    std::vector<unsigned> able;
    std::vector<double> samples;
    for (auto [index, made] : llvm::enumerate(result.templates)) {
      double done = microbatchesWithin(made, limit_s) *
                    static_cast<double>(made.microbatch_size);
      if (done <= 0)
        continue;
      able.push_back(index);
      samples.push_back(done);
      PriceProblem::Plane &plane = planes.planes.emplace_back();
      for (double part : columns[index])
        plane.slopes.push_back(part / done);
    }
    if (able.empty())
      return mixture;
    PriceSolution solution = solvePrices(planes);
    mixture.samples = 1 / solution.objective;
    mixture.prices = std::move(solution.prices);
    for (auto [place, index] : llvm::enumerate(able))
      mixture.replicas[index] =
          solution.weights[place] * mixture.samples / samples[place];
    return mixture;
  }

  // The shortest time in which mixtures do the batch, up to a part of what is
  // wanted. The prices are those of just before that: they charge every
  // template with more than it does, so that no whole number of microbatches is
  // enough.
  std::vector<double> relax() {
    double high = never;
    for (auto [made, parts] : llvm::zip_equal(result.templates, columns)) {
      double copies = 1 / *std::max_element(parts.begin(), parts.end());
      double alone = wholeMicrobatches(
          static_cast<double>(problem.global_batch) /
          (copies * static_cast<double>(made.microbatch_size)));
      high = std::min(high, made.way_s - made.slack_s + made.rest_s +
                                (alone - 1) * made.period_s);
    }
    double low = std::min(result.bound_s, high);
    Mixture best = mixWithin(high * (1 + 1e-9)), before = mixWithin(low);
    while (high - low > relaxedTolerance * problem.tolerance * high) {
      double middle = (low + high) / 2;
      Mixture found = mixWithin(middle);
      if (found.samples <
          (1 - lackedPart) * static_cast<double>(problem.global_batch)) {
        low = middle;
        before = std::move(found);
      } else {
        high = middle;
        best = std::move(found);
      }
    }
    result.relaxed_s = high;
    result.replicas = std::move(best.replicas);
    return before.prices.empty() ? best.prices : before.prices;
  }

  void finish(llvm::ArrayRef<double> bestPrices) {
    result.prices = perDevice(bestPrices);
    result.resource_prices = bestPrices.vec();
    result.replicas.resize(result.templates.size());
    if (result.templates.empty())
      result.relaxed_s = never;
  }

  TemplateSearch &search;
  const StepBoundProblem &problem;
  size_t classes;
  std::vector<double> amounts; ///< of each resource
  std::vector<double> partOfClass;
  std::vector<std::vector<double>> columns; ///< of each template
  StepBound result;
};

} // namespace

StepBound boundStep(TemplateSearch &search, const StepBoundProblem &problem) {
  return Relaxation(search, problem).run();
}

} // namespace autohet
