//===- BatchProblem.cpp - how many microbatches each replica takes --------===//

#include "autohet/Planner/BatchProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();

double BatchProblem::ReplicaCost::seconds(int64_t microbatches) const {
  double best = never;
  for (const Line &line : lines)
    best = std::min(best, line.way_s + static_cast<double>(microbatches - 1) *
                                           line.period_s);
  return best;
}

double BatchProblem::ReplicaCost::microbatchesWithin(double limit_s) const {
  double most = 0;
  for (const Line &line : lines)
    if (line.way_s <= limit_s)
      most = std::max(most, line.period_s > 0
                                ? 1 + (limit_s - line.way_s) / line.period_s
                                : never);
  return most;
}

std::string BatchProblem::check() const {
  if (global_batch < 1)
    return "no batch";
  if (replicas.empty())
    return "no replicas";
  for (const ReplicaCost &replica : replicas) {
    if (replica.microbatch_size < 1 || replica.lines.empty())
      return "a replica has no microbatch size or no cost";
    for (const Line &line : replica.lines)
      if (!std::isfinite(line.period_s) || !std::isfinite(line.way_s) ||
          line.period_s < 0 || line.way_s < 0)
        return "a time is negative or not finite";
  }
  return "";
}

std::string BatchProblem::verify(llvm::ArrayRef<int64_t> counts) const {
  if (counts.size() != replicas.size())
    return "one count a replica is needed";
  int64_t sum = 0;
  for (auto [count, replica] : llvm::zip_equal(counts, replicas)) {
    if (count < 1)
      return "a replica has no microbatch";
    sum += count * replica.microbatch_size;
  }
  return sum == global_batch ? "" : "the counts do not add up to the batch";
}

double BatchProblem::objective(llvm::ArrayRef<int64_t> counts) const {
  double last = 0;
  for (auto [count, replica] : llvm::zip_equal(counts, replicas))
    last = std::max(last, replica.seconds(count));
  return last;
}

//===-- Solvers
//------------------------------------------------------------===//

/// Most whole microbatches within `limit_s`, but at least one.
static int64_t countWithin(const BatchProblem::ReplicaCost &replica,
                           double limit_s, int64_t most) {
  double count =
      std::min(replica.microbatchesWithin(limit_s), static_cast<double>(most));
  return std::max<int64_t>(1, static_cast<int64_t>(count));
}

// Equal sizes: each microbatch goes to the replica that is then done first. By
// exchange no other order ends earlier, since costs only grow with counts. All
// but the last few of them are given at once, at a time before the end.
static BatchCounts solveEqualSizes(const BatchProblem &problem, int64_t total) {
  double low = 0, high = 1e-9;
  auto countsWithin = [&](double limit, BatchCounts &counts) {
    counts.clear();
    int64_t sum = 0;
    for (const BatchProblem::ReplicaCost &replica : problem.replicas)
      sum += counts.emplace_back(countWithin(replica, limit, total));
    return sum;
  };
  BatchCounts counts;
  while (countsWithin(high, counts) < total)
    high *= 2;
  for (int round = 0; round < 60; ++round) {
    double middle = (low + high) / 2;
    (countsWithin(middle, counts) < total ? low : high) = middle;
  }
  int64_t left = total - countsWithin(low, counts);
  for (; left > 0; --left) {
    size_t chosen = 0;
    double chosenEnd = never;
    for (auto [index, replica] : llvm::enumerate(problem.replicas)) {
      double end = replica.seconds(counts[index] + 1);
      if (end < chosenEnd) {
        chosen = index;
        chosenEnd = end;
      }
    }
    ++counts[chosen];
  }
  // Where the first microbatches alone are more than what is given: never, as
  // the caller has checked, and nothing was given too much.
  assert(left == 0 && "counts before the end exceed the batch");
  return counts;
}

// Sizes that divide one another or hardly any replicas: fill up to a time, then
// take back what is too much, the latest ends first.
static std::optional<BatchCounts> solveManySizes(const BatchProblem &problem) {
  double low = 0, high = 1e-9;
  BatchCounts counts;
  auto samplesWithin = [&](double limit) {
    counts.clear();
    int64_t sum = 0;
    for (const BatchProblem::ReplicaCost &replica : problem.replicas)
      sum += replica.microbatch_size *
             counts.emplace_back(
                 countWithin(replica, limit, problem.global_batch));
    return sum;
  };
  if (samplesWithin(0) > problem.global_batch)
    return std::nullopt;
  while (samplesWithin(high) < problem.global_batch)
    high *= 2;
  for (int round = 0; round < 60; ++round) {
    double middle = (low + high) / 2;
    (samplesWithin(middle) < problem.global_batch ? low : high) = middle;
  }
  int64_t excess = samplesWithin(high) - problem.global_batch;
  while (excess > 0) {
    std::optional<size_t> chosen;
    for (auto [index, replica] : llvm::enumerate(problem.replicas)) {
      if (counts[index] < 2 || replica.microbatch_size > excess)
        continue;
      auto rank = [&](size_t i) {
        return std::make_pair(problem.replicas[i].microbatch_size,
                              problem.replicas[i].seconds(counts[i]));
      };
      if (!chosen || rank(index) > rank(*chosen))
        chosen = index;
    }
    if (!chosen)
      return std::nullopt;
    --counts[*chosen];
    excess -= problem.replicas[*chosen].microbatch_size;
  }
  return counts;
}

