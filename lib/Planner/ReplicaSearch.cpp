//===- ReplicaSearch.cpp - the best pipelines of a set of devices ---------===//

#include "ReplicaSearch.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace autohet {

// All orders of more stages than this are too many even without repetitions.
static constexpr size_t maxPermutedRows = 4;
// How much longer a way may be for one partial solution to stand for another.
static constexpr double coarse = 0.02, fine = 0.002;

ReplicaSearch::Row
ReplicaSearch::makeRow(llvm::ArrayRef<unsigned> devices) const {
  Row row;
  row.devices.assign(devices.begin(), devices.end());
  double slowest = std::numeric_limits<double>::infinity();
  for (unsigned device : devices) {
    const DeviceKind &kind = costs.machines().kindOf(device);
    row.rate += kind.flops_per_s;
    row.memory += kind.memory_bytes;
    slowest = std::min(slowest, kind.flops_per_s);
  }
  // Shares by speed, in quarters of the slowest device's.
  int64_t divisor = 0;
  for (unsigned device : devices) {
    double ratio = costs.machines().kindOf(device).flops_per_s / slowest;
    row.weights.push_back(std::llround(4 * ratio));
    divisor = std::gcd(divisor, row.weights.back());
  }
  for (int64_t &weight : row.weights)
    weight /= divisor;
  return row;
}

// Tensor parallelism exchanges data in every unit, so only devices of one node
// share a stage: none, or 2, 4, 8, … of each node, the last group being what is
// left (three devices at two make a pair and a single one).
std::vector<ReplicaSearch::Rows>
ReplicaSearch::rowChoices(llvm::ArrayRef<unsigned> devices) const {
  std::map<unsigned, std::vector<unsigned>> byNode;
  size_t most = 0;
  for (unsigned device : devices) {
    std::vector<unsigned> &node =
        byNode[costs.machines().devices()[device].node];
    node.push_back(device);
    most = std::max(most, node.size());
  }
  // Neighbours in a stage should be alike.
  for (auto &[node, members] : byNode)
    llvm::sort(members, [&](unsigned a, unsigned b) {
      double rateA = costs.machines().kindOf(a).flops_per_s;
      double rateB = costs.machines().kindOf(b).flops_per_s;
      return rateA != rateB ? rateA > rateB : a < b;
    });
  std::vector<Rows> choices;
  for (size_t width = 1; width < 2 * most; width *= 2) {
    Rows &rows = choices.emplace_back();
    for (auto &[node, members] : byNode)
      for (llvm::ArrayRef<unsigned> left = members; !left.empty();) {
        size_t taken = std::min(width, left.size());
        rows.push_back(makeRow(left.take_front(taken)));
        left = left.drop_front(taken);
      }
  }
  return choices;
}

std::vector<ReplicaSearch::Rows> ReplicaSearch::orders(const Rows &rows,
                                                       bool thorough) const {
  // Rows of equal rate and memory are the same row to the solver.
  auto key = [](const Row &row) {
    return std::make_pair(row.rate, row.memory);
  };
  Rows sorted = rows;
  llvm::sort(sorted, [&](const Row &a, const Row &b) {
    return std::make_pair(key(a), a.devices) <
           std::make_pair(key(b), b.devices);
  });
  auto isBefore = [&](const Row &a, const Row &b) { return key(a) < key(b); };

  std::vector<Rows> result = {sorted};
  if (thorough && rows.size() <= maxPermutedRows) {
    while (std::next_permutation(sorted.begin(), sorted.end(), isBefore))
      result.push_back(sorted);
    return result;
  }
  // Slow first: early stages hold most microbatches, slow ones few units each.
  // Else fast first, or large memories first.
  if (isBefore(sorted.front(), sorted.back())) {
    result.emplace_back(sorted.rbegin(), sorted.rend());
    Rows large = sorted;
    llvm::sort(large, [](const Row &a, const Row &b) {
      return std::make_tuple(-a.memory, a.rate, a.devices) <
             std::make_tuple(-b.memory, b.rate, b.devices);
    });
    result.push_back(std::move(large));
  }
  return result;
}

