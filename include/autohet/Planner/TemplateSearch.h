//===- TemplateSearch.h - the cheapest template at given prices -*- C++ -*-===//
//
// Devices have prices: seconds of a step for one device of a class and one
// microbatch of each sample of the batch. At given prices the cheapest template
// is found by a dynamic program over the units from the last to the first, the
// number of stages behind, and the class of the next stage. Periods are taken
// in intervals: stages may fill the upper end, time is counted at the lower
// one, so that every interval's answer is a lower bound of all its templates,
// and intervals are split until they tell no more.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_TEMPLATESEARCH_H
#define AUTOHET_PLANNER_TEMPLATESEARCH_H

#include "autohet/Planner/Template.h"
#include "autohet/Support/Deadline.h"
#include <memory>

namespace autohet {

/// The share of the global batch that a device is charged with, by class, and
/// that a replica is as such.
struct DevicePrices {
  std::vector<double> of_class;
  double of_replica = 0;
  /// The part of the cluster that a device is; see sizeOf(). Empty: none.
  std::vector<double> part_of_class = {};
  /// That a replica is charged with in addition if its devices are more than a
  /// half, a third, … of the cluster: there are few such replicas.
  std::vector<double> of_large = {};

  double of(const ClassCounts &devices) const;
  /// The part of the cluster that these devices are.
  double sizeOf(const ClassCounts &devices) const;
  /// In addition to its devices', for a replica of at least that size.
  double ofSize(double size) const;
};

/// Whether a size is more than the part 1 / (`index` + 2) of the cluster.
bool isLargerThanPart(double size, size_t index);

/// Whole microbatches that make up a share, and one at least.
double wholeMicrobatches(double microbatches);

/// Seconds that a plan takes in which this template does its charged share of
/// `globalBatch`; at least. See TemplateSearch::cheapest().
double chargedSeconds(const Template &made, const DevicePrices &prices,
                      int64_t globalBatch);

class StageTables;

class TemplateSearch {
public:
  TemplateSearch(const TemplateSpace &space, int64_t globalBatch);
  ~TemplateSearch();

  struct Interval {
    int64_t microbatch_size = 1;
    double low_s = 0, high_s = 0; ///< of the period
  };
  struct Cheapest {
    /// chargedSeconds() of no template is less.
    double bound_s = 0;
    /// The cheapest ones met, by rising chargedSeconds().
    std::vector<Template> found;
  };
  /// Over all sizes and periods. `tolerance` is how far, as a fraction, the
  /// bound may be below the best template found; `known_s` is what some known
  /// template takes, or infinity.
  Cheapest cheapest(const DevicePrices &prices, double known_s,
                    double tolerance);
  /// Over some sizes and periods only.
  Cheapest cheapest(llvm::ArrayRef<Interval> intervals,
                    const DevicePrices &prices, double known_s,
                    double tolerance);

  /// For each size and period, up to a factor of `ratio`, the cheapest one if
  /// it takes less than `limit_s`.
  std::vector<Template> allWithin(const DevicePrices &prices, double limit_s,
                                  double ratio);

  /// The template of the shortest period on no more than `devices`, messages
  /// counted as a part of stages, of which each has `leastStage` devices or
  /// more; nothing if they cannot hold the model.
  std::optional<Template> withDevices(const ClassCounts &devices,
                                      int64_t microbatchSize,
                                      unsigned leastStage = 1);

  /// Of all replicas that hold the model, the devices of one whose sum of
  /// `prices` is least; nothing if there is no such replica.
  std::optional<ClassCounts> leastDevices(llvm::ArrayRef<double> prices);

  /// When all of these are to stop with what they have.
  Deadline deadline;

  uint64_t pricedIntervals() const { return count; }
  const TemplateSpace &templates() const { return space; }

private:
  std::vector<Interval> allIntervals();
  StageTables &tablesOf(int64_t microbatchSize);

  /// Where a try took too long, the next ones would too: after each, twice as
  /// many are skipped, and after one that did not half as many.
  class Patience {
  public:
    bool isSkipped() {
      if (left == 0)
        return false;
      --left;
      return true;
    }
    void note(bool isTooLong) {
      skips = isTooLong ? 2 * skips + 1 : skips / 2;
      left = isTooLong ? skips : 0;
    }

  private:
    uint64_t skips = 0, left = 0;
  };

  TemplateSpace space;
  int64_t globalBatch;
  uint64_t count = 0;
  Patience exact; ///< with bounds that tell templates apart
  std::vector<std::unique_ptr<StageTables>> tables; ///< of each size
};

} // namespace autohet

#endif
