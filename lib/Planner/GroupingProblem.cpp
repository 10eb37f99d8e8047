//===- GroupingProblem.cpp - which devices make a replica -----------------===//

#include "autohet/Planner/GroupingProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>

namespace autohet {

std::string GroupingProblem::check() const {
  if (groups < 1 || microbatches < 1)
    return "no groups or no microbatches";
  if (static_cast<int64_t>(groups) > microbatches)
    return "more groups than microbatches";
  if (objective == Objective::SlowestGroup && microbatches % groups)
    return "the groups do not divide the microbatches";
  for (const Kind &kind : kinds)
    if (!(kind.power > 0) || !(kind.memory >= 0) || !std::isfinite(kind.power))
      return "a kind's power must be positive, and its memory known";
  return "";
}

double GroupingProblem::powerOf(llvm::ArrayRef<unsigned> group) const {
  double sum = 0;
  for (auto [kind, count] : llvm::zip_equal(kinds, group))
    sum += kind.power * count;
  return sum;
}

double GroupingProblem::memoryOf(llvm::ArrayRef<unsigned> group) const {
  double sum = 0;
  for (auto [kind, count] : llvm::zip_equal(kinds, group))
    sum += kind.memory * count;
  return sum;
}

static unsigned sizeOf(llvm::ArrayRef<unsigned> group) {
  return std::accumulate(group.begin(), group.end(), 0u);
}

bool GroupingProblem::mayBeGroup(llvm::ArrayRef<unsigned> group) const {
  unsigned size = sizeOf(group);
  return size >= 1 && size <= max_depth && memoryOf(group) >= least_memory;
}

double GroupingProblem::effectivePower(llvm::ArrayRef<unsigned> group) const {
  double each = static_cast<double>(microbatches) / static_cast<double>(groups);
  return powerOf(group) * each / (each + sizeOf(group) - 1);
}

std::string GroupingProblem::verify(const Grouping &grouping) const {
  if (grouping.size() != groups)
    return "there are " + std::to_string(grouping.size()) + " groups";
  ClassCounts used(kinds.size());
  for (auto [number, group] : llvm::enumerate(grouping)) {
    if (group.size() != kinds.size())
      return "group " + std::to_string(number) + " has other kinds";
    if (!mayBeGroup(group))
      return "group " + std::to_string(number) +
             " has no devices, too many, or too little memory";
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      used[kind] += group[kind];
  }
  for (auto [kind, count] : llvm::enumerate(used))
    if (count > kinds[kind].count)
      return "there are only " + std::to_string(kinds[kind].count) +
             " devices of kind " + std::to_string(kind);
  return "";
}

double GroupingProblem::value(const Grouping &grouping) const {
  double sum = 0, least = std::numeric_limits<double>::infinity();
  for (const ClassCounts &group : grouping) {
    double power = effectivePower(group);
    sum += power;
    least = std::min(least, power);
  }
  return objective == Objective::SumOfGroups ? sum : groups * least;
}

// All power, and the smallest groups that there can be: a group that leaves
// devices idle has fewer stages but less power than its even part of all.
double GroupingProblem::bound() const {
  double power = 0;
  for (const Kind &kind : kinds)
    power += kind.power * kind.count;
  return power;
}

size_t GroupingProblem::stateCount() const {
  size_t states = 1;
  for (const Kind &kind : kinds)
    states *= kind.count + 1;
  return states;
}

//===-- Exact -------------------------------------------------------------===//

namespace {

/// Counts of each kind as one number, the first kind fastest.
class CountSpace {
public:
  explicit CountSpace(const GroupingProblem &problem) {
    size_t stride = 1;
    for (const GroupingProblem::Kind &kind : problem.kinds) {
      most.push_back(kind.count);
      strides.push_back(stride);
      stride *= kind.count + 1;
    }
    size = stride;
  }

  ClassCounts at(size_t index) const {
    ClassCounts counts;
    for (unsigned limit : most) {
      counts.push_back(index % (limit + 1));
      index /= limit + 1;
    }
    return counts;
  }
  size_t indexOf(llvm::ArrayRef<unsigned> counts) const {
    size_t index = 0;
    for (auto [count, stride] : llvm::zip_equal(counts, strides))
      index += count * stride;
    return index;
  }

