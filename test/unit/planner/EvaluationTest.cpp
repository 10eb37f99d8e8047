//===- EvaluationTest.cpp - time and memory of whole plans ----------------===//

#include "autohet/Planner/Evaluation.h"
#include "plan/Models.h"
#include "planner/Instances.h"

#include "gmock/gmock.h"

using namespace autohet;

namespace {

class Evaluation : public testing::Test {
protected:
  ResolvedPlan resolve(llvm::StringRef text) {
    Plan plan;
    plan.replicas = *parseStageAssignment(text);
    plan.global_batch = 0;
    for (const Replica &replica : plan.replicas)
      plan.global_batch += replica.microbatches * replica.microbatch_size;
    return resolvePlan(plan, table, cluster);
  }

  PlanEvaluation evaluate(llvm::StringRef text,
                          llvm::StringRef owner = "spread") {
    CostModel costs(table, cluster, optimizer);
    return evaluatePlan(resolve(text), Schedule::OneForwardOneBackward, owner,
                        costs);
  }

  UnitTable table = test::makeChain(8);
  Cluster cluster = test::makeCluster({4, 2, 1, 1});
  OptimizerKind optimizer = OptimizerKind::SGD;
};

} // namespace

TEST_F(Evaluation, OneDeviceIsArithmetic) {
  PlanEvaluation result = evaluate("6x2: embed-head@n0/0");
  // 8 · 30 + 10 MFLOP forward, twice that backward, at 40 GFLOP/s.
  EXPECT_NEAR(result.pipeline_s, 12 * 3 * 250e6 / 40e9, 1e-9);
  EXPECT_EQ(result.exposed_sync_s, 0);
  EXPECT_EQ(result.agreement_s, 0);
  EXPECT_NEAR(result.bubble, 0, 1e-9);
}

TEST_F(Evaluation, FasterLinksOrDevicesNeverHurt) {
  const char *plan = "5x2: embed-head@n0/0; 3x2: embed-block4@n1/0, "
                     "block5-block6@n2/0, block7-head@n3/0";
  double before = evaluate(plan).step_s;
  cluster.inter_node.bandwidth_bytes_per_s /= 100;
  double slower = evaluate(plan).step_s;
  EXPECT_GT(slower, before);
  cluster.inter_node.bandwidth_bytes_per_s *= 100;
  cluster.kinds[0].flops_per_s *= 2;
  EXPECT_LE(evaluate(plan).step_s, before);
}

// Report P5: bytes of each stage, counted by hand.
TEST_F(Evaluation, MemoryOfEachStage) {
  optimizer = OptimizerKind::AdamW;
  PlanEvaluation result =
      evaluate("4x2: embed-block0@n0/0, block1-block2@n1/0, "
               "block3-block4@n2/0, block5-head@n3/0");
  std::vector<double> parameters = {7e6, 6e6, 6e6, 13e6};
  std::vector<double> units = {3, 4, 4, 7}, inFlight = {4, 3, 2, 1};
  ASSERT_EQ(result.devices.size(), 4u);
  for (unsigned stage = 0; stage < 4; ++stage) {
    const MemoryNeed &memory = result.devices[stage].memory;
    EXPECT_EQ(memory.parameter_bytes, parameters[stage]);
    EXPECT_EQ(memory.gradient_bytes, parameters[stage]);
    EXPECT_EQ(memory.state_bytes, 2 * parameters[stage]);
    EXPECT_EQ(memory.activation_bytes,
              units[stage] * 1e5 * 2 * inFlight[stage]);
    // What comes, and one more; a slot more of what goes, two of its gradient.
    EXPECT_EQ(memory.transfer_bytes,
              1e4 * 2 *
                  ((stage ? inFlight[stage] + 1 : 0) + (stage < 3 ? 3 : 0)));
    EXPECT_EQ(memory.exchange_bytes, 0);
    EXPECT_EQ(memory.workspace_bytes, 2e4);
  }
}

// Two microbatches lie on the device, however many are in flight, and a pass
// takes as long as what it moves.
TEST_F(Evaluation, ActivationsOnTheHost) {
  const char *text = "4x2: embed-block3@n0/0, block4-head@n1/0";
  ResolvedPlan plan = resolve(text);
  ResolvedStage &stage = plan.replicas[0].stages[0];
  CostModel costs(table, cluster, optimizer);
  PassSeconds kept = costs.stageSeconds(stage, 2);
  double bytes = 0;
  for (unsigned unit : stage.units)
    bytes += 2 * table.units[unit].activations.all;
  EXPECT_EQ(evaluate(text).devices[0].memory.activation_bytes, 2 * bytes);

  stage.keeping = Keeping::OnHost;
  auto secondsAt = [&](double bandwidth) {
    for (DeviceKind &kind : cluster.kinds)
      kind.host_bandwidth_bytes_per_s = bandwidth;
    return CostModel(table, cluster, optimizer).stageSeconds(stage, 2);
  };
  // Far quicker than the units, all is hidden; far slower, nothing else counts.
  EXPECT_NEAR(secondsAt(1e15).total(), kept.total(), 1e-9);
  PassSeconds slow = secondsAt(1e3);
  EXPECT_NEAR(slow.forward_s, bytes / 1e3, 1e-3 * slow.forward_s);
  EXPECT_DOUBLE_EQ(slow.backward_s, slow.forward_s);

  auto activationsWith = [&](Keeping keeping, int64_t inFlight) {
    return costs.memory(stage.units, stage.weights, 0, 2, inFlight, {}, keeping)
        .activation_bytes;
  };
  EXPECT_EQ(activationsWith(Keeping::All, 5), 5 * bytes);
  EXPECT_EQ(activationsWith(Keeping::OnHost, 5), 2 * bytes);
  EXPECT_EQ(activationsWith(Keeping::OnHost, 1), bytes);
  EXPECT_EQ(activationsWith(Keeping::Inputs, 5), bytes);
}

