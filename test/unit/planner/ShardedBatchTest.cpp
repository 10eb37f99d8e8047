//===- ShardedBatchTest.cpp - batch and state of each device --------------===//

#include "autohet/Planner/ShardedBatchProblem.h"

#include "llvm/ADT/STLExtras.h"
#include "gmock/gmock.h"
#include <numeric>
#include <random>

using namespace autohet;
using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

ShardedBatchProblem::Device device(double capacityGib, double forwardSlope,
                                   double forwardStart, double backwardSlope,
                                   double backwardStart) {
  ShardedBatchProblem::Device made;
  made.capacity_bytes = capacityGib * gib;
  made.forward_s = [=](int64_t size) {
    return (forwardSlope * static_cast<double>(size) + forwardStart) * 1e-3;
  };
  made.backward_s = [=](int64_t size) {
    return (backwardSlope * static_cast<double>(size) + backwardStart) * 1e-3;
  };
  // Profiled up to four samples, the same slope beyond; 2 GiB to communicate.
  made.compute_bytes = [](int64_t size) {
    constexpr double profile[] = {1.12, 1.49, 1.863, 2.233};
    double slope = (profile[3] - profile[0]) / 3;
    double compute = size <= 4
                         ? profile[size - 1]
                         : profile[3] + slope * static_cast<double>(size - 4);
    return (compute + 2) * gib;
  };
  return made;
}

/// GPT-2.7B, fp16, on L4, L4, A6000 and P40.
ShardedBatchProblem cephaloCase() {
  ShardedBatchProblem problem;
  auto l4 = device(22.5, 7.415, 1.1815, 10.94616, 4.84282);
  problem.devices = {l4, l4,
                     device(47.99, 2.835478, 0.664214, 4.22101, 2.404014),
                     device(22.5, 15.637328, 4.132932, 28.016862, 1.877118)};
  problem.global_batch = 64;
  problem.state_bytes = 41.29 * gib;
  return problem;
}

} // namespace

TEST(ShardedBatchProblem, GoldenLimits) {
  ShardedBatchProblem problem = cephaloCase();
  std::vector<int64_t> limits, evenLimits;
  for (unsigned index = 0; index < problem.devices.size(); ++index) {
    limits.push_back(problem.limit(index));
    evenLimits.push_back(problem.evenLimit(index));
  }
  problem.global_batch = 1024; // no limit of its own
  EXPECT_EQ(problem.limit(2), 89);
  EXPECT_THAT(limits, ElementsAre(38, 38, 64, 38));
  EXPECT_THAT(evenLimits, ElementsAre(10, 10, 61, 10));
}

TEST(ShardedBatchProblem, GoldenBatch) {
  ShardedBatchProblem problem = cephaloCase();
  auto batch = solveShardedBatch(problem);
  ASSERT_TRUE(batch);
  EXPECT_EQ(verifyShardedBatch(problem, *batch), "");
  // 342.297 ms a layer, 73.80 GiB of all devices.
  EXPECT_NEAR(batch->seconds, 342.297e-3, 2e-6);
  EXPECT_NEAR(batch->memory_bytes / gib, 73.80, 0.01);
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const ShardedBatch::Share &share : batch->shares)
    sizes.push_back({share.microbatch_size, share.microbatches});
  // The two L4s may be exchanged.
  EXPECT_THAT((std::vector{sizes[0], sizes[1]}),
              UnorderedElementsAre(std::pair(13, 1), std::pair(6, 2)));
  EXPECT_THAT(sizes[2], std::pair(34, 1));
  EXPECT_THAT(sizes[3], std::pair(5, 1));
}

// The published answer leaves the state in even shards: with 13 samples at once
// that is 80 % of an L4, so it takes a limit above the 75 % for batches.
TEST(ShardedBatchProblem, GoldenState) {
  ShardedBatchProblem problem = cephaloCase();
  auto batch = solveShardedBatch(problem);
  ASSERT_TRUE(batch);
  ShardedBatchProblem roomier = problem;
  roomier.usable = 0.8;
  EXPECT_THAT(*splitState(roomier, *batch, StateSplit::LeastMoved),
              Each(DoubleNear(0.25, 1e-9)));
  for (StateSplit how : {StateSplit::LeastMoved, StateSplit::EqualFullness}) {
    auto parts = splitState(problem, *batch, how);
    ASSERT_TRUE(parts);
    double sum = 0;
    for (auto [device, share, part] :
         llvm::zip_equal(problem.devices, batch->shares, *parts)) {
      sum += part;
      EXPECT_LE(device.compute_bytes(share.microbatch_size) +
                    part * problem.state_bytes,
                problem.usable * device.capacity_bytes * (1 + 1e-9));
    }
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(ShardedBatchProblem, EvenStateBelowHalf) {
  ShardedBatchProblem problem = cephaloCase();
  problem.state_bytes = 8 * gib;
  problem.global_batch = 4;
  auto batch = solveShardedBatch(problem);
  ASSERT_TRUE(batch);
  EXPECT_THAT(*splitState(problem, *batch, StateSplit::EqualFullness),
              Each(DoubleNear(0.25, 1e-9)));
}

TEST(ShardedBatchProblem, EqualsBruteForce) {
  std::mt19937 random(1);
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  unsigned solved = 0, impossible = 0;
  for (int round = 0; round < 1000; ++round) {
    ShardedBatchProblem problem;
    unsigned devices = 1 + random() % 3;
    for (unsigned index = 0; index < devices; ++index)
      problem.devices.push_back(device(real(5, 16), real(1, 20), real(0, 5),
                                       real(1, 30), real(0, 5)));
    problem.global_batch = devices + random() % (13 - devices);
    problem.state_bytes = real(0, 12) * gib;
    problem.gather_s = real(0, 50e-3);
    problem.scatter_s = real(0, 50e-3);
    auto exact = solveShardedBatch(problem);
    auto oracle = solveShardedBatchByBruteForce(problem);
    ASSERT_EQ(exact.has_value(), oracle.has_value()) << "round " << round;
    if (!oracle) {
      ++impossible;
      continue;
    }
    ++solved;
    EXPECT_EQ(verifyShardedBatch(problem, *exact), "");
    EXPECT_NEAR(exact->seconds, oracle->seconds, 1e-12) << "round " << round;
    EXPECT_NEAR(exact->memory_bytes / gib, oracle->memory_bytes / gib, 1e-9);
  }
  EXPECT_GT(solved, 500u);
  EXPECT_GT(impossible, 50u);
}
