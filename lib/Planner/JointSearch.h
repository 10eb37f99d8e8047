//===- JointSearch.h - from the relaxation to whole plans -------*- C++ -*-===//
//
// The relaxation says which templates are worth having and how many of each, in
// fractions. Whole numbers are found by fixing what is whole, solving again for
// the devices that are left, and so on; then some replicas are taken apart and
// their devices planned anew, while that helps. Plans of few named devices are
// enumerated as well.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_JOINTSEARCH_H
#define AUTOHET_LIB_PLANNER_JOINTSEARCH_H

#include "Judge.h"
#include "Placement.h"
#include "autohet/Planner/StepBound.h"
#include <deque>

namespace autohet {

/// Microbatch sizes that a search looks at: divisors of the batch and powers
/// of two, up to the largest one allowed.
std::vector<int64_t> microbatchSizes(const PlannerOptions &options);

/// The devices that there are for one more replica of `made`.
bool fitsInto(const Template &made, const ClassCounts &available);

/// When the last replica of a mix is done with the batch, at best; infinity
/// without replicas.
double secondsOfMix(const TemplateMix &mix, int64_t globalBatch);

class JointSearch {
public:
  explicit JointSearch(Judge &judge);

  /// Brings plans to the judge until the gap is small or nothing helps.
  void run();

  /// Only the bound.
  void boundOnly();

  /// No plan of the space is faster; infinity if none fits.
  double boundSeconds() const { return bound_s; }
  uint64_t pricedTemplates() const { return priced; }

private:
  TemplateSpace spaceFor(int64_t minReplicas, int64_t maxReplicas) const;
  StepBoundProblem boundProblem() const;
  bool isContent() const;

  /// All plans with so many replicas.
  struct Part {
    int64_t low = 1, high = 1;
    double bound_s = 0;
    std::unique_ptr<TemplateSearch> search;
    std::optional<StepBound> root; ///< once looked into
  };
  void addAllParts();
  void addPart(int64_t low, int64_t high);
  Part &lowest();
  std::vector<Template> knownFor(const Part &part) const;
  void lookInto(Part &part);
  bool split(Part &part);

  TemplateMix dive(TemplateSearch &search, const StepBound &root,
                   ClassCounts remaining, TemplateMix mix, double target_s);
  std::optional<Template> fitOne(TemplateSearch &search,
                                 const DevicePrices &prices,
                                 const ClassCounts &remaining);
  /// Each class by itself, and what is left of all for mixed replicas.
  void searchByClass(Part &part);
  /// Mixes of equal replicas, and what is left for others.
  void searchEqualReplicas();
  std::optional<Template> fitEqual(TemplateSearch &search,
                                   const StepBound &root, int64_t replicas);
  void judgeDive(Part &part, TemplateMix mix, ClassCounts remaining);
  TemplateMix rebuild(TemplateSearch &search, const StepBound &root,
                      TemplateMix mix);
  bool judgeMix(const TemplateMix &mix);
  void enumerateGroupings();

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  std::vector<int64_t> sizes;
  ClassCounts available;
  std::deque<Part> parts; ///< their places do not change
  Part *bestPart = nullptr;
  TemplateMix bestMix;
  double bound_s = 0;
  uint64_t priced = 0;
};

} // namespace autohet

#endif
