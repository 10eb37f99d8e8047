//===- SharedCardTest.cpp - nodes' links and network cards ----------------===//

#include "autohet/Planner/Evaluation.h"
#include "plan/Models.h"

#include "gmock/gmock.h"

using namespace autohet;

namespace {

class SharedCard : public testing::Test {
protected:
  SharedCard() {
    DeviceKind kind;
    kind.name = "k";
    kind.flops_per_s = 40e9;
    kind.memory_bytes = 16e9;
    unsigned number = cluster.addKind(kind);
    for (const char *name : {"a", "b"})
      cluster.addNode(name, "", {number, number});
    cluster.intra_node = {1e12, 0};
    cluster.inter_node = {1e8, 0};
  }

  PlanEvaluation evaluate(llvm::StringRef text,
                          std::optional<GradientExchange> how = {}) {
    Plan plan;
    plan.replicas = *parseStageAssignment(text);
    plan.global_batch = 0;
    for (const Replica &replica : plan.replicas)
      plan.global_batch += replica.microbatches * replica.microbatch_size;
    CostModel costs(table, cluster, OptimizerKind::SGD);
    return evaluatePlan(resolvePlan(plan, table, cluster),
                        Schedule::OneForwardOneBackward, "spread", costs, how);
  }

  void setCards(double bytesPerSecond) {
    for (Node &node : cluster.nodes)
      node.nic_bytes_per_s = bytesPerSecond;
  }

  UnitTable table = test::makeChain(8);
  Cluster cluster;
};

} // namespace

// Both ranks of a node send the other node their half at once.
TEST_F(SharedCard, RanksExchangeThroughIt) {
  const char *plan = "1x1: embed-head@a/0+a/1; 1x1: embed-head@b/0+b/1";
  PlanEvaluation free = evaluate(plan, GradientExchange::Direct);
  // Half of 32 MB of gradients; each rank has half of them.
  double own_s = 32e6 / 2 / 2 / 1e8;
  EXPECT_NEAR(free.devices[0].sync_s, own_s, 1e-9);
  setCards(2e8);
  EXPECT_NEAR(evaluate(plan, GradientExchange::Direct).step_s, free.step_s,
              1e-9);
  setCards(1e8);
  PlanEvaluation shared = evaluate(plan, GradientExchange::Direct);
  // Nearly as much again of gradients, and of parameters.
  EXPECT_GT(shared.exposed_sync_s, free.exposed_sync_s + 0.8 * own_s);
  EXPECT_LE(shared.exposed_sync_s, free.exposed_sync_s + own_s + 1e-9);
  EXPECT_GT(shared.exposed_parameters_s,
            free.exposed_parameters_s + 0.8 * own_s);
  EXPECT_LE(shared.exposed_parameters_s,
            free.exposed_parameters_s + own_s + 1e-9);
}

// Four replicas: each device sends three parts of four, two of them far.
TEST_F(SharedCard, RelaysRelieveIt) {
  const char *plan = "1x1: embed-head@a/0; 1x1: embed-head@a/1; "
                     "1x1: embed-head@b/0; 1x1: embed-head@b/1";
  cluster.inter_node = {4e8, 0};
  setCards(4e8);
  double direct = evaluate(plan, GradientExchange::Direct).step_s;
  double relayed = evaluate(plan, GradientExchange::Hierarchical).step_s;
  EXPECT_LT(relayed, direct);
  EXPECT_EQ(evaluate(plan).step_s, std::min(direct, relayed));
}

// A stage of several ranks gets its values whole for each.
TEST_F(SharedCard, MessagesBetweenStagesShareIt) {
  const char *plan = "4x1: embed-block3@a/0+a/1, block4-head@b/0+b/1";
  double free = evaluate(plan).pipeline_s;
  setCards(2e8);
  EXPECT_NEAR(evaluate(plan).pipeline_s, free, 1e-12);
  setCards(1e8);
  EXPECT_GT(evaluate(plan).pipeline_s, free);
}

// A card that is slower than the link is the link, and a node's own links
// count.
TEST_F(SharedCard, LinksOfNodesCount) {
  CostModel plain(table, cluster, OptimizerKind::SGD);
  EXPECT_EQ(plain.machineClasses().size(), 1u);
  cluster.nodes[1].nic_bytes_per_s = 1e7;
  cluster.nodes[1].inside = Link{5e8, 1e-6};
  CostModel costs(table, cluster, OptimizerKind::SGD);
  EXPECT_EQ(costs.machineClasses().size(), 2u);
  for (unsigned from = 0; from < 4; ++from)
    for (unsigned to = 0; to < 4; ++to) {
      EXPECT_EQ(costs.link(from, to).bandwidth_bytes_per_s,
                cluster.link(from, to).bandwidth_bytes_per_s);
      EXPECT_EQ(costs.link(from, to).latency_s,
                cluster.link(from, to).latency_s);
    }
}
