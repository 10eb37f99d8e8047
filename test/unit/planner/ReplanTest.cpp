//===- ReplanTest.cpp - what moves when machines come or go ---------------===//
//
// Bytes are counted by hand: the chain has an embedding and a head of 4 MB each
// and blocks of 1 MB (attention) and 2 MB (feed-forward); AdamW's two moments
// double that.
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/Replan.h"
#include "plan/Models.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::IsEmpty;

namespace {

constexpr double mb = 1e6;

class StateMovesTest : public testing::Test {
protected:
  Plan plan(llvm::StringRef stages, OptimizerKind optimizer) {
    Plan plan;
    auto replicas = parseStageAssignment(stages);
    EXPECT_TRUE(bool(replicas)) << llvm::toString(replicas.takeError());
    plan.replicas = std::move(*replicas);
    plan.optimizer = optimizer;
    plan.global_batch = 0;
    for (const Replica &replica : plan.replicas)
      plan.global_batch += replica.microbatch_size * replica.microbatches;
    return plan;
  }

  StateMoves moves(llvm::StringRef before, llvm::StringRef after,
                   OptimizerKind optimizer = OptimizerKind::SGD) {
    Plan old = plan(before, optimizer), fresh = plan(after, optimizer);
    EXPECT_THAT(verifyPlan(old, table, cluster), IsEmpty());
    EXPECT_THAT(verifyPlan(fresh, table, left), IsEmpty());
    return findStateMoves(old, cluster, fresh, left, table);
  }

  void lose(unsigned device) {
    std::vector<std::string> names;
    for (const Device &other : cluster.devices())
      if (other.name != cluster.devices()[device].name)
        names.push_back(other.name);
    left = llvm::cantFail(cluster.filter(names));
  }

  UnitTable table = test::makeChain(2); // 4, 1 2, 1 2, 4 MB
  Cluster cluster = test::makeCluster({1, 1, 1, 1});
  Cluster left = cluster;
};

} // namespace

TEST_F(StateMovesTest, NothingMovesWithoutAChange) {
  StateMoves same =
      moves("embed-head@n0/0;embed-head@n1/0",
            "embed-head@n0/0;embed-head@n1/0", OptimizerKind::AdamW);
  EXPECT_EQ(same.movedBytes(), 0);
  // Two copies of 14 MB, and the moments once.
  EXPECT_DOUBLE_EQ(same.there_bytes, (2 * 14 + 2 * 14) * mb);
}

TEST_F(StateMovesTest, ACutMovesOneBlock) {
  StateMoves cut = moves("embed-block0@n0/0,block1-head@n1/0",
                         "embed@n0/0,block0-head@n1/0");
  EXPECT_DOUBLE_EQ(cut.far_bytes, 3 * mb);
  EXPECT_DOUBLE_EQ(cut.there_bytes, (4 + 7) * mb);
  EXPECT_EQ(cut.checkpoint_bytes, 0);
  for (const StateSlice &slice : cut.slices)
    EXPECT_EQ(*slice.from, slice.parameter == 0   ? 0u
                           : slice.parameter <= 2 ? 0u
                                                  : 1u);
}

// The other replica has the weights; half of the moments is gone.
TEST_F(StateMovesTest, ALostReplica) {
  lose(1);
  StateMoves after =
      moves("embed-head@n0/0;embed-head@n1/0",
            "embed-head@n0/0;embed-head@n2/0", OptimizerKind::AdamW);
  EXPECT_DOUBLE_EQ(after.checkpoint_bytes, 14 * mb);
  // n2 gets all weights from n0; n0 keeps its half of the moments.
  EXPECT_DOUBLE_EQ(after.far_bytes, 14 * mb);
  EXPECT_DOUBLE_EQ(after.there_bytes, (14 + 14) * mb);
}

// From halves to three quarters and one: a quarter of the moments moves.
TEST_F(StateMovesTest, SharesInState) {
  Plan even = plan("embed-head@n0/0;embed-head@n1/0", OptimizerKind::AdamW);
  Plan uneven = even;
  uneven.replicas[0].stages[0].state_share = 3;
  StateMoves moved = findStateMoves(even, cluster, uneven, cluster, table);
  EXPECT_DOUBLE_EQ(moved.far_bytes, 0.25 * 28 * mb);
  EXPECT_DOUBLE_EQ(moved.there_bytes, (28 + 0.75 * 28) * mb);
  uneven.replicas[1].stages[0].state_share = 0;
  moved = findStateMoves(uneven, cluster, even, cluster, table);
  EXPECT_DOUBLE_EQ(moved.far_bytes, 0.5 * 28 * mb);
}

