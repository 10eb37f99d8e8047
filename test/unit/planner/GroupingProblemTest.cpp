//===- GroupingProblemTest.cpp - groups by effective computing power ------===//

#include "autohet/Planner/GroupingProblem.h"

#include "gmock/gmock.h"
#include <random>

using namespace autohet;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

using Objective = GroupingProblem::Objective;

// Dense 16-bit TFLOP/s and memory in GB, as the golden values take them.
static constexpr double a100 = 312, h800 = 989, smallGb = 80;

/// The best over all numbers of groups.
static std::pair<double, Grouping> best(GroupingProblem problem) {
  std::pair<double, Grouping> result;
  for (int64_t groups = 1; groups <= problem.microbatches; ++groups) {
    problem.groups = groups;
    if (!problem.check().empty())
      continue;
    std::optional<Grouping> found = solveGrouping(problem);
    if (found && problem.value(*found) > result.first)
      result = {problem.value(*found), *found};
  }
  return result;
}

TEST(GroupingProblem, FourAndFour) {
  GroupingProblem problem;
  problem.kinds = {{4, a100, smallGb}, {4, h800, smallGb}};
  problem.microbatches = 16;
  problem.least_memory = 150;
  auto [value, groups] = best(problem);
  EXPECT_NEAR(value, 4163.2, 0.05);
  ClassCounts pair = {1, 1};
  EXPECT_THAT(groups, ElementsAre(pair, pair, pair, pair));
  problem.groups = 4;
  EXPECT_NEAR(problem.effectivePower(pair), 1040.8, 0.05);
}

TEST(GroupingProblem, FourAndTwo) {
  GroupingProblem problem;
  problem.kinds = {{4, a100, smallGb}, {2, h800, smallGb}};
  problem.microbatches = 12;
  problem.least_memory = 150;
  auto [value, groups] = best(problem);
  EXPECT_NEAR(value, 2419.5, 0.05);
  ClassCounts three = {2, 1};
  EXPECT_THAT(groups, ElementsAre(three, three));
  problem.groups = 2;
  EXPECT_NEAR(problem.effectivePower(three), 1209.8, 0.05);
}

// Counts that do not divide: the groups differ.
TEST(GroupingProblem, FiveAndThree) {
  GroupingProblem problem;
  problem.kinds = {{5, a100, smallGb}, {3, h800, smallGb}};
  problem.microbatches = 32;
  problem.least_memory = 32 * (2.6 + 0.6);
  EXPECT_THAT(best(problem).second,
              UnorderedElementsAre(ClassCounts{0, 2}, ClassCounts{5, 1}));
}

static GroupingProblem randomProblem(std::mt19937 &random) {
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  GroupingProblem problem;
  unsigned kinds = 1 + random() % 3;
  for (unsigned kind = 0; kind < kinds; ++kind)
    problem.kinds.push_back(
        {static_cast<unsigned>(random() % 4), real(1, 5), real(1, 3)});
  problem.groups = 1 + random() % 4;
  problem.microbatches = problem.groups * (1 + random() % 8);
  if (random() % 2)
    problem.least_memory = real(0, 6);
  if (random() % 2)
    problem.max_depth = 1 + random() % 4;
  if (random() % 2)
    problem.objective = Objective::SumOfGroups;
  return problem;
}

TEST(GroupingProblem, SolversAgainstBruteForce) {
  std::mt19937 random(1);
  unsigned solved = 0, impossible = 0, missed = 0;
  for (int round = 0; round < 3000; ++round) {
    GroupingProblem problem = randomProblem(random);
    ASSERT_EQ(problem.check(), "");
    auto exact = solveGrouping(problem);
    auto oracle = solveGroupingByBruteForce(problem);
    auto improved = improveGrouping(problem);
    ASSERT_EQ(exact.has_value(), oracle.has_value()) << "round " << round;
    if (!oracle) {
      EXPECT_FALSE(improved);
      ++impossible;
      continue;
    }
    ++solved;
    EXPECT_EQ(problem.verify(*exact), "");
    EXPECT_NEAR(problem.value(*exact), problem.value(*oracle), 1e-9)
        << "round " << round;
    EXPECT_LE(problem.value(*oracle), problem.bound() * (1 + 1e-12));
    if (!improved) {
      ++missed;
      continue;
    }
    EXPECT_EQ(problem.verify(*improved), "");
    EXPECT_LE(problem.value(*improved), problem.value(*oracle) * (1 + 1e-9));
    missed += problem.value(*improved) < 0.9 * problem.value(*oracle);
  }
  EXPECT_GT(solved, 1000u);
  EXPECT_GT(impossible, 200u);
  // The local search is no oracle, but rarely far off.
  EXPECT_LT(missed, solved / 10);
}

TEST(GroupingProblem, SaysWhatIsWrong) {
  GroupingProblem problem;
  problem.kinds = {{2, 1, 1}};
  problem.microbatches = 3;
  problem.groups = 2;
  EXPECT_EQ(problem.check(), "the groups do not divide the microbatches");
  problem.microbatches = 4;
  EXPECT_EQ(problem.verify({{2}, {1}}), "there are only 2 devices of kind 0");
  EXPECT_NE(problem.verify({{1}}), "");
}
