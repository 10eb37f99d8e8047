//===- ShardedBatchProblem.cpp - batch and state of each device -----------===//

#include "autohet/Planner/ShardedBatchProblem.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// Even shards are the quicker ones: kept below this fullness.
static constexpr double evenFullness = 0.5;

using Share = ShardedBatch::Share;

std::string ShardedBatchProblem::check() const {
  if (devices.empty())
    return "no devices";
  if (global_batch < static_cast<int64_t>(devices.size()))
    return "fewer samples than devices";
  for (const Device &device : devices)
    if (!device.forward_s || !device.backward_s || !device.compute_bytes)
      return "a device without a profile";
  return "";
}

// The largest size that needs no more than `room`.
static int64_t largestWithin(const ShardedBatchProblem &problem,
                             unsigned device, double room) {
  int64_t low = 0,
          high =
              std::min(problem.max_microbatch_size, problem.global_batch) + 1;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (problem.devices[device].compute_bytes(middle) <= room ? low : high) =
        middle;
  }
  return low;
}

int64_t ShardedBatchProblem::limit(unsigned device) const {
  return largestWithin(*this, device, usable * devices[device].capacity_bytes);
}

int64_t ShardedBatchProblem::evenLimit(unsigned device) const {
  return largestWithin(*this, device,
                       usable * devices[device].capacity_bytes -
                           state_bytes / static_cast<double>(devices.size()));
}

double ShardedBatchProblem::seconds(unsigned device, int64_t size,
                                    int64_t count) const {
  double number = static_cast<double>(count);
  double forward = number * devices[device].forward_s(size);
  double backward =
      number * devices[device].backward_s(size) + (number - 1) * switch_s;
  double factor = size > evenLimit(device) ? uneven_factor : 1;
  return std::max(factor * gather_s, forward) +
         std::max(factor * (gather_s + scatter_s),
                  backward + (computes_forward_twice ? forward : 0));
}

static double memoryOf(const ShardedBatchProblem &problem,
                       llvm::ArrayRef<Share> shares) {
  double bytes = problem.state_bytes;
  for (auto [device, share] : llvm::zip_equal(problem.devices, shares))
    bytes += device.compute_bytes(share.microbatch_size);
  return bytes;
}

static double roomOf(const ShardedBatchProblem &problem) {
  double bytes = 0;
  for (const ShardedBatchProblem::Device &device : problem.devices)
    bytes += device.capacity_bytes;
  return problem.usable * bytes;
}

std::string verifyShardedBatch(const ShardedBatchProblem &problem,
                               const ShardedBatch &batch) {
  if (batch.shares.size() != problem.devices.size())
    return "not one share a device";
  int64_t samples = 0;
  for (auto [device, share] : llvm::enumerate(batch.shares)) {
    if (share.microbatch_size < 1 || share.microbatches < 1)
      return "device " + std::to_string(device) + " has no samples";
    if (share.microbatch_size > problem.limit(device))
      return "device " + std::to_string(device) + " lacks memory";
    samples += share.samples();
  }
  if (samples != problem.global_batch)
    return "the shares make " + std::to_string(samples) + " samples";
  return memoryOf(problem, batch.shares) < roomOf(problem)
             ? ""
             : "the devices together lack memory";
}

//===-- Exact -------------------------------------------------------------===//

namespace {

/// How a device may compute so many samples: quicker ways need more memory.
struct Way {
  double seconds = 0, bytes = 0;
  Share share;
};

class ShardedBatchSolver {
public:
  explicit ShardedBatchSolver(const ShardedBatchProblem &problem)
      : problem(problem) {
    for (unsigned device = 0; device < problem.devices.size(); ++device)
      ways.push_back(waysOf(device));
  }

