//===- PlanCostsTest.cpp - devices as counts, shapes, at-best costs -------===//

#include "autohet/Planner/UnitTableCosts.h"
#include "plan/Models.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::ElementsAre;

static unsigned addKind(Cluster &cluster, const char *name, double flops,
                        double memory = 1e9) {
  DeviceKind kind;
  kind.name = name;
  kind.memory_bytes = memory;
  kind.flops_per_s = flops;
  kind.overhead_s = 0;
  return cluster.addKind(kind);
}

TEST(MachineClasses, SameKindInNodesOfOneMake) {
  Cluster cluster;
  unsigned a = addKind(cluster, "a", 2e10), b = addKind(cluster, "b", 1e10);
  cluster.addNode("n0", "", {a, a});
  cluster.addNode("n1", "", {a, a});
  cluster.addNode("n2", "", {a, b});
  cluster.addNode("n3", "", {b, a});
  MachineClasses classes(cluster);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_THAT(classes[0].devices, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(classes[0].per_node, 2u);
  // The order of devices within a node does not matter.
  EXPECT_THAT(classes[1].devices, ElementsAre(4, 7));
  EXPECT_THAT(classes[2].devices, ElementsAre(5, 6));
  EXPECT_THAT(classes.counts(), ElementsAre(4, 2, 2));
}

TEST(MachineClasses, LinksAreThoseOfTheCluster) {
  Cluster cluster = test::makeCluster({2, 2, 2, 1});
  cluster.addNode("m", "", {0u, 0u, 1u});
  cluster.overrides = {{"n1", "*", {1e6, 1e-3}}, {"n?", "n3", {2e6, 0}}};
  MachineClasses classes(cluster);
  for (unsigned from = 0; from < cluster.devices().size(); ++from)
    for (unsigned to = 0; to < cluster.devices().size(); ++to) {
      if (from == to)
        continue;
      bool isSameNode =
          cluster.devices()[from].node == cluster.devices()[to].node;
      Link expected = cluster.link(from, to);
      Link found =
          classes.link(classes.classOf(from), classes.classOf(to), isSameNode);
      EXPECT_EQ(found.bandwidth_bytes_per_s, expected.bandwidth_bytes_per_s);
      EXPECT_EQ(found.latency_s, expected.latency_s);
      Link best = classes.bestLink(classes.classOf(from), classes.classOf(to));
      EXPECT_LE(best.seconds(1e6), expected.seconds(1e6));
    }
}

TEST(PlanCosts, ShapesAreThoseWithinANode) {
  Cluster cluster;
  unsigned a = addKind(cluster, "a", 3e10), b = addKind(cluster, "b", 1e10);
  cluster.addNode("n0", "", {a, a, b});
  cluster.addNode("n1", "", {b});
  UnitTable table = test::makeChain(4);
  UnitTableCosts costs(table, cluster, OptimizerKind::SGD);
  std::vector<std::string> texts;
  for (const StageShape &shape : costs.shapes()) {
    std::string text;
    for (const StageShape::Part &part : shape.parts)
      text += std::to_string(part.count) + "×" +
              std::to_string(part.machine_class) + " ";
    for (int64_t weight : shape.weights)
      text += std::to_string(weight);
    texts.push_back(text);
  }
  EXPECT_THAT(texts, ElementsAre("1×0 1", "2×0 11", "1×1 1", "1×0 1×1 31",
                                 "2×0 1×1 331", "1×2 1"));
}

TEST(PlanCosts, MemoryLimitsMicrobatchesInFlight) {
  Cluster cluster = test::makeCluster({1, 1}, 24e6);
  UnitTable table = test::makeChain(8);
  UnitTableCosts costs(table, cluster, OptimizerKind::SGD);
  // Embedding and two blocks: 10 MB of weights, as much of gradients, 10 kB of
  // workspace, and 0.5 MB of activations a microbatch.
  StageQuery stage;
  stage.end = 5;
  EXPECT_EQ(costs.mostInFlight(stage, 1), 7);
  stage.microbatch_size = 2;
  EXPECT_EQ(costs.mostInFlight(stage, 1), 3);
  stage.end = 7;
  EXPECT_EQ(costs.mostInFlight(stage, 1), 0);
  // Recomputed, only what comes in is kept: 10 kB a sample.
  stage = {1, 5, 0, 1, Keeping::Inputs};
  EXPECT_GT(costs.mostInFlight(stage, 1), 100);
}

TEST(PlanCosts, AtBestIsNeverAboveTheJudge) {
  Cluster cluster = test::makeCluster({2, 2, 1});
  UnitTable table = test::makeChain(4);
  UnitTableCosts costs(table, cluster, OptimizerKind::SGD);
  Plan plan;
  plan.global_batch = 12;
  plan.replicas = *parseStageAssignment(
      "6x1: embed-head@n0/0; 3x2: embed-block1@n1/0, block2-head@n2/0");
  ResolvedPlan resolved = resolvePlan(plan, table, cluster);
  PlanEvaluation judged =
      costs.evaluate(resolved, Schedule::OneForwardOneBackward, "spread");
  EXPECT_GE(judged.devices[0].sync_s, costs.syncSeconds({0, 10, 0}, 2));
  EXPECT_GE(judged.devices[1].sync_s, costs.syncSeconds({0, 5, 0}, 2));
}