// Nothing is kept, nothing goes back, and nobody agrees on anything.
TEST_F(Evaluation, WithoutABackward) {
  test::dropBackward(table);
  optimizer = OptimizerKind::None;
  const char *plan = "6x2: embed-block3@n0/0, block4-head@n1/0";
  PlanEvaluation alone = evaluate(plan);
  double first = 2 * 120e6 / 40e9, second = 2 * 130e6 / 20e9;
  double message = 2 * 1e4 / cluster.inter_node.bandwidth_bytes_per_s +
                   cluster.inter_node.latency_s;
  EXPECT_NEAR(alone.step_s, first + message + 6 * second, 1e-9);
  EXPECT_EQ(alone.step_s, alone.latency_s);
  EXPECT_NEAR(alone.interval_s, 6 * second, 1e-9);
  for (const DeviceEvaluation &device : alone.devices) {
    EXPECT_EQ(device.memory.parameter_bytes, 16e6);
    EXPECT_EQ(device.memory.gradient_bytes + device.memory.state_bytes +
                  device.memory.activation_bytes,
              0);
    EXPECT_EQ(device.memory.transfer_bytes, device.stage ? 2 * 2 * 1e4 : 0);
  }

  CostModel costs(table, cluster, optimizer, PlanObjective::Throughput);
  PlanEvaluation followed = evaluatePlan(
      resolve(plan), Schedule::OneForwardOneBackward, "spread", costs);
  EXPECT_EQ(followed.step_s, alone.interval_s);
  EXPECT_EQ(followed.latency_s, alone.latency_s);
  EXPECT_NEAR(followed.devices[1].busy_s, followed.step_s, 1e-9);
}

TEST_F(Evaluation, StateIsSpreadOverReplicas) {
  optimizer = OptimizerKind::Adam;
  const char *plan = "1x1: embed-head@n0/0; 1x1: embed-head@n1/0";
  EXPECT_EQ(evaluate(plan).devices[0].memory.state_bytes, 32e6);
  // The other's half of the gradients, beyond a microbatch's activations.
  EXPECT_EQ(evaluate(plan).devices[0].memory.exchange_bytes,
            16e6 - evaluate(plan).devices[0].memory.activation_bytes);
  EXPECT_EQ(evaluate(plan, "first").devices[1].memory.exchange_bytes, 0);
  EXPECT_EQ(evaluate(plan, "first").devices[0].memory.state_bytes, 64e6);
  EXPECT_EQ(evaluate(plan, "first").devices[1].memory.state_bytes, 0);
  EXPECT_EQ(evaluate(plan, "n1/0").devices[1].memory.state_bytes, 64e6);
}

TEST_F(Evaluation, TiedWeightsLieOnceInAStage) {
  table = test::makeChain(8, /*isTied=*/true);
  EXPECT_EQ(evaluate("1x1: embed-head@n0/0").devices[0].memory.parameter_bytes,
            28e6);
  PlanEvaluation cut = evaluate("1x1: embed-block3@n0/0, block4-head@n1/0");
  EXPECT_EQ(cut.devices[0].memory.parameter_bytes, 16e6);
  EXPECT_EQ(cut.devices[1].memory.parameter_bytes, 16e6);
  // The two copies are synchronised.
  EXPECT_GT(cut.devices[0].sync_s, 0);
}

TEST_F(Evaluation, TensorParallelSharesDivide) {
  PlanEvaluation result = evaluate("1x1: embed-head@n0/0+n1/0(2:1)");
  ASSERT_EQ(result.devices.size(), 2u);
  EXPECT_NEAR(result.devices[0].memory.parameter_bytes, 32e6 * 2 / 3, 1);
  EXPECT_NEAR(result.devices[1].memory.parameter_bytes, 32e6 / 3, 1);
  // Shares in proportion to speed: both are done at the same time.
  cluster.inter_node = {1e15, 0};
  for (Unit &unit : table.units)
    unit.forward.exchanges = unit.backward.exchanges = {};
  EXPECT_NEAR(evaluate("1x1: embed-head@n0/0+n1/0(2:1)").pipeline_s,
              3 * 250e6 / 60e9, 1e-9);
  // Of five heads the first has three: 9 / 10 of what its share would be.
  for (Unit &unit : table.units)
    unit.divided_extent = 5;
  EXPECT_NEAR(evaluate("1x1: embed-head@n0/0+n1/0(2:1)").pipeline_s,
              3 * 250e6 / 20e9 * 2 / 5, 1e-9);
  // What is whole is not divided, and two ranks add one value to another.
  for (Unit &unit : table.units)
    test::keepWhole(unit, 1);
  table.units[0].forward.exchanges = {{RankExchange::Sum, 4e6}};
  EXPECT_NEAR(evaluate("1x1: embed-head@n0/0+n1/0(2:1)").pipeline_s,
              3 * 250e6 / 20e9 + 1e6 / 20e9, 1e-6);
}

