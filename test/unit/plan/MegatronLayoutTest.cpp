//===- MegatronLayoutTest.cpp - plans as flags, or why not ----------------===//

#include "autohet/Plan/MegatronLayout.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

static UnitTable threeLayers() {
  UnitTable table;
  for (const char *id : {"embed", "block0.attn", "block0.mlp", "block1.attn",
                         "block1.mlp", "block2.attn", "block2.mlp", "head"})
    table.units.emplace_back().id = id;
  return table;
}

static ResolvedStage stage(std::vector<unsigned> units, unsigned firstDevice,
                           std::vector<int64_t> weights) {
  ResolvedStage result;
  result.units = std::move(units);
  result.weights = std::move(weights);
  for (unsigned i = 0; i < result.weights.size(); ++i)
    result.devices.push_back(firstDevice + i);
  return result;
}

TEST(MegatronLayout, StagesOfWholeLayers) {
  ResolvedPlan plan;
  for (unsigned replica = 0; replica < 2; ++replica)
    plan.replicas.push_back({4,
                             8,
                             {stage({0, 1, 2, 3, 4}, 4 * replica, {1, 1}),
                              stage({5, 6, 7}, 4 * replica + 2, {1, 1})}});
  std::vector<std::string> reasons;
  MegatronLayout layout = exportToMegatron(plan, threeLayers(), 64, reasons);
  EXPECT_THAT(reasons, IsEmpty());
  EXPECT_EQ(layout.layout, "Et*2|tL");
  EXPECT_EQ(layout.data_parallel, 2);
  EXPECT_EQ(layout.flags(),
            "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
            "--micro-batch-size 4 --global-batch-size 64 "
            "--pipeline-model-parallel-layout \"Et*2|tL\"");
}

TEST(MegatronLayout, WhatCannotBeSaid) {
  ResolvedPlan plan;
  plan.replicas.push_back(
      {4, 8, {stage({0, 1, 2, 3}, 0, {2, 1}), stage({4, 5, 6, 7}, 2, {1})}});
  plan.replicas.push_back({2, 8, {stage({0, 1, 2, 3, 4, 5, 6, 7}, 3, {1})}});
  std::vector<std::string> reasons;
  exportToMegatron(plan, threeLayers(), 48, reasons);
  EXPECT_THAT(reasons,
              ElementsAre(HasSubstr("replica 1 differs"),
                          HasSubstr("stage 0 has devices of unlike shares"),
                          HasSubstr("ends within a layer, with block1.attn"),
                          HasSubstr("stage 1 has 1 devices, stage 0 has 2"),
                          HasSubstr("begins within a layer, with block1.mlp")));
}