void ReplicaSearch::cut(const Rows &rows, int64_t microbatchSize,
                        unsigned replicas, double tolerance,
                        ReplicaFront &front) const {
  StageProblem problem;
  problem.tolerance = tolerance;
  problem.unit_count = ranges.unitCount();
  if (rows.size() > problem.unit_count)
    return;
  double samples = static_cast<double>(microbatchSize);
  for (auto [index, row] : llvm::enumerate(rows)) {
    std::vector<double> &seconds = problem.seconds.emplace_back();
    for (unsigned unit = 0; unit < problem.unit_count; ++unit)
      seconds.push_back(
          costs.unitSeconds(unit, row.devices, row.weights, microbatchSize)
              .total());
    problem.in_flight.push_back(costs.hasBackward() ? rows.size() - index : 0);
    double smallest = std::numeric_limits<double>::infinity();
    for (unsigned device : row.devices)
      smallest =
          std::min(smallest, costs.machines().kindOf(device).memory_bytes);
    problem.memory_limits.push_back(smallest * memoryFraction);
    if (index + 1 == rows.size())
      continue;
    const Row &next = rows[index + 1];
    Link there = costs.groupLink(row.devices, next.devices);
    Link back = costs.groupLink(next.devices, row.devices);
    std::vector<PassSeconds> &transfers = problem.transfers.emplace_back();
    for (unsigned cut = 0; cut < problem.unit_count; ++cut) {
      double bytes = ranges.crossingBytes(cut) * samples;
      transfers.push_back({there.seconds(bytes),
                           costs.hasBackward() ? back.seconds(bytes) : 0});
    }
  }
  std::vector<double> largestShare;
  for (const Row &row : rows)
    largestShare.push_back(*llvm::max_element(sharesOf(row.weights)));
  double owned = sharesState && replicas > 1 ? 0 : 1.0 / replicas;
  problem.memory = [&](unsigned worker, unsigned begin, unsigned end) {
    int64_t inFlight =
        costs.hasBackward() ? rows.size() - worker : kForwardOnlyInFlight;
    return ranges
        .memory(begin, end, largestShare[worker], microbatchSize, owned)
        .bytes(inFlight);
  };

  for (StageFrontEntry &entry : solveStageFront(problem)) {
    ReplicaShape &shape = front.emplace_back();
    shape.period_s = entry.period_s;
    shape.way_s = costs.planObjective() == PlanObjective::Throughput
                      ? entry.period_s
                      : entry.way_s;
    unsigned begin = 0;
    for (auto [row, end] : llvm::zip_equal(rows, entry.cuts)) {
      ResolvedStage &stage = shape.stages.emplace_back();
      for (; begin < end; ++begin)
        stage.units.push_back(begin);
      stage.devices = row.devices;
      stage.weights = row.weights;
    }
  }
}

const ReplicaFront &ReplicaSearch::solve(std::vector<unsigned> devices,
                                         int64_t microbatchSize,
                                         unsigned replicas, bool thorough) {
  auto [place, isNew] =
      known.try_emplace({devices, microbatchSize, replicas, thorough});
  ReplicaFront &front = place->second;
  if (!isNew)
    return front;
  for (const Rows &rows : rowChoices(devices))
    for (const Rows &order : orders(rows, thorough))
      cut(order, microbatchSize, replicas, thorough ? fine : coarse, front);

  // Of all orders' shapes only undominated ones; the first among equal ones.
  std::vector<unsigned> rank(front.size());
  std::iota(rank.begin(), rank.end(), 0);
  llvm::sort(rank, [&](unsigned a, unsigned b) {
    return std::make_tuple(front[a].period_s, front[a].way_s, a) <
           std::make_tuple(front[b].period_s, front[b].way_s, b);
  });
  ReplicaFront kept;
  for (unsigned index : rank)
    if (kept.empty() || front[index].way_s < kept.back().way_s)
      kept.push_back(std::move(front[index]));
  front = std::move(kept);
  return front;
}

} // namespace autohet
