//===- BatchProblemTest.cpp - splitting a batch among replicas ------------===//

#include "autohet/Planner/BatchProblem.h"

#include "gmock/gmock.h"
#include <random>

using namespace autohet;
using testing::ElementsAre;

static BatchProblem randomProblem(std::mt19937 &random) {
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  BatchProblem problem;
  problem.global_batch = 1 + random() % 30;
  unsigned replicas = 1 + random() % 3;
  bool isEqual = random() % 2;
  for (unsigned i = 0; i < replicas; ++i) {
    BatchProblem::ReplicaCost &replica = problem.replicas.emplace_back();
    replica.microbatch_size =
        i && isEqual ? problem.replicas[0].microbatch_size : 1 + random() % 5;
    for (unsigned line = 0; line <= random() % 3; ++line)
      replica.lines.push_back({real(0.1, 2), real(0.1, 5)});
  }
  return problem;
}

TEST(BatchProblem, SolverEqualsBruteForceAndRespectsTheBound) {
  std::mt19937 random(1);
  unsigned solved = 0, impossible = 0;
  for (int round = 0; round < 1500; ++round) {
    BatchProblem problem = randomProblem(random);
    ASSERT_EQ(problem.check(), "");
    auto exact = solveBatchByBruteForce(problem);
    auto fast = solveBatch(problem);
    ASSERT_EQ(exact.has_value(), fast.has_value()) << "round " << round;
    if (!exact) {
      ++impossible;
      continue;
    }
    ++solved;
    ASSERT_EQ(problem.verify(*fast), "");
    EXPECT_NEAR(problem.objective(*fast), problem.objective(*exact), 1e-9);
    EXPECT_LE(boundBatch(problem), problem.objective(*exact) + 1e-9);
  }
  EXPECT_GT(solved, 500u);
  EXPECT_GT(impossible, 100u);
}

TEST(BatchProblem, ProportionalToSpeed) {
  BatchProblem problem;
  problem.global_batch = 32;
  for (double period : {1.0, 2.0, 4.0, 4.0})
    problem.replicas.push_back({2, {{period, period}}});
  EXPECT_THAT(*solveBatch(problem), ElementsAre(8, 4, 2, 2));
  EXPECT_NEAR(boundBatch(problem), 8, 1e-6);
}

TEST(BatchProblem, CheckAndVerify) {
  BatchProblem problem;
  EXPECT_EQ(problem.check(), "no replicas");
  problem.global_batch = 6;
  problem.replicas = {{2, {{1, 1}}}, {4, {{1, 1}}}};
  EXPECT_EQ(problem.check(), "");
  EXPECT_EQ(problem.verify({1, 1}), "");
  EXPECT_EQ(problem.verify({3, 0}), "a replica has no microbatch");
  EXPECT_EQ(problem.verify({2, 1}), "the counts do not add up to the batch");
  problem.global_batch = 7;
  EXPECT_FALSE(solveBatch(problem));
}