// Reports P10 and P16: degrees that differ from stage to stage, none of them
// dividing the devices.
TEST_F(Evaluation, DegreesDifferFromStageToStage) {
  cluster = test::makeCluster(std::vector<double>(8, 1));
  PlanEvaluation three =
      evaluate("4x1: embed-block3@n0/0+n1/0, block4-head@n2/0");
  EXPECT_EQ(three.devices.size(), 3u);
  PlanEvaluation eight =
      evaluate("4x1: embed-block2@n0/0+n1/0+n2/0+n3/0, block3@n4/0, "
               "block4-block6@n5/0+n6/0, block7-head@n7/0");
  ASSERT_EQ(eight.devices.size(), 8u);
  EXPECT_LT(eight.devices[0].memory.parameter_bytes,
            eight.devices[5].memory.parameter_bytes);
}

// Report C3: two islands of two devices with a slow link between them. Of a
// gradient of G bytes, a device sends direct 3/4 G, half G of it far; through
// relays G/2 near, then its relayed G/4 far.
TEST_F(Evaluation, IslandsExchangeThroughRelays) {
  cluster = test::makeCluster({});
  DeviceKind kind;
  kind.name = "k";
  kind.memory_bytes = 1e9;
  kind.flops_per_s = 10e9;
  kind.overhead_s = 0;
  unsigned index = cluster.addKind(kind);
  for (const char *name : {"n0", "n1"})
    cluster.addNode(name, "", {index, index});
  cluster.intra_node = {10e9, 0};
  cluster.inter_node = {0.02e9, 0};
  CostModel costs(table, cluster, optimizer);
  ResolvedPlan plan = resolve("2x2: embed-head@n0/0; 2x2: embed-head@n0/1; "
                              "2x2: embed-head@n1/0; 2x2: embed-head@n1/1");
  auto sync = [&](std::optional<GradientExchange> how) {
    return evaluatePlan(plan, Schedule::OneForwardOneBackward, "spread", costs,
                        how);
  };
  double bytes = 0;
  for (const UnitParameter &parameter : table.parameters)
    bytes += parameter.bytes;
  PlanEvaluation direct = sync(GradientExchange::Direct);
  EXPECT_NEAR(direct.devices[0].sync_s, bytes / 4 / 10e9 + bytes / 2 / 0.02e9,
              1e-9);
  PlanEvaluation relayed = sync(GradientExchange::Hierarchical);
  EXPECT_NEAR(relayed.devices[0].sync_s, bytes / 2 / 10e9 + bytes / 4 / 0.02e9,
              1e-9);
  EXPECT_LT(relayed.step_s, direct.step_s);
  PlanEvaluation better = sync(std::nullopt);
  EXPECT_EQ(better.gradient_exchange, GradientExchange::Hierarchical);
  EXPECT_EQ(better.step_s, relayed.step_s);

  // Between equal links a relay is a way around.
  cluster.inter_node = cluster.intra_node;
  CostModel flat(table, cluster, optimizer);
  EXPECT_EQ(evaluatePlan(plan, Schedule::OneForwardOneBackward, "spread", flat)
                .gradient_exchange,
            GradientExchange::Direct);
}

TEST_F(Evaluation, EstimateIsTheEvaluationsMemory) {
  optimizer = OptimizerKind::AdamW;
  CostModel costs(table, cluster, optimizer);
  ResolvedPlan plan = resolve("5x2: embed-head@n0/0; 3x2: embed-block4@n1/0, "
                              "block5-head@n2/0+n3/0");
  Schedule schedule = Schedule::OneForwardOneBackward;
  for (const DeviceEvaluation &entry :
       evaluatePlan(plan, schedule, "spread", costs).devices)
    EXPECT_EQ(entry.memory.total(),
              estimateMemory(plan, entry.replica, entry.stage, entry.position,
                             schedule, "spread", costs));
}

TEST_F(Evaluation, NamesTheWorstShortage) {
  cluster = test::makeCluster({1, 1}, 15e6);
  CostModel costs(table, cluster, OptimizerKind::None);
  PlanEvaluation result =
      evaluatePlan(resolve("1x1: embed-block0@n0/0, block1-head@n1/0"),
                   Schedule::OneForwardOneBackward, "spread", costs);
  auto shortage = result.worstShortage(cluster);
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->first, 1u);
  EXPECT_NEAR(shortage->second, 25e6 + 15 * 1e5 + 2 * 1e4 + 1e4 - 15e6, 1);
}