  std::vector<unsigned> most;
  std::vector<size_t> strides;
  size_t size = 1;
};

bool isWithin(llvm::ArrayRef<unsigned> small, llvm::ArrayRef<unsigned> large) {
  for (auto [a, b] : llvm::zip_equal(small, large))
    if (a > b)
      return false;
  return true;
}

/// All that may be a group, by the number of its counts.
struct Candidates {
  std::vector<ClassCounts> counts;
  std::vector<double> power; ///< effective; negative: may be no group

  Candidates(const GroupingProblem &problem, const CountSpace &space) {
    for (size_t index = 0; index < space.size; ++index) {
      counts.push_back(space.at(index));
      power.push_back(problem.mayBeGroup(counts.back())
                          ? problem.effectivePower(counts.back())
                          : -1);
    }
  }
};

/// As many groups of at least `least` as there can be of all devices, up to
/// the number that is wanted: an unbounded knapsack of the smallest such
/// groups.
std::optional<Grouping> coverWith(double least, const GroupingProblem &problem,
                                  const CountSpace &space,
                                  const Candidates &candidates) {
  // Rising numbers: whatever is within a vector comes before it.
  std::vector<size_t> smallest;
  for (size_t index = 0; index < space.size; ++index) {
    if (candidates.power[index] < least)
      continue;
    if (llvm::none_of(smallest, [&](size_t other) {
          return isWithin(candidates.counts[other], candidates.counts[index]);
        }))
      smallest.push_back(index);
  }
  std::vector<unsigned> most(space.size);
  std::vector<size_t> last(space.size, 0); // 0: what a kind's last device adds
  for (size_t index = 1; index < space.size; ++index) {
    const ClassCounts &here = candidates.counts[index];
    for (size_t kind = 0; kind < here.size(); ++kind)
      if (here[kind])
        most[index] = std::max(most[index], most[index - space.strides[kind]]);
    for (size_t group : smallest) {
      if (group > index)
        break;
      if (isWithin(candidates.counts[group], here) &&
          most[index - group] + 1 > most[index]) {
        most[index] = most[index - group] + 1;
        last[index] = group;
      }
    }
  }
  if (most.back() < problem.groups)
    return std::nullopt;
  Grouping grouping;
  for (size_t index = space.size - 1; grouping.size() < problem.groups;) {
    if (last[index]) {
      grouping.push_back(candidates.counts[last[index]]);
      index -= last[index];
      continue;
    }
    const ClassCounts &here = candidates.counts[index];
    for (size_t kind = 0; kind < here.size(); ++kind)
      if (here[kind] && most[index - space.strides[kind]] == most[index]) {
        index -= space.strides[kind];
        break;
      }
  }
  return grouping;
}

std::optional<Grouping> solveSlowest(const GroupingProblem &problem) {
  CountSpace space(problem);
  Candidates candidates(problem, space);
  std::vector<double> values;
  for (double power : candidates.power)
    if (power >= 0)
      values.push_back(power);
  llvm::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::optional<Grouping> best;
  // values[0, low) can be reached, values[high, …) cannot.
  for (size_t low = 0, high = values.size();
       low < high && !problem.deadline.isOver();) {
    size_t middle = low + (high - low) / 2;
    if (auto found = coverWith(values[middle], problem, space, candidates)) {
      best = std::move(found);
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return best;
}

std::optional<Grouping> solveSum(const GroupingProblem &problem) {
  CountSpace space(problem);
  Candidates candidates(problem, space);
  // best[d][state]: d groups of the state's devices; the last one, too.
  std::vector<double> before(space.size, 0);
  std::vector<std::vector<size_t>> choice;
  for (unsigned round = 0; round < problem.groups; ++round) {
    std::vector<double> best(space.size, -1);
    std::vector<size_t> &chosen =
        choice.emplace_back(std::vector<size_t>(space.size, 0));
    if (problem.deadline.isOver())
      return std::nullopt;
    for (size_t index = 0; index < space.size; ++index)
      for (size_t group = 1; group <= index; ++group) {
        if (candidates.power[group] < 0 || before[index - group] < 0 ||
            !isWithin(candidates.counts[group], candidates.counts[index]))
          continue;
        double sum = candidates.power[group] + before[index - group];
        if (sum > best[index]) {
          best[index] = sum;
          chosen[index] = group;
        }
      }
    before = std::move(best);
  }
  if (before.back() < 0)
    return std::nullopt;
  Grouping grouping;
  size_t index = space.size - 1;
  for (unsigned round = problem.groups; round-- > 0;) {
    size_t group = choice[round][index];
    grouping.push_back(candidates.counts[group]);
    index -= group;
  }
  return grouping;
}

} // namespace

std::optional<Grouping> solveGrouping(const GroupingProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  return problem.objective == GroupingProblem::Objective::SumOfGroups
             ? solveSum(problem)
             : solveSlowest(problem);
}

//===-- Many devices ------------------------------------------------------===//

namespace {

/// What a local search climbs: a group that lacks memory lacks everything.
double score(const GroupingProblem &problem, llvm::ArrayRef<unsigned> group) {
  if (problem.mayBeGroup(group))
    return problem.effectivePower(group);
  return problem.memoryOf(group) - problem.least_memory - 1;
}

/// Makes the worst group better: a device that lies idle, or one of another
/// group in exchange for one of its own or for none.
class Improver {
public:
  Improver(const GroupingProblem &problem, Grouping grouping)
      : problem(problem), grouping(std::move(grouping)) {
    for (const GroupingProblem::Kind &kind : problem.kinds)
      idle.push_back(kind.count);
    for (const ClassCounts &group : this->grouping)
      for (size_t kind = 0; kind < idle.size(); ++kind)
        idle[kind] -= group[kind];
  }

  Grouping run() {
    constexpr unsigned stepsOfGroup = 4;
    for (unsigned left = stepsOfGroup * problem.groups;
         left && !problem.deadline.isOver() && step(); --left)
      ;
    return std::move(grouping);
  }

private:
  bool isSum() const {
    return problem.objective == GroupingProblem::Objective::SumOfGroups;
  }

  // Of two groups, before and after: whether the move helps.
  bool helps(double one, double other, double oneAfter,
             double otherAfter) const {
    constexpr double least = 1e-9;
    double before = std::min(one, other),
           after = std::min(oneAfter, otherAfter);
    if (isSum() && before >= 0 && after >= 0)
      return oneAfter + otherAfter > (one + other) * (1 + least);
    return after > before + std::abs(before) * least;
  }

  /// Takes `out` of `from` (or none) and puts `in` of `to` into it.
  bool exchange(ClassCounts &one, ClassCounts &other, int out, int in) {
    ClassCounts oneAfter = one, otherAfter = other;
    if (out >= 0)
      --oneAfter[out], ++otherAfter[out];
    if (in >= 0)
      ++oneAfter[in], --otherAfter[in];
    if (!helps(score(problem, one), score(problem, other),
               score(problem, oneAfter), score(problem, otherAfter)))
      return false;
    one = std::move(oneAfter);
    other = std::move(otherAfter);
    return true;
  }

  bool withIdle(ClassCounts &group, int out, int in) {
    ClassCounts after = group;
    if (out >= 0)
      --after[out];
    if (in >= 0)
      ++after[in];
    double before = score(problem, group);
    if (score(problem, after) <= before + std::abs(before) * 1e-9)
      return false;
    if (out >= 0)
      ++idle[out];
    if (in >= 0)
      --idle[in];
    group = std::move(after);
    return true;
  }

  /// The worst group first. Of hundreds of groups few are unlike.
  void sort() {
    std::map<ClassCounts, size_t> unlike;
    for (const ClassCounts &group : grouping)
      ++unlike[group];
    std::vector<std::pair<double, const ClassCounts *>> order;
    for (const auto &[group, count] : unlike)
      order.push_back({score(problem, group), &group});
    llvm::sort(order, [](const auto &a, const auto &b) {
      return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
    });
    size_t place = 0;
    for (const auto &[value, group] : order)
      for (size_t i = 0; i < unlike[*group]; ++i)
        grouping[place++] = *group;
  }

  bool step() {
    int kinds = static_cast<int>(idle.size());
    sort();
    // Equal groups are one case.
    for (size_t g = 0; g < grouping.size(); ++g) {
      if (g && grouping[g] == grouping[g - 1])
        continue;
      for (int out = -1; out < kinds; ++out) {
        if (out >= 0 && !grouping[g][out])
          continue;
        for (int in = -1; in < kinds; ++in) {
          if (in == out)
            continue;
          if ((in < 0 || idle[in]) && withIdle(grouping[g], out, in))
            return true;
          for (size_t h = 0; h < grouping.size(); ++h)
            if (h != g && (in < 0 || grouping[h][in]) &&
                (h + 1 == grouping.size() || h + 1 == g ||
                 grouping[h] != grouping[h + 1]) &&
                exchange(grouping[g], grouping[h], out, in))
              return true;
        }
      }
      if (!isSum())
        return false; // only the slowest group counts
    }
    return false;
  }

  const GroupingProblem &problem;
  Grouping grouping;
  ClassCounts idle;
};

} // namespace

std::optional<Grouping> improveGrouping(const GroupingProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  // Even parts of every kind first, the rest to whoever has least.
  Grouping grouping(problem.groups, ClassCounts(problem.kinds.size()));
  std::vector<size_t> order(problem.kinds.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::make_pair(-problem.kinds[a].power, a) <
           std::make_pair(-problem.kinds[b].power, b);
  });
  for (size_t kind : order) {
    unsigned rest = problem.kinds[kind].count % problem.groups;
    for (ClassCounts &group : grouping)
      group[kind] = problem.kinds[kind].count / problem.groups;
    llvm::sort(grouping, [&](const ClassCounts &a, const ClassCounts &b) {
      return std::make_pair(problem.powerOf(a), a) <
             std::make_pair(problem.powerOf(b), b);
    });
    for (unsigned i = 0; i < rest; ++i)
      ++grouping[i][kind];
  }
  for (ClassCounts &group : grouping)
    while (sizeOf(group) > problem.max_depth)
      for (size_t kind : llvm::reverse(order))
        if (group[kind]) {
          --group[kind];
          break;
        }
  grouping = Improver(problem, std::move(grouping)).run();
  if (!problem.verify(grouping).empty())
    return std::nullopt;
  return grouping;
}

std::optional<Grouping> findGrouping(const GroupingProblem &problem) {
  // Exact solvers look at pairs of these.
  constexpr size_t manyStates = 400;
  return problem.stateCount() <= manyStates ? solveGrouping(problem)
                                            : improveGrouping(problem);
}

//===-- Brute force -------------------------------------------------------===//

namespace {

// Groups by falling counts, so that each set of groups is met once.
void tryAllGroupings(const GroupingProblem &problem, ClassCounts &left,
                     Grouping &grouping, std::optional<Grouping> &best,
                     double &bestValue) {
  if (grouping.size() == problem.groups) {
    double value = problem.value(grouping);
    if (!best || value > bestValue) {
      best = grouping;
      bestValue = value;
    }
    return;
  }
  ClassCounts group(left.size());
  while (true) {
    size_t digit = 0;
    while (digit < group.size() && group[digit] == left[digit])
      group[digit++] = 0;
    if (digit == group.size())
      return;
    ++group[digit];
    if (!problem.mayBeGroup(group) ||
        (!grouping.empty() && grouping.back() < group))
      continue;
    for (size_t kind = 0; kind < group.size(); ++kind)
      left[kind] -= group[kind];
    grouping.push_back(group);
    tryAllGroupings(problem, left, grouping, best, bestValue);
    grouping.pop_back();
    for (size_t kind = 0; kind < group.size(); ++kind)
      left[kind] += group[kind];
  }
}

} // namespace

std::optional<Grouping>
solveGroupingByBruteForce(const GroupingProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  ClassCounts left;
  for (const GroupingProblem::Kind &kind : problem.kinds)
    left.push_back(kind.count);
  Grouping grouping;
  std::optional<Grouping> best;
  double bestValue = 0;
  tryAllGroupings(problem, left, grouping, best, bestValue);
  return best;
}

} // namespace autohet
