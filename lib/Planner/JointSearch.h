//===- JointSearch.h - from the relaxation to whole plans -------*- C++ -*-===//
//
// The relaxation says which templates are worth having and how many of each, in
// fractions. Whole numbers of them are a problem of their own (MixProblem),
// whose mixes are placed and judged. Plans of few named devices are enumerated
// as well.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_JOINTSEARCH_H
#define AUTOHET_LIB_PLANNER_JOINTSEARCH_H

#include "MixImprovement.h"
#include "autohet/Planner/StepBound.h"
#include <deque>

namespace autohet {

/// Microbatch sizes that a search looks at: divisors of the batch and powers
/// of two, up to the largest one allowed.
std::vector<int64_t> microbatchSizes(const PlannerOptions &options);

class JointSearch {
public:
  explicit JointSearch(Judge &judge);

  /// Brings plans to the judge until the gap is small or nothing helps.
  void run();

  /// Brings what is near a plan to the judge.
  void improve(const ResolvedPlan &start);

  /// Only the bound.
  void boundOnly();

  /// Only one replica of all devices, where that is soon known.
  void runOnePipeline();

  /// No plan of the space is faster; infinity if none fits.
  double boundSeconds() const { return bound_s; }
  uint64_t pricedTemplates() const { return priced; }

private:
  StepBoundProblem boundProblem() const;
  bool isContent() const;

  /// All plans with so many replicas.
  struct Part {
    int64_t low = 1, high = 1;
    double bound_s = 0;
    std::unique_ptr<TemplateSearch> search;
    std::optional<StepBound> root; ///< once looked into
    bool is_solved = false;        ///< up to the tolerance
  };
  void boundAtOnce();
  void begin();
  Part &addPart(int64_t low, int64_t high);
  void addFitting(int64_t low, int64_t high);
  int64_t mostReplicas(TemplateSearch &search) const;
  Part &lowest();
  void startNear(const Part &part, StepBoundProblem &problem) const;
  void solve(Part &part, bool isQuick);
  void solveAll();
  bool splitLowest();

  void collect(Part &part);
  void enumerateGroupings();

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  ClassCounts available;
  MixSearch mixes;
  MixImprovement improvement;
  std::deque<Part> parts; ///< their places do not change
  double bound_s = 0;
  /// Of some bound of all parts, and of all bounds; and when the one that is
  /// sought now has to be there.
  Deadline quickBoundsEnd, allBoundsEnd, boundEnd;
  uint64_t priced = 0;
};

} // namespace autohet

#endif
