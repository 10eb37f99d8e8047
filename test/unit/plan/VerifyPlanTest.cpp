//===- VerifyPlanTest.cpp - wrong plans are refused with the reason -------===//

#include "autohet/Plan/Plan.h"
#include "plan/Models.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class VerifyPlan : public testing::Test {
protected:
  /// A plan from its text form, for the global batch that it makes.
  Plan plan(llvm::StringRef text) {
    Plan plan;
    auto replicas = parseStageAssignment(text);
    EXPECT_TRUE(static_cast<bool>(replicas));
    plan.replicas = std::move(*replicas);
    plan.structure_hash = table.structure_hash;
    plan.global_batch = 0;
    for (const Replica &replica : plan.replicas)
      plan.global_batch += replica.microbatches * replica.microbatch_size;
    return plan;
  }

  std::vector<std::string> verify(llvm::StringRef text) {
    return verifyPlan(plan(text), table, cluster);
  }

  UnitTable table = test::makeChain(2);
  Cluster cluster = test::makeCluster({4, 2, 1, 1});
};

} // namespace

TEST_F(VerifyPlan, AcceptsLegalOnes) {
  EXPECT_THAT(verify("embed-head@n0/0"), IsEmpty());
  EXPECT_THAT(verify("5x4: embed-head@n0/0; 3x2: embed@n1/0, "
                     "block0-head@n2/0+n3/0(2:1)"),
              IsEmpty());
  // Stages with only an embedding or only a head; not consecutive units.
  EXPECT_THAT(verify("embed@n0/0, block0-block1@n1/0, head@n2/0"), IsEmpty());
}

