//===- GroupingSearch.cpp - devices into replicas -------------------------===//

#include "GroupingSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// Finalists of each number of replicas.
static constexpr size_t keptGroupings = 6;
// Moves of a local search: bounded by number, not by time, so that every run
// and every machine finds the same plan.
static constexpr unsigned maxLocalSteps = 40;

GroupingSearch::GroupingSearch(const CostModel &costs,
                               const PlannerOptions &options,
                               ReplicaSearch &replicas, Deadline deadline)
    : costs(costs), options(options), replicas(replicas),
      deadline(std::move(deadline)), classes(costs), slowestLink(never) {
  if (options.microbatch_size)
    sizes = {*options.microbatch_size};
  else
    for (int64_t size = 1;
         size <= std::min(options.global_batch, options.max_microbatch_size);
         ++size)
      if (options.global_batch % size == 0)
        sizes.push_back(size);
  unsigned count = costs.machines().devices().size();
  for (unsigned a = 0; a < count; ++a)
    for (unsigned b = 0; b < count; ++b)
      if (a != b)
        slowestLink =
            std::min(slowestLink, costs.link(a, b).bandwidth_bytes_per_s);
  best.resize(count + 1);
}

std::vector<Grouping> GroupingSearch::run() {
  std::vector<ClassCounts> groups;
  ClassCounts left = classes.counts();
  unsigned number = 0;
  if (enumerate(groups, left, [&](const auto &) {
        return ++number <= options.max_groupings;
      }))
    enumerate(groups, left, [&](const std::vector<ClassCounts> &grouping) {
      consider(grouping);
      return !deadline.isOver();
    });
  else
    searchLocally();
  std::vector<Grouping> all;
  for (const std::vector<Grouping> &some : best)
    all.insert(all.end(), some.begin(), some.end());
  llvm::sort(all, [](const Grouping &a, const Grouping &b) {
    return std::tie(a.estimate_s, a.groups) < std::tie(b.estimate_s, b.groups);
  });
  return all;
}

// Multisets of groups: each group at most the one before, lexicographically.
// Ends, with false, when `visit` says so.
bool GroupingSearch::enumerate(std::vector<ClassCounts> &groups,
                               ClassCounts &left, Visitor visit) {
  bool isAllUsed = llvm::all_of(left, [](unsigned count) { return !count; });
  if (!groups.empty() && (isAllUsed || options.allow_idle) && !visit(groups))
    return false;
  if (isAllUsed)
    return true;
  ClassCounts next = left;
  if (!groups.empty())
    next = std::min(next, groups.back());
  // Counts down through all vectors below `next` that fit into what is left.
  while (true) {
    bool fits = true, isEmpty = true;
    for (size_t index = 0; index < left.size(); ++index) {
      fits &= next[index] <= left[index];
      isEmpty &= next[index] == 0;
    }
    if (isEmpty)
      return true;
    if (fits) {
      groups.push_back(next);
      for (size_t index = 0; index < left.size(); ++index)
        left[index] -= next[index];
      bool isComplete = enumerate(groups, left, visit);
      for (size_t index = 0; index < left.size(); ++index)
        left[index] += next[index];
      groups.pop_back();
      if (!isComplete)
        return false;
    }
    size_t digit = next.size();
    while (next[digit - 1] == 0)
      --digit;
    --next[digit - 1];
    for (; digit < next.size(); ++digit)
      next[digit] = left[digit];
  }
}

void GroupingSearch::searchLocally() {
  unsigned devices = costs.machines().devices().size();
  unsigned most = std::min<int64_t>(devices, options.global_batch);
  // All numbers of replicas are too many for large clusters: halve the count.
  for (unsigned replicas = most; replicas > 0; replicas /= 2)
    improve(balanced(replicas));
  for (unsigned replicas = 3; replicas <= most; replicas *= 2)
    improve(balanced(replicas));
}