// Above so many steps the exact dynamic program gives way.
static constexpr double maxProgramSteps = 2e7;

std::optional<BatchCounts> solveBatch(const BatchProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  int64_t unit = 0;
  bool isEqual = true;
  for (const auto &replica : problem.replicas) {
    unit = std::gcd(unit, replica.microbatch_size);
    isEqual &= replica.microbatch_size == problem.replicas[0].microbatch_size;
  }
  if (problem.global_batch % unit)
    return std::nullopt;
  size_t total = problem.global_batch / unit, count = problem.replicas.size();
  if (isEqual) {
    if (total < count)
      return std::nullopt;
    return solveEqualSizes(problem, total);
  }

  int64_t smallest = problem.global_batch;
  for (const auto &replica : problem.replicas)
    smallest = std::min(smallest, replica.microbatch_size);
  double steps = static_cast<double>(count) * static_cast<double>(total) *
                 static_cast<double>(problem.global_batch / smallest);
  if (steps > maxProgramSteps)
    return solveManySizes(problem);

  // best[r][x]: the earliest end of the first r replicas with x units of batch.
  std::vector<std::vector<double>> best(count + 1,
                                        std::vector<double>(total + 1, never));
  std::vector<std::vector<int64_t>> choice(count,
                                           std::vector<int64_t>(total + 1));
  best[0][0] = 0;
  for (size_t r = 0; r < count; ++r) {
    size_t size = problem.replicas[r].microbatch_size / unit;
    std::vector<double> ends = {never};
    for (size_t taken = 1; taken * size <= total; ++taken)
      ends.push_back(problem.replicas[r].seconds(taken));
    for (size_t x = size; x <= total; ++x)
      for (size_t taken = 1; taken * size <= x; ++taken) {
        double end = std::max(best[r][x - taken * size], ends[taken]);
        if (end < best[r + 1][x]) {
          best[r + 1][x] = end;
          choice[r][x] = taken;
        }
      }
  }
  if (best[count][total] == never)
    return std::nullopt;
  BatchCounts counts(count);
  for (size_t r = count, x = total; r-- > 0;) {
    counts[r] = choice[r][x];
    x -= counts[r] * (problem.replicas[r].microbatch_size / unit);
  }
  return counts;
}

static void tryAllCounts(const BatchProblem &problem, int64_t left,
                         BatchCounts &counts, std::optional<BatchCounts> &best,
                         double &bestSeconds) {
  if (counts.size() == problem.replicas.size()) {
    if (left)
      return;
    double seconds = problem.objective(counts);
    if (!best || seconds < bestSeconds) {
      best = counts;
      bestSeconds = seconds;
    }
    return;
  }
  int64_t size = problem.replicas[counts.size()].microbatch_size;
  for (int64_t count = 1; count * size <= left; ++count) {
    counts.push_back(count);
    tryAllCounts(problem, left - count * size, counts, best, bestSeconds);
    counts.pop_back();
  }
}

std::optional<BatchCounts> solveBatchByBruteForce(const BatchProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  BatchCounts counts;
  std::optional<BatchCounts> best;
  double bestSeconds = 0;
  tryAllCounts(problem, problem.global_batch, counts, best, bestSeconds);
  return best;
}

double boundBatch(const BatchProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  // Each replica has at least one microbatch; then bisect the common end.
  double low = 0;
  for (const auto &replica : problem.replicas)
    low = std::max(low, replica.seconds(1));
  auto samplesWithin = [&](double limit) {
    double samples = 0;
    for (const auto &replica : problem.replicas)
      samples += replica.microbatchesWithin(limit) *
                 static_cast<double>(replica.microbatch_size);
    return samples;
  };
  double wanted = static_cast<double>(problem.global_batch);
  if (samplesWithin(low) >= wanted)
    return low;
  double high = std::max(low, 1e-9);
  while (samplesWithin(high) < wanted)
    high *= 2;
  // `low` never has room for the whole batch, so it stays a bound.
  for (int round = 0; round < 30; ++round) {
    double middle = (low + high) / 2;
    (samplesWithin(middle) < wanted ? low : high) = middle;
  }
  return low;
}

} // namespace autohet