TEST_F(VerifyPlan, Resolves) {
  ResolvedPlan resolved = resolvePlan(
      plan("3x2: embed@n1/0, block0-head@n3/0+n2/0"), table, cluster);
  ASSERT_EQ(resolved.replicas.size(), 1u);
  EXPECT_EQ(resolved.replicas[0].microbatches, 3);
  EXPECT_THAT(resolved.replicas[0].stages[1].units, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(resolved.replicas[0].stages[1].devices, ElementsAre(3, 2));
  EXPECT_THAT(resolved.replicas[0].stages[1].weights, ElementsAre(1, 1));
}

TEST_F(VerifyPlan, UnitsOnce) {
  EXPECT_THAT(verify("embed@n0/0, block0-block1@n1/0"),
              ElementsAre("replica 0: no stage computes head"));
  EXPECT_THAT(verify("embed-block1@n0/0, block1-head@n1/0"),
              ElementsAre("replica 0: unit 'block1.attn' is computed twice, by "
                          "stage 0 and stage 1",
                          "replica 0: unit 'block1.mlp' is computed twice, by "
                          "stage 0 and stage 1"));
  EXPECT_THAT(verify("embed-block9@n0/0"),
              ElementsAre(HasSubstr("stage 0: unknown unit 'block9'")));
}

TEST_F(VerifyPlan, DevicesOnce) {
  EXPECT_THAT(verify("embed-head@n7/0"),
              ElementsAre("replica 0, stage 0: unknown device 'n7/0'; the "
                          "cluster has n0/0, n1/0, n2/0, n3/0"));
  EXPECT_THAT(verify("embed-head@n0/0; embed-head@n0/0"),
              ElementsAre("replica 1, stage 0: device 'n0/0' is used twice, "
                          "also by replica 0, stage 0"));
}

TEST_F(VerifyPlan, StagesInOneOrder) {
  EXPECT_THAT(verify("block0-head@n0/0, embed@n1/0"),
              ElementsAre(HasSubstr("stages are not in one order: 'embed' of "
                                    "stage 1 feeds 'block0.attn' of the "
                                    "earlier stage 0")));
  EXPECT_THAT(verify("embed&block1&head@n0/0, block0@n1/0"),
              ElementsAre(HasSubstr("stages are not in one order")));
}

TEST_F(VerifyPlan, OtherCluster) {
  EXPECT_THAT(verify("embed-head@x/0+x/1+x/2+x/3"),
              ElementsAre(HasSubstr("unknown device 'x/0'"),
                          HasSubstr("unknown device 'x/1'"),
                          "and 2 more devices that the cluster does not have; "
                          "was the plan made for another one?"));
}

TEST_F(VerifyPlan, Batch) {
  Plan wrong = plan("3x4: embed-head@n0/0; 5x4: embed-head@n1/0");
  wrong.global_batch = 30;
  EXPECT_THAT(verifyPlan(wrong, table, cluster),
              ElementsAre("the replicas compute 3 x 4 + 5 x 4 = 32 samples, "
                          "but the global batch is 30; the nearest that these "
                          "microbatch sizes can make are 28 and 32"));
  wrong.global_batch = 40;
  EXPECT_THAT(
      verifyPlan(wrong, table, cluster),
      ElementsAre(HasSubstr("can make it with other counts, as 5 x 4 + 5 "
                            "x 4")));
  Plan unequal = plan("9x4: embed-head@n0/0; 1x6: embed-head@n1/0");
  unequal.global_batch = 16;
  EXPECT_THAT(verifyPlan(unequal, table, cluster),
              ElementsAre(HasSubstr("with other counts, as 1 x 4 + 2 x 6")));
  wrong.global_batch = 3;
  EXPECT_THAT(verifyPlan(wrong, table, cluster),
              ElementsAre(HasSubstr("the least that these microbatch sizes can "
                                    "make is 8")));
  // 2^32 times 2^32 is 0 in 64 bits.
  wrong = plan("4294967296x4294967296: embed-head@n0/0; 1x8: embed-head@n1/0");
  wrong.global_batch = 8;
  EXPECT_THAT(verifyPlan(wrong, table, cluster),
              ElementsAre("replica 0: 'microbatches' is 4294967296, at most "
                          "65536"));
}

TEST_F(VerifyPlan, NearestBatches) {
  auto nearest = nearestBatches({4, 6}, 15);
  EXPECT_EQ(nearest.first, 14);
  EXPECT_EQ(nearest.second, 16);
  EXPECT_EQ(nearestBatches({3, 5}, 8).first, 8);
  EXPECT_EQ(nearestBatches({3, 5}, 7).second, 8);
  EXPECT_FALSE(nearestBatches({3, 5}, 7).first);
}

TEST_F(VerifyPlan, Shares) {
  Plan wrong = plan("embed-head@n0/0+n1/0(2:1:1)");
  EXPECT_THAT(verifyPlan(wrong, table, cluster),
              ElementsAre(HasSubstr("has 3 shares for 2 devices")));
  EXPECT_THAT(verify("embed-head@n0/0+n1/0(1:0)"),
              ElementsAre(HasSubstr("leave a device that computes nothing")));
  wrong = plan("embed-head@n0/0+n1/0");
  // Their sum is beyond 64 bits.
  wrong.replicas[0].stages[0].tensor_parallel = {INT64_MAX / 2 + 1,
                                                 INT64_MAX / 2 + 1};
  EXPECT_THAT(verifyPlan(wrong, table, cluster),
              ElementsAre(HasSubstr("are too large")));
}

TEST_F(VerifyPlan, OtherModel) {
  Plan other = plan("embed-head@n0/0");
  other.structure_hash = 1;
  EXPECT_THAT(verifyPlan(other, table, cluster),
              ElementsAre("the plan is of another model: its structure hash is "
                          "0000000000000001, this model's is "
                          "0123456789abcdef; plan anew, or take the key "
                          "'structure_hash' out of the plan if the units "
                          "are the same"));
  other.structure_hash = 0;
  EXPECT_THAT(verifyPlan(other, table, cluster), IsEmpty());
}

TEST_F(VerifyPlan, Owner) {
  Plan owned = plan("embed-head@n0/0");
  owned.state_owner = "n0/0";
  EXPECT_THAT(verifyPlan(owned, table, cluster), IsEmpty());
  owned.state_owner = "n1/0";
  EXPECT_THAT(verifyPlan(owned, table, cluster),
              ElementsAre(HasSubstr("a device that the plan does not use")));
  owned.state_owner = "nobody";
  EXPECT_THAT(verifyPlan(owned, table, cluster),
              ElementsAre(HasSubstr("neither spread, first, nor a device")));
}

TEST_F(VerifyPlan, Memory) {
  auto memory = [](const ResolvedPlan &plan, unsigned, unsigned stage,
                   unsigned) { return stage == 1 ? 1.5 * 0x1p30 : 1e6; };
  EXPECT_THAT(
      verifyPlan(plan("embed@n0/0, block0-head@n1/0"), table, cluster, memory),
      ElementsAre("replica 0, stage 1: device 'n1/0' needs 1.50 GiB "
                  "but has 953.7 MiB: 582.3 MiB too much"));
  EXPECT_THAT(verifyPlan(plan("embed-head@n0/0"), table, cluster, memory),
              IsEmpty());
}

TEST_F(VerifyPlan, NothingAtAll) {
  Plan empty;
  EXPECT_THAT(verifyPlan(empty, table, cluster),
              ElementsAre("a plan needs at least one replica"));
  empty.replicas.resize(1);
  EXPECT_THAT(verifyPlan(empty, table, cluster),
              testing::Contains("replica 0: has no stages"));
}

TEST_F(VerifyPlan, SharesInState) {
  Plan two = plan("embed-head@n0/0; embed-head@n1/0");
  Stage &first = two.replicas[0].stages[0], &second = two.replicas[1].stages[0];
  first.state_share = 0;
  EXPECT_THAT(verifyPlan(two, table, cluster), IsEmpty());
  second.state_share = 0;
  EXPECT_THAT(
      verifyPlan(two, table, cluster),
      ElementsAre("nobody owns the optimizer state of unit 'embed': all "
                  "stages that compute it have 'state_share' 0"));
  second.state_share = 1000001;
  EXPECT_THAT(
      verifyPlan(two, table, cluster),
      ElementsAre("replica 1, stage 0: 'state_share' is 1000001, wanted "
                  "0 to 1000000"));
  second.state_share = 3;
  two.state_owner = "first";
  EXPECT_THAT(
      verifyPlan(two, table, cluster),
      ElementsAre(HasSubstr("replica 0, stage 0: 'state_share' is for spread "
                            "state, but 'state_owner' is first"),
                  HasSubstr("replica 1, stage 0")));
}