TEST_F(StateMovesTest, TensorParallelSlices) {
  cluster = Cluster();
  DeviceKind kind;
  kind.name = "k";
  kind.memory_bytes = 1e9;
  kind.flops_per_s = 1e9;
  unsigned index = cluster.addKind(kind);
  cluster.addNode("a", "", {index, index, index, index});
  left = cluster;
  // From halves to quarters: a/0 keeps half of what it has, a/1's first quarter
  // lies on a/0, and its own last half feeds a/2 and a/3.
  StateMoves split = moves("embed-head@a/0+a/1", "embed-head@a/0+a/1+a/2+a/3");
  EXPECT_DOUBLE_EQ(split.there_bytes, 14 * mb / 4);
  EXPECT_DOUBLE_EQ(split.near_bytes, 14 * mb * 3 / 4);
  EXPECT_EQ(split.far_bytes, 0);
  // Back again: a/0 misses one quarter, a/1 the last two.
  StateMoves merged = moves("embed-head@a/0+a/1+a/2+a/3", "embed-head@a/0+a/1");
  EXPECT_DOUBLE_EQ(merged.near_bytes, 14 * mb * 3 / 4);
  EXPECT_DOUBLE_EQ(merged.there_bytes, 14 * mb / 4);
}

// What is not divided lies on every rank: it need not come again.
TEST_F(StateMovesTest, UndividedParts) {
  for (size_t parameter = 0; parameter < 3; ++parameter)
    table.parameters[parameter].divided = false;
  cluster = Cluster();
  DeviceKind kind;
  kind.name = "k";
  kind.memory_bytes = 1e9;
  kind.flops_per_s = 1e9;
  unsigned index = cluster.addKind(kind);
  cluster.addNode("a", "", {index, index});
  left = cluster;
  StateMoves split = moves("embed-head@a/0", "embed-head@a/0+a/1");
  // Half of it is whole on both: a/0 has 3/4, a/1 gets 3/4.
  EXPECT_DOUBLE_EQ(split.there_bytes, 14 * mb * 3 / 4);
  EXPECT_DOUBLE_EQ(split.near_bytes, 14 * mb * 3 / 4);
}

TEST(Replan, KeepsWhatItCan) {
  UnitTable table = test::makeChain(8);
  Cluster cluster = test::makeCluster({1, 1, 1, 1, 1});
  PlannerOptions options;
  options.global_batch = 60;
  auto before = planCluster(table, cluster, options);
  ASSERT_TRUE(bool(before)) << llvm::toString(before.takeError());
  Cluster left = llvm::cantFail(cluster.filter({"n0", "n1", "n3", "n4"}));
  ReplanOptions again{options};
  auto result = replan(table, before->best.plan, cluster, left, again);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  const Plan &plan = result->planned.best.plan;
  EXPECT_THAT(verifyPlan(plan, table, left), IsEmpty());
  EXPECT_EQ(plan.global_batch, 60);
  EXPECT_GE(result->candidates.size(), 2u);

  // Nothing but speed counts: the fastest candidate. Nothing but moves: the one
  // that moves least.
  again.move_weight = 0;
  auto fastest = replan(table, before->best.plan, cluster, left, again);
  again.speed_weight = 0, again.move_weight = 1;
  auto nearest = replan(table, before->best.plan, cluster, left, again);
  ASSERT_TRUE(fastest && nearest);
  for (const ReplanCandidate &candidate : result->candidates) {
    EXPECT_LE(fastest->planned.best.evaluation.step_s,
              candidate.step.evaluation.step_s);
    EXPECT_LE(nearest->moves.movedBytes(), candidate.moves.movedBytes());
  }
}

// One that joins gets a copy; nobody else moves anything but moments.
TEST(Replan, ADeviceJoins) {
  UnitTable table = test::makeChain(8);
  Cluster cluster = test::makeCluster({1, 1, 1});
  Cluster small = llvm::cantFail(cluster.filter({"n0", "n1"}));
  PlannerOptions options;
  options.global_batch = 60;
  options.optimizer = OptimizerKind::SGD;
  auto before = planCluster(table, small, options);
  ASSERT_TRUE(bool(before));
  auto result = replan(table, before->best.plan, cluster, cluster,
                       ReplanOptions{options});
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(result->planned.best.evaluation.devices.size(), 3u);
  for (const StateSlice &slice : result->moves.slices) {
    EXPECT_TRUE(slice.from.has_value());
    if (!slice.isThere())
      EXPECT_EQ(slice.to, 2u);
  }
}