// Longest processing time first: the next fastest device to the weakest group.
std::vector<ClassCounts> GroupingSearch::balanced(unsigned replicas) const {
  std::vector<std::pair<double, unsigned>> order; // rate, class
  for (unsigned index = 0; index < classes.size(); ++index)
    for (unsigned device : classes.of(index))
      order.push_back({costs.machines().kindOf(device).flops_per_s, index});
  llvm::sort(order, [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<ClassCounts> groups(replicas, ClassCounts(classes.size()));
  std::vector<double> power(replicas);
  for (auto [rate, index] : order) {
    size_t weakest = llvm::min_element(power) - power.begin();
    ++groups[weakest][index];
    power[weakest] += rate;
  }
  return groups;
}

// First improvement: moves one device to another group or lets it idle.
void GroupingSearch::improve(std::vector<ClassCounts> groups) {
  double current = consider(groups);
  for (unsigned step = 0; step < maxLocalSteps; ++step) {
    bool moved = false;
    for (size_t from = 0; from < groups.size() && !moved; ++from)
      for (unsigned index = 0; index < classes.size() && !moved; ++index) {
        if (!groups[from][index])
          continue;
        for (size_t to = 0; to <= groups.size() && !moved; ++to) {
          if (to == from || (to == groups.size() && !options.allow_idle))
            continue;
          if (deadline.isOver())
            return;
          std::vector<ClassCounts> changed = groups;
          --changed[from][index];
          if (to < groups.size())
            ++changed[to][index];
          if (llvm::all_of(changed[from], [](unsigned n) { return !n; }))
            changed.erase(changed.begin() + from);
          if (changed.empty())
            continue;
          double seconds = consider(changed);
          if (seconds < current) {
            current = seconds;
            groups = std::move(changed);
            moved = true;
          }
        }
      }
    if (!moved)
      return;
  }
}

double GroupingSearch::consider(const std::vector<ClassCounts> &groups) {
  // Each group on its own: groups of equal counts then ask the same question.
  std::vector<std::vector<unsigned>> devices;
  for (const ClassCounts &group : groups)
    devices.push_back(classes.assign(group).front());
  Grouping candidate = {groups, 1, never};
  for (int64_t size : sizes) {
    double seconds = estimate(devices, size);
    if (seconds < candidate.estimate_s) {
      candidate.estimate_s = seconds;
      candidate.microbatch_size = size;
    }
  }
  if (candidate.estimate_s == never)
    return never;
  llvm::sort(candidate.groups);
  std::vector<Grouping> &kept = best[groups.size()];
  if (llvm::any_of(kept, [&](const Grouping &other) {
        return other.groups == candidate.groups;
      }))
    return candidate.estimate_s;
  auto place = llvm::find_if(kept, [&](const Grouping &other) {
    return candidate.estimate_s < other.estimate_s;
  });
  kept.insert(place, candidate);
  if (kept.size() > keptGroupings)
    kept.pop_back();
  return candidate.estimate_s;
}

double GroupingSearch::estimate(llvm::ArrayRef<std::vector<unsigned>> groups,
                                int64_t microbatchSize) {
  if (options.global_batch <
      microbatchSize * static_cast<int64_t>(groups.size()))
    return never;
  BatchProblem problem;
  problem.global_batch = options.global_batch;
  size_t fewestStages = SIZE_MAX;
  for (const std::vector<unsigned> &devices : groups) {
    const ReplicaFront &front =
        replicas.solve(devices, microbatchSize, groups.size(), false);
    if (front.empty())
      return never;
    BatchProblem::ReplicaCost &cost = problem.replicas.emplace_back();
    cost.microbatch_size = microbatchSize;
    for (const ReplicaShape &shape : front)
      cost.lines.push_back({shape.period_s, shape.way_s});
    fewestStages = std::min(fewestStages, front.front().stages.size());
  }
  double seconds = boundBatch(problem);
  if (groups.size() > 1) {
    double others = 1 - 1 / static_cast<double>(groups.size());
    seconds += others * replicas.unitRanges().allParameterBytes() /
               static_cast<double>(fewestStages) / slowestLink;
  }
  return seconds;
}

} // namespace autohet
