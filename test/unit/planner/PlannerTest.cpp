//===- PlannerTest.cpp - plans for whole clusters -------------------------===//

#include "autohet/Planner/Planner.h"
#include "autohet/Report/PlanText.h"
#include "planner/Clusters.h"
#include "planner/Instances.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class Planner : public testing::Test {
protected:
  PlannerResult plan() {
    auto result = planCluster(table, cluster, options);
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return {};
    }
    // Whatever is planned is legal, and is what was evaluated.
    for (const Plan *plan :
         {&result->best.plan,
          result->symmetric ? &result->symmetric->plan : &result->best.plan})
      EXPECT_THAT(verifyPlan(*plan, table, cluster), IsEmpty())
          << formatPlan(*plan);
    EXPECT_GE(result->best.evaluation.step_s, result->lower_bound_s);
    EXPECT_FALSE(result->best.evaluation.worstShortage(cluster));
    if (result->symmetric)
      EXPECT_LE(result->best.evaluation.step_s,
                result->symmetric->evaluation.step_s);
    return std::move(*result);
  }

  std::string refuse() {
    auto result = planCluster(table, cluster, options);
    return result ? "" : llvm::toString(result.takeError());
  }

  double speedUp() {
    PlannerResult result = plan();
    return result.symmetric->evaluation.step_s / result.best.evaluation.step_s;
  }

  UnitTable table = test::makeChain(8);
  Cluster cluster = test::makeCluster({4, 2, 1, 1});
  PlannerOptions options = [] {
    PlannerOptions options;
    options.global_batch = 64;
    options.optimizer = OptimizerKind::SGD;
    return options;
  }();
};

} // namespace

TEST_F(Planner, UnequalWorkers) {
  cluster.inter_node = {10e9, 10e-6};
  PlannerResult result = plan();
  EXPECT_EQ(result.best.evaluation.devices.size(), 4u);
  // The bound is 2: the symmetric plan is held up by its slowest device.
  EXPECT_GT(speedUp(), 1.7);
  EXPECT_LT(speedUp(), 2.0);
  EXPECT_THAT(formatPlanText(result, table, cluster, {}),
              HasSubstr("best plans of other planners"));
}

TEST_F(Planner, TwoFastAndFourSlowWorkers) {
  table = test::makeChain(12);
  cluster = test::makeCluster({3, 3, 1, 1, 1, 1});
  cluster.inter_node = {10e9, 10e-6};
  EXPECT_GT(speedUp(), 1.45);
}

TEST_F(Planner, IsDeterministic) {
  EXPECT_EQ(formatPlan(plan().best.plan), formatPlan(plan().best.plan));
}

TEST_F(Planner, OneDevice) {
  cluster = test::makeCluster({1});
  PlannerResult result = plan();
  EXPECT_EQ(result.best.plan.replicas.size(), 1u);
  EXPECT_NEAR(result.best.evaluation.step_s, result.lower_bound_s, 1e-2);
}

// A model of tensors without elements, only computed.
TEST_F(Planner, NoWorkAtAll) {
  test::dropBackward(table);
  options.optimizer = OptimizerKind::None;
  for (Unit &unit : table.units) {
    unit.forward = {};
    unit.successors.clear();
  }
  for (PlanObjective objective :
       {PlanObjective::Latency, PlanObjective::Throughput}) {
    options.objective = objective;
    PlannerResult result = plan();
    EXPECT_EQ(result.lower_bound_s, 0);
    // A plan without a gap ends the search; a given one has its bound sought.
    EXPECT_EQ(judgePlan(result.best.plan, "given", table, cluster, std::nullopt,
                        objective)
                  .lower_bound_s,
              0);
  }
}

// Report P1: 7 layers on two devices of which one is twice as fast.
TEST_F(Planner, SevenLayers) {
  table = test::makeChain(7);
  cluster = test::makeCluster({2, 1}, 35e6); // neither holds the model
  PlannerResult result = plan();
  ASSERT_EQ(result.best.resolved.replicas.size(), 1u);
  const auto &stages = result.best.resolved.replicas[0].stages;
  ASSERT_EQ(stages.size(), 2u);
  unsigned fast = stages[0].devices[0] == 0 ? 0 : 1;
  EXPECT_GT(stages[fast].units.size(), stages[1 - fast].units.size());
}

// Report P7: an embedding that fills a device is a stage of its own.
TEST_F(Planner, EmbeddingOnlyStage) {
  table = test::makeChain(4);
  table.parameters.front().bytes = 64e6;
  table.parameters.back().bytes = 64e6;
  cluster = test::makeCluster({1, 1, 1, 1}, 136e6);
  cluster.inter_node = {3e6, 10e-3}; // no tensor parallelism
  PlannerResult result = plan();
  ASSERT_EQ(result.best.resolved.replicas.size(), 1u);
  const auto &stages = result.best.resolved.replicas[0].stages;
  EXPECT_EQ(stages.front().units, std::vector<unsigned>{0});
  EXPECT_EQ(stages.back().units, std::vector<unsigned>{9});
}

// Report P19: a device that only holds others up stays idle, and that is said.
TEST_F(Planner, HopelessDeviceStaysIdle) {
  cluster = test::makeCluster({1, 1, 1, 1, 0.002});
  PlannerResult result = plan();
  EXPECT_EQ(result.best.evaluation.devices.size(), 4u);
  EXPECT_THAT(formatPlanText(result, table, cluster, {}),
              HasSubstr("1 x speed0.002000: n4"));
}

