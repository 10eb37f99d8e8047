//===- StageProblemTest.cpp - the dynamic program equals brute force ------===//

#include "autohet/Planner/StageProblem.h"
#include "autohet/Planner/PipelineTime.h"

#include "gmock/gmock.h"
#include <random>

using namespace autohet;
using testing::ElementsAre;

/// Workers of different speed, slow links, in-flight limits and, in half of the
/// cases, little memory.
static StageProblem randomProblem(std::mt19937 &random) {
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  StageProblem problem;
  unsigned workers = 1 + random() % 4;
  problem.unit_count = workers + random() % 8;
  problem.microbatches = 1 + random() % 20;
  std::vector<double> work;
  for (unsigned unit = 0; unit < problem.unit_count; ++unit)
    work.push_back(real(0, 3));
  for (unsigned worker = 0; worker < workers; ++worker) {
    double speed = real(0.5, 4);
    std::vector<double> &row = problem.seconds.emplace_back();
    for (double amount : work)
      row.push_back(amount / speed);
    problem.in_flight.push_back(random() % 2 ? workers - worker : 0);
    if (worker + 1 < workers)
      for (unsigned unit = 0; unit < problem.unit_count; ++unit) {
        if (unit == 0)
          problem.transfers.emplace_back();
        problem.transfers.back().push_back({real(0, 1), real(0, 1)});
      }
  }
  if (random() % 2) {
    problem.memory = [work](unsigned worker, unsigned begin, unsigned end) {
      double bytes = 1;
      for (unsigned unit = begin; unit < end; ++unit)
        bytes += work[unit] * (2 + worker);
      return bytes;
    };
    for (unsigned worker = 0; worker < workers; ++worker)
      problem.memory_limits.push_back(real(5, 40));
  }
  return problem;
}

TEST(StageProblem, DynamicProgramEqualsBruteForce) {
  std::mt19937 random(1);
  unsigned solved = 0, impossible = 0;
  for (int round = 0; round < 1500; ++round) {
    StageProblem problem = randomProblem(random);
    ASSERT_EQ(problem.check(), "");
    auto exact = solveStagesByBruteForce(problem);
    auto fast = solveStagesByDynamicProgram(problem);
    ASSERT_EQ(exact.has_value(), fast.has_value()) << "round " << round;
    if (!exact) {
      ++impossible;
      continue;
    }
    ++solved;
    ASSERT_EQ(problem.verify(*fast), "");
    EXPECT_NEAR(problem.objective(*fast), problem.objective(*exact), 1e-9);
  }
  EXPECT_GT(solved, 1000u);
  EXPECT_GT(impossible, 50u);
}

TEST(StageProblem, FrontIsBestForEveryCount) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    StageProblem problem = randomProblem(random);
    std::vector<StageFrontEntry> front = solveStageFront(problem);
    for (int64_t microbatches : {1, 2, 7, 100}) {
      problem.microbatches = microbatches;
      auto exact = solveStagesByBruteForce(problem);
      ASSERT_EQ(exact.has_value(), !front.empty());
      double best = std::numeric_limits<double>::infinity();
      for (const StageFrontEntry &entry : front) {
        EXPECT_NEAR(entry.seconds(microbatches), problem.objective(entry.cuts),
                    1e-9);
        best = std::min(best, entry.seconds(microbatches));
      }
      if (exact)
        EXPECT_NEAR(best, problem.objective(*exact), 1e-9);
    }
  }
}

// The closed form that solvers use stays near the schedule's own time.
TEST(StageProblem, ObjectiveIsNearTheSimulatedTime) {
  std::mt19937 random(3);
  double worst = 0, sum = 0;
  unsigned count = 0;
  for (int round = 0; round < 500; ++round) {
    StageProblem problem = randomProblem(random);
    problem.memory = nullptr;
    problem.microbatches = 4 + random() % 30;
    for (unsigned worker = 0; worker < problem.workerCount(); ++worker)
      problem.in_flight[worker] = problem.workerCount() - worker;
    StageCuts cuts = *solveStagesByDynamicProgram(problem);

    Pipeline pipeline;
    pipeline.microbatches = problem.microbatches;
    for (unsigned worker = 0, begin = 0; worker < cuts.size(); ++worker) {
      double stage = 0;
      for (; begin < cuts[worker]; ++begin)
        stage += problem.seconds[worker][begin];
      pipeline.stages.push_back({stage / 3, 2 * stage / 3});
      if (worker + 1 < cuts.size()) {
        // One byte over links of different speed.
        PassSeconds transfer = problem.transfers[worker][begin];
        pipeline.edges.push_back({worker,
                                  worker + 1,
                                  1,
                                  {1 / transfer.forward_s, 0},
                                  {1 / transfer.backward_s, 0}});
      }
    }
    double exact = runPipeline(pipeline).end_s;
    double error = std::abs(problem.objective(cuts) / exact - 1);
    worst = std::max(worst, error);
    sum += error;
    ++count;
  }
  RecordProperty("worst_percent", static_cast<int>(100 * worst));
  // The objective does not know that a stage in the middle sends both ways
  // through one port.
  EXPECT_LT(worst, 0.28);
  EXPECT_LT(sum / count, 0.03);
}

// 7 layers on two devices, one twice as fast: 5 and 2, by hand.
TEST(StageProblem, SevenLayersOnTwoDevices) {
  StageProblem problem;
  problem.unit_count = 7;
  problem.microbatches = 32;
  problem.seconds = {std::vector<double>(7, 1), std::vector<double>(7, 2)};
  problem.transfers = {std::vector<PassSeconds>(7)};
  problem.in_flight = {0, 0};
  EXPECT_THAT(*solveStagesByDynamicProgram(problem), ElementsAre(5, 7));
}

TEST(StageProblem, CheckAndVerify) {
  StageProblem problem;
  EXPECT_EQ(problem.check(), "no workers");
  problem.unit_count = 2;
  problem.seconds = {{1, 1}, {1, 1}};
  problem.in_flight = {2, 1};
  EXPECT_EQ(problem.check(),
            "transfers or in-flight limits do not match the workers");
  problem.transfers = {{{0, 0}, {0, 0}}};
  EXPECT_EQ(problem.check(), "");
  EXPECT_EQ(problem.verify({2, 2}), "worker 1 has no units");
  EXPECT_EQ(problem.verify({1}), "the cuts do not end with the units");
  EXPECT_EQ(problem.verify({1, 2}), "");
  problem.seconds[0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(problem.check(), "a time is negative or not finite");
  problem.unit_count = 1;
  EXPECT_EQ(problem.check(), "more workers than units");
}
