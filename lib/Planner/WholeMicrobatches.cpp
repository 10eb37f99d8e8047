//===- WholeMicrobatches.cpp - closer bounds of one interval --------------===//
//
// Only asked for where the first bound of an interval is not enough: what later
// stages exchange, and that microbatches are whole.
//
//===----------------------------------------------------------------------===//

#include "IntervalProgram.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();

// Without what they exchange, no template takes less than the cheapest one. So
// what a template below the cutoff exchanges may be seen for no longer than up
// to there.
bool IntervalProgram::limitExchange(StageTables &tables,
                                    const TemplateSearch::Interval &interval,
                                    double cutoff_s) {
  if (!space.costs.syncOverlaps() || !space.costs.hasBackward())
    return false;
  std::vector<TemplateStage> stages;
  double least = leastOf(tables, interval, {true, interval.low_s, false},
                         cutoff_s, stages);
  if (least == never)
    return true;
  limits.reset(tables, interval.low_s, interval.high_s, cutoff_s - least);
  return true;
}

// Prices asked for in one interval; those that differ by less are one.
static constexpr unsigned maxPrices = 9;
static constexpr double samePrice = 1.05, farPrice = 4;

double IntervalProgram::wholeBound(
    StageTables &tables, const TemplateSearch::Interval &interval,
    double cutoff_s,
    llvm::function_ref<void(const std::vector<TemplateStage> &)> visit) {
  const double period = interval.low_s, first_s = stepPart() * period;
  std::vector<TemplateStage> stages;
  auto least = [&](const Objective &objective, double cutoff) {
    double found = leastOf(tables, interval, objective, cutoff, stages);
    if (found < never && isLegal)
      visit(stages);
    return found;
  };
  // With more microbatches than that, no template is below the cutoff.
  double most = (cutoff_s + first_s) / period;
  double fewest = least({false, 1}, most);
  if (fewest == never)
    return never;
  fewest = wholeMicrobatches(fewest);

  // What templates take at least at some price of a microbatch, and how many
  // the cheapest one is charged with.
  struct Priced {
    double price_s, least_s, count;
  };
  std::vector<Priced> known; // by rising price
  // A template that does so many microbatches takes at least that time for the
  // first one.
  auto bestPrice = [&](double count) {
    return std::max_element(
        known.begin(), known.end(), [&](const Priced &a, const Priced &b) {
          return a.least_s - a.price_s * count < b.least_s - b.price_s * count;
        });
  };
  double next_s = period;
  while (true) {
    // So dear is a template below the cutoff at most: one of many microbatches
    // if they cost more than their period, else one of few.
    double dearest =
        cutoff_s + (next_s - period) * (next_s > period ? most : fewest);
    double found = least({true, next_s, true, true}, dearest);
    Priced priced = {next_s, std::min(found, dearest),
                     found < never ? chargeOf(interval, stages) : most};
    known.insert(
        llvm::find_if(
            known, [&](const Priced &other) { return other.price_s > next_s; }),
        priced);
    double bound = never, worst = fewest;
    for (double count = fewest; count <= most; ++count) {
      auto best = bestPrice(count);
      double seconds = best->least_s + (period - best->price_s) * count;
      if (seconds >= bound)
        continue;
      bound = seconds;
      worst = count;
    }
    if (bound >= cutoff_s)
      return never;
    if (known.size() == maxPrices)
      return bound;
    // Fewer microbatches are charged at higher prices.
    auto best = bestPrice(worst);
    if (best->count > worst) {
      next_s = std::next(best) == known.end()
                   ? best->price_s * farPrice
                   : std::sqrt(best->price_s * std::next(best)->price_s);
      if (next_s < best->price_s * samePrice)
        return bound;
    } else {
      next_s = best == known.begin()
                   ? best->price_s / farPrice
                   : std::sqrt(best->price_s * std::prev(best)->price_s);
      if (best->price_s < next_s * samePrice)
        return bound;
    }
  }
}

double
IntervalProgram::chargeOf(const TemplateSearch::Interval &interval,
                          const std::vector<TemplateStage> &stages) const {
  double price = 0;
  for (const TemplateStage &stage : stages)
    price += shapePrices[stage.shape];
  return replicaCharge + price * static_cast<double>(globalBatch) /
                             static_cast<double>(interval.microbatch_size);
}

} // namespace autohet
