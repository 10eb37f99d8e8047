//===- GroupingSearch.h - devices into replicas -----------------*- C++ -*-===//

#ifndef AUTOHET_LIB_PLANNER_GROUPINGSEARCH_H
#define AUTOHET_LIB_PLANNER_GROUPINGSEARCH_H

#include "DeviceClasses.h"
#include "ReplicaSearch.h"
#include "autohet/Planner/Planner.h"

namespace autohet {

/// A way to group devices, with the microbatch size that suits it best.
struct Grouping {
  std::vector<ClassCounts> groups;
  int64_t microbatch_size = 1;
  double estimate_s = 0;
};

/// Looks at all groupings of the devices (some left idle, where allowed) if
/// there are at most `max_groupings`, else searches locally from balanced ones.
/// Returns the best few of each number of replicas, by closed forms: estimates
/// of replicas that a real search compares exactly.
class GroupingSearch {
public:
  GroupingSearch(const CostModel &costs, const PlannerOptions &options,
                 ReplicaSearch &replicas, Deadline deadline);

  std::vector<Grouping> run();
  const DeviceClasses &deviceClasses() const { return classes; }
  llvm::ArrayRef<int64_t> microbatchSizes() const { return sizes; }

private:
  using Visitor = llvm::function_ref<bool(const std::vector<ClassCounts> &)>;
  bool enumerate(std::vector<ClassCounts> &groups, ClassCounts &left,
                 Visitor visit);
  void searchLocally();
  std::vector<ClassCounts> balanced(unsigned replicas) const;
  void improve(std::vector<ClassCounts> groups);
  /// Seconds of the grouping at its best microbatch size; infinite if nothing
  /// fits. Remembers good ones.
  double consider(const std::vector<ClassCounts> &groups);
  double estimate(llvm::ArrayRef<std::vector<unsigned>> groups,
                  int64_t microbatchSize);

  const CostModel &costs;
  const PlannerOptions &options;
  ReplicaSearch &replicas;
  Deadline deadline;
  DeviceClasses classes;
  std::vector<int64_t> sizes;
  double slowestLink;                      ///< bytes a second
  std::vector<std::vector<Grouping>> best; ///< of each number of replicas
};

} // namespace autohet

#endif