// Report P23: cost reacts to the link that it should react to.
TEST_F(Planner, InterNodeBandwidthCounts) {
  cluster = Cluster();
  DeviceKind kind;
  kind.name = "k";
  kind.memory_bytes = 60e6; // no device holds the model
  kind.flops_per_s = 10e9;
  kind.overhead_s = 0;
  unsigned index = cluster.addKind(kind);
  cluster.addNode("a", "", {index, index});
  cluster.addNode("b", "", {index, index});
  cluster.intra_node = {100e9, 1e-6};
  cluster.inter_node = {100e9, 1e-6};
  double fast = plan().best.evaluation.step_s;
  cluster.inter_node.bandwidth_bytes_per_s /= 1000;
  PlannerResult slow = plan();
  EXPECT_GT(slow.best.evaluation.step_s, fast);
  for (const Replica &replica : slow.best.plan.replicas)
    for (const Stage &stage : replica.stages)
      for (const std::string &device : stage.devices)
        EXPECT_EQ(device[0], stage.devices[0][0]) << "a stage spans nodes";
}

// Report E11: the batch is kept exactly by any number of workers.
TEST_F(Planner, KeepsTheGlobalBatch) {
  options.global_batch = 24;
  for (unsigned workers : {4, 3, 5}) {
    cluster = test::makeCluster(std::vector<double>(workers, 1));
    PlannerResult result = plan();
    int64_t samples = 0;
    for (const Replica &replica : result.best.plan.replicas)
      samples += replica.microbatch_size * replica.microbatches;
    EXPECT_EQ(samples, 24);
  }
}

TEST_F(Planner, PinnedMicrobatchAndSchedule) {
  options.microbatch_size = 4;
  options.schedule = Schedule::GPipe;
  PlannerResult result = plan();
  EXPECT_EQ(result.best.plan.schedule, Schedule::GPipe);
  for (const Replica &replica : result.best.plan.replicas)
    EXPECT_EQ(replica.microbatch_size, 4);
}

TEST_F(Planner, SaysWhatIsMissing) {
  cluster = test::makeCluster({1, 1}, 20e6);
  EXPECT_THAT(refuse(), AllOf(HasSubstr("no plan fits"), HasSubstr("lacks"),
                              HasSubstr("on device 'n"),
                              HasSubstr("what would help: more devices")));
  // With Adam's state it is short, with none it is not.
  cluster = test::makeCluster({1}, 120e6);
  options.optimizer = OptimizerKind::Adam;
  EXPECT_THAT(refuse(), HasSubstr("what would help: the optimizer sgd"));
}

TEST_F(Planner, RefusesImpossibleInput) {
  options.microbatch_size = 5;
  EXPECT_THAT(refuse(), HasSubstr("the nearest are 60 and 65"));
  options.microbatch_size = 128;
  EXPECT_THAT(refuse(), HasSubstr("the smallest is 128"));
  options.microbatch_size.reset();
  options.state_owner = "n9/0";
  EXPECT_THAT(refuse(), HasSubstr("no device 'n9/0'"));
  options.state_owner = "spread";
  cluster = Cluster();
  EXPECT_THAT(refuse(), HasSubstr("no devices"));
  cluster = test::makeCluster({1});
  table = UnitTable();
  EXPECT_THAT(refuse(), HasSubstr("no units"));
}

// Three quarters of the batch are no divisor of it: the mode that tries every
// number finds them, and the bound is one of plans with such sizes, too.
TEST_F(Planner, BoundIsOfTheSizesUsed) {
  cluster = test::makeCluster({3, 1});
  for (DeviceKind &kind : cluster.kinds)
    kind.overhead_s = 5e-3; // the fewer microbatches the better
  options.global_batch = 8;
  options.compare = {PlannerMode::Cephalo};
  PlannerResult result = plan();
  std::vector<int64_t> sizes;
  for (const Replica &replica : result.best.plan.replicas)
    sizes.push_back(replica.microbatch_size);
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(6, 2));
  options.compare.clear();
  options.more_microbatch_sizes = {6};
  EXPECT_DOUBLE_EQ(result.lower_bound_s, plan().lower_bound_s);
}

TEST_F(Planner, OursStandsBesideOtherModes) {
  options.mode = PlannerMode::Whale;
  options.compare = {PlannerMode::Joint};
  PlannerResult result = plan();
  ASSERT_EQ(result.modes.size(), 1u);
  ASSERT_TRUE(result.modes.front().step);
  EXPECT_LE(result.modes.front().step->evaluation.step_s,
            result.best.evaluation.step_s);
}

TEST_F(Planner, SymmetricIsAGridOfEqualParts) {
  options.mode = PlannerMode::Symmetric;
  ResolvedPlan grid = plan().best.resolved;
  const ResolvedReplica &first = grid.replicas[0];
  for (const ResolvedReplica &replica : grid.replicas) {
    EXPECT_EQ(replica.microbatches, first.microbatches);
    EXPECT_EQ(replica.stages.size(), first.stages.size());
  }
}

// Too many groupings to look at all: still legal, still no worse than a grid.
TEST_F(Planner, ManyDevices) {
  cluster = test::makeCluster({4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1});
  options.max_groupings = 200;
  EXPECT_GT(speedUp(), 1.2);
}

// Few samples on many devices: more replicas than samples would fit, and no
// part of all devices is small enough to be looked at whole.
TEST_F(Planner, FewSamplesOnManyDevices) {
  table = test::makeDecoder(16, 4096, 2048, 32000);
  cluster = test::makeDatacenter();
  for (unsigned kind = 0; kind < 4; ++kind)
    test::addNodes(cluster, 16, {{kind, 8}});
  options.compare.clear();
  for (int64_t batch : {1, 8}) {
    options.global_batch = batch;
    EXPECT_LE(plan().best.plan.replicas.size(), static_cast<size_t>(batch));
  }
}
