//===- KindPipelineTest.cpp - one kind of device a stage ------------------===//

#include "autohet/Planner/KindPipelineProblem.h"

#include "gmock/gmock.h"
#include <random>

using namespace autohet;

/// Up to three kinds of up to eight devices, twelve layers.
static KindPipelineProblem randomProblem(std::mt19937 &random) {
  auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  KindPipelineProblem problem;
  unsigned kinds = 1 + random() % 3;
  problem.layers = 1 + random() % 12;
  problem.microbatches = 1 + random() % 8;
  problem.alpha = random() % 3 ? 1 : 0;
  problem.allow_recompute = random() % 2;
  // Brute force tries every number of layers of every kind.
  unsigned mostDevices = kinds == 3 ? 2 : kinds == 2 ? 5 : 8;
  for (unsigned number = 0; number < kinds; ++number) {
    KindPipelineProblem::Kind kind;
    kind.devices = 1 + random() % mostDevices;
    kind.memory = real(1, 4);
    for (unsigned devices = 1; devices <= kind.devices && devices <= 2;
         ++devices) {
      KindPipelineProblem::Extent extent;
      extent.devices = devices;
      extent.most_rows = kind.devices / devices;
      extent.layer_s = real(0.5, 3) / devices;
      extent.recompute_s = extent.layer_s / 3;
      extent.update_s = real(0, 2);
      double room = kind.memory * devices * real(1, 4);
      extent.most_layers = [room](unsigned depth, bool recompute) {
        return static_cast<unsigned>(room /
                                     (0.3 + (recompute ? 0.1 : 0.5) * depth));
      };
      kind.extents.push_back(std::move(extent));
    }
    problem.kinds.push_back(std::move(kind));
  }
  return problem;
}

TEST(KindPipelineProblem, EqualsBruteForce) {
  std::mt19937 random(1);
  unsigned solved = 0, impossible = 0, recomputed = 0;
  for (int round = 0; round < 1200; ++round) {
    KindPipelineProblem problem = randomProblem(random);
    ASSERT_EQ(problem.check(), "");
    std::vector<KindPipeline> found = solveKindPipeline(problem, 3);
    auto oracle = solveKindPipelineByBruteForce(problem);
    ASSERT_EQ(!found.empty(), oracle.has_value()) << "round " << round;
    if (!oracle) {
      ++impossible;
      continue;
    }
    ++solved;
    for (const KindPipeline &pipeline : found) {
      EXPECT_EQ(verifyKindPipeline(problem, pipeline), "");
      EXPECT_NEAR(kindPipelineSeconds(problem, pipeline), pipeline.seconds,
                  1e-9);
    }
    EXPECT_NEAR(found.front().seconds, oracle->seconds, 1e-9)
        << "round " << round;
    for (const KindPipeline::Run &run : found.front().runs)
      recomputed += run.stages && run.recompute;
  }
  EXPECT_GT(solved, 1000u);
  EXPECT_GT(impossible, 20u);
  EXPECT_GT(recomputed, 80u);
}

// 1F1B on 2 + 2 stages by hand: 8 microbatches, 6 layers.
TEST(KindPipelineProblem, ByHand) {
  KindPipelineProblem problem;
  problem.layers = 6;
  problem.microbatches = 8;
  auto any = [](unsigned, bool) { return 100u; };
  problem.kinds = {{2, 2, {{1, 2, 2, 0, 0, any}}},
                   {1, 2, {{1, 2, 1, 0, 0, any}}}};
  KindPipeline pipeline;
  pipeline.replicas = 1;
  pipeline.runs = {{0, 2, 2, false}, {0, 2, 4, false}};
  EXPECT_EQ(verifyKindPipeline(problem, pipeline), "");
  // Each stage takes 2: 8 · 2 and the three others once.
  EXPECT_EQ(kindPipelineSeconds(problem, pipeline), 22);
  problem.alpha = 0;
  EXPECT_EQ(kindPipelineSeconds(problem, pipeline), 16);
  EXPECT_EQ(solveKindPipeline(problem).front().seconds, 16);
}
