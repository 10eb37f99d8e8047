//===- MixSearch.h - plans of whole numbers of templates --------*- C++ -*-===//
//
// A pool of templates, and the plans that whole numbers of them make
// (MixProblem). What a template takes is an estimate until a plan with it is
// judged: then the judge's times take its place, and the numbers are chosen
// again.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_MIXSEARCH_H
#define AUTOHET_LIB_PLANNER_MIXSEARCH_H

#include "Judge.h"
#include "MixProblem.h"
#include "autohet/Planner/TemplateSearch.h"
#include <set>

namespace autohet {

class MixSearch {
public:
  MixSearch(Judge &judge, std::vector<int64_t> microbatchSizes);

  /// The templates of plans with so many replicas.
  TemplateSpace spaceFor(int64_t minReplicas, int64_t maxReplicas) const;

  void add(Template made);
  llvm::ArrayRef<Template> templates() const { return pool; }

  /// Of all plans of equal replicas that take all devices, for so many
  /// replicas, and of those of one device; replicas with up to `least` parts of
  /// devices are left out, and those with more than `most`.
  void addEqualReplicas(TemplateSearch &search, size_t least, size_t most);
  /// The best of them go to the judge.
  void judgeEqual();

  /// Replicas of any few devices.
  void addSmallReplicas(TemplateSearch &search);

  /// Mixes of the pool go to the judge. They are first sought for so many
  /// replicas.
  void run(int64_t replicas);

  /// The mix on devices, as the judge likes it best: seconds, or infinity where
  /// no plan is made of it. Templates get the times that the judge saw.
  double judgeMix(TemplateMix &mix);

private:
  /// Whether `each` can hold the model in microbatches of that size.
  bool addEqual(TemplateSearch &search, const ClassCounts &each, int64_t size,
                int64_t replicas, TemplateMix &mixes);
  void addEqualReplicas(TemplateSearch &search, const ClassCounts &each,
                        int64_t replicas, TemplateMix &mixes);
  bool mayMakeBatch(const TemplateMix &mix) const;
  bool runMixes(int64_t &replicas);
  MixProblem makeProblem(int64_t replicas) const;
  static bool dropTemplates(MixProblem &problem, std::vector<bool> &isRun,
                            llvm::function_ref<bool(const Template &)> isOut);
  bool runChosen(const TemplateMix &mix, MixProblem &problem,
                 std::vector<bool> &isRun) const;

  Judge &judge;
  const PlanCosts &costs;
  const PlannerOptions &options;
  std::vector<int64_t> sizes;
  ClassCounts available;
  std::vector<Template> pool;
  TemplateMix equalMixes, singleMixes; ///< each is a plan of its own
  std::set<int64_t> mixed; ///< numbers of replicas that mixes were made for
};

} // namespace autohet

#endif