  // The shortest limit under which the batch can be made in the memory that
  // there is.
  std::optional<ShardedBatch> run() {
    std::vector<double> limits;
    for (const auto &ofDevice : ways)
      for (const std::vector<Way> &ofSamples : ofDevice)
        for (const Way &way : ofSamples)
          limits.push_back(way.seconds);
    llvm::sort(limits);
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    std::optional<ShardedBatch> best;
    for (size_t low = 0, high = limits.size();
         low < high && !problem.deadline.isOver();) {
      size_t middle = low + (high - low) / 2;
      if (auto found = solveWithin(limits[middle])) {
        best = std::move(found);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return best;
  }

private:
  // [samples]
  std::vector<std::vector<Way>> waysOf(unsigned device) const {
    int64_t most =
        problem.global_batch - static_cast<int64_t>(problem.devices.size()) + 1;
    std::vector<std::vector<Way>> result(most + 1);
    int64_t largest = std::min(most, problem.limit(device));
    for (int64_t size = 1; size <= largest; ++size)
      for (int64_t count = 1; size * count <= most; ++count)
        result[size * count].push_back(
            {problem.seconds(device, size, count),
             problem.devices[device].compute_bytes(size),
             {size, count}});
    return result;
  }

  // least[samples]: bytes of the devices so far.
  std::optional<ShardedBatch> solveWithin(double limit) const {
    int64_t batch = problem.global_batch;
    std::vector<double> least(batch + 1, never);
    least[0] = 0;
    std::vector<std::vector<Share>> chosen;
    for (const std::vector<std::vector<Way>> &ofDevice : ways) {
      if (problem.deadline.isOver())
        return std::nullopt;
      std::vector<double> next(batch + 1, never);
      std::vector<Share> &shares =
          chosen.emplace_back(std::vector<Share>(batch + 1));
      for (int64_t own = 1; own < static_cast<int64_t>(ofDevice.size());
           ++own) {
        const Way *smallest = nullptr;
        for (const Way &way : ofDevice[own])
          if (way.seconds <= limit &&
              (!smallest || way.bytes < smallest->bytes))
            smallest = &way;
        if (!smallest)
          continue;
        for (int64_t before = 0; before + own <= batch; ++before)
          if (least[before] + smallest->bytes < next[before + own]) {
            next[before + own] = least[before] + smallest->bytes;
            shares[before + own] = smallest->share;
          }
      }
      least = std::move(next);
    }
    if (!(least[batch] + problem.state_bytes < roomOf(problem)))
      return std::nullopt;
    ShardedBatch result;
    for (size_t device = ways.size(); device-- > 0;) {
      Share share = chosen[device][batch];
      batch -= share.samples();
      result.shares.insert(result.shares.begin(), share);
      result.seconds = std::max(
          result.seconds,
          problem.seconds(device, share.microbatch_size, share.microbatches));
    }
    result.memory_bytes = memoryOf(problem, result.shares);
    return result;
  }

  const ShardedBatchProblem &problem;
  std::vector<std::vector<std::vector<Way>>> ways; ///< [device][samples]
};

} // namespace

std::optional<ShardedBatch>
solveShardedBatch(const ShardedBatchProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  return ShardedBatchSolver(problem).run();
}

//===-- Brute force -------------------------------------------------------===//

namespace {

void tryAllShares(const ShardedBatchProblem &problem, int64_t left,
                  ShardedBatch &batch, std::optional<ShardedBatch> &best) {
  unsigned device = batch.shares.size();
  if (device == problem.devices.size()) {
    if (left || !verifyShardedBatch(problem, batch).empty())
      return;
    batch.seconds = 0;
    for (auto [index, share] : llvm::enumerate(batch.shares))
      batch.seconds =
          std::max(batch.seconds, problem.seconds(index, share.microbatch_size,
                                                  share.microbatches));
    batch.memory_bytes = memoryOf(problem, batch.shares);
    if (!best || std::make_pair(batch.seconds, batch.memory_bytes) <
                     std::make_pair(best->seconds, best->memory_bytes))
      best = batch;
    return;
  }
  for (int64_t size = 1; size <= left; ++size)
    for (int64_t count = 1; size * count <= left; ++count) {
      batch.shares.push_back({size, count});
      tryAllShares(problem, left - size * count, batch, best);
      batch.shares.pop_back();
    }
}

} // namespace

std::optional<ShardedBatch>
solveShardedBatchByBruteForce(const ShardedBatchProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  ShardedBatch batch;
  std::optional<ShardedBatch> best;
  tryAllShares(problem, problem.global_batch, batch, best);
  return best;
}

//===-- State -------------------------------------------------------------===//

namespace {

/// Pours `amount` into vessels so that all that get some stand equally full:
/// `filled` of `capacity` before, at most `limit` of it after.
bool pour(double amount, llvm::ArrayRef<double> filled,
          llvm::ArrayRef<double> capacity, double limit,
          llvm::MutableArrayRef<double> poured) {
  auto pouredAt = [&](double level) {
    double sum = 0;
    for (size_t i = 0; i < filled.size(); ++i) {
      poured[i] = std::max(0.0, level * capacity[i] - filled[i]);
      sum += poured[i];
    }
    return sum;
  };
  constexpr double tolerance = 1e-12;
  if (pouredAt(limit) < amount * (1 - tolerance))
    return false;
  double low = 0, high = limit;
  for (int round = 0; round < 100; ++round) {
    double middle = (low + high) / 2;
    (pouredAt(middle) < amount ? low : high) = middle;
  }
  double scale = amount / pouredAt(high);
  for (double &part : poured)
    part *= scale;
  return true;
}

} // namespace

std::optional<std::vector<double>>
splitState(const ShardedBatchProblem &problem, const ShardedBatch &batch,
           StateSplit how) {
  size_t count = problem.devices.size();
  double even = problem.state_bytes / static_cast<double>(count);
  std::vector<double> compute, capacity;
  double fullest = 0;
  for (auto [device, share] : llvm::zip_equal(problem.devices, batch.shares)) {
    compute.push_back(device.compute_bytes(share.microbatch_size));
    capacity.push_back(device.capacity_bytes);
    fullest =
        std::max(fullest, (compute.back() + even) / device.capacity_bytes);
  }
  std::vector<double> held(count, even);
  auto asParts = [&] {
    for (double &bytes : held)
      bytes /= problem.state_bytes > 0 ? problem.state_bytes : 1;
    return held;
  };
  double enough = how == StateSplit::LeastMoved ? problem.usable : evenFullness;
  if (fullest <= enough || problem.state_bytes <= 0)
    return asParts();
  if (how == StateSplit::EqualFullness) {
    if (!pour(problem.state_bytes, compute, capacity, problem.usable, held))
      return std::nullopt;
    return asParts();
  }
  // What is too much goes where there is room.
  double excess = 0;
  std::vector<double> filled = compute;
  for (size_t i = 0; i < count; ++i) {
    double room = problem.usable * capacity[i] - compute[i];
    held[i] = std::clamp(room, 0.0, even);
    excess += even - held[i];
    filled[i] += held[i];
  }
  std::vector<double> more(count);
  if (!pour(excess, filled, capacity, problem.usable, more))
    return std::nullopt;
  for (size_t i = 0; i < count; ++i)
    held[i] += more[i];
  return asParts();
}

} // namespace autohet
