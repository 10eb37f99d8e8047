//===- SailorCostsTest.cpp - our search under Sailor's simulator ----------===//

#include "PublishedData.h"
#include "autohet/Planner/Planner.h"
#include "autohet/Planner/Template.h"
#include "autohet/Profiles/SailorSearch.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

constexpr const char *zone = "us-central1-a";

class SailorCostsTest : public testing::Test {
protected:
  void SetUp() override {
    AUTOHET_SKIP_WITHOUT(publishedData("sailor"));
    std::vector<std::string> warnings;
    data = valueOf(loadSailorData(publishedData("sailor"), warnings));
    model = valueOf(data.model("OPT-350"));
    units = unitsOfSailorModel(*model);
  }

  PlannerOptions planning() const {
    PlannerOptions options;
    options.global_batch = 256;
    options.optimizer = OptimizerKind::Adam;
    options.schedule = Schedule::OneForwardOneBackward;
    options.max_microbatch_size = 4;
    options.compare.clear();
    return options;
  }

  SailorData data;
  const SailorModel *model = nullptr;
  UnitTable units;
};

} // namespace

// The search's judge says of a plan what judgeSailorPlan() says of its export,
// and no less than the bound.
TEST_F(SailorCostsTest, JudgesAsSailorDoes) {
  Cluster cluster = valueOf(clusterOfSailorPools({{"A100-40", 4}}, zone, data));
  SailorCosts costs(units, cluster, *model, data, zone, {});
  PlannerResult result = valueOf(planCluster(costs, planning()));
  EXPECT_THAT(verifyPlan(result.best.plan, units, cluster), IsEmpty());
  EXPECT_LE(result.lower_bound_s, result.best.evaluation.step_s);
  SailorPlan plan = valueOf(exportToSailor(costs, result.best.resolved, 256));
  JudgedStep step = valueOf(judgeSailorPlan(plan, *model, data, {}));
  EXPECT_NEAR(step.step_s, result.best.evaluation.step_s, 1e-9);
  EXPECT_TRUE(step.fits());
}

// Unlike replicas and counts only help.
TEST_F(SailorCostsTest, UnevenIsNoWorse) {
  Cluster cluster = valueOf(
      clusterOfSailorPools({{"A100-40", 4}, {"V100-16", 4}}, zone, data));
  SailorCosts costs(units, cluster, *model, data, zone, {});
  PlannerOptions options = planning();
  options.compare = {PlannerMode::AutoHet, PlannerMode::Whale};
  PlannerResult result = valueOf(planCluster(costs, options));
  SailorSearchResult equal = valueOf(searchSailorPlan(
      {{"A100-40", 4}, {"V100-16", 4}}, zone, 256, *model, data, {}));
  EXPECT_LE(result.best.evaluation.step_s, equal.step.step_s * 1.02);
}

TEST_F(SailorCostsTest, WhatWasNotMeasuredFitsNowhere) {
  Cluster cluster = valueOf(clusterOfSailorPools({{"A100-40", 4}}, zone, data));
  SailorCosts costs(units, cluster, *model, data, zone, {});
  StageQuery stage{0, model->layer_count, 0, 3};
  EXPECT_EQ(costs.mostInFlight(stage, 0) > 0,
            model->findSeconds("A100-40", 3, 1) != nullptr);
  stage.microbatch_size = 1000;
  EXPECT_EQ(costs.mostInFlight(stage, 0), 0);
}

TEST_F(SailorCostsTest, SaysWhatSailorCannot) {
  Cluster cluster = valueOf(clusterOfSailorPools({{"A100-40", 4}}, zone, data));
  SailorCosts costs(units, cluster, *model, data, zone, {});
  ResolvedPlan plan;
  for (unsigned device : {0, 1}) {
    ResolvedReplica replica;
    replica.microbatch_size = 1;
    replica.microbatches = device + 1;
    ResolvedStage stage;
    for (unsigned unit = 0; unit < model->layer_count; ++unit)
      stage.units.push_back(unit);
    stage.devices = {device};
    stage.weights = {1};
    replica.stages = {stage};
    plan.replicas.push_back(replica);
  }
  auto exported = exportToSailor(costs, plan, 3);
  ASSERT_FALSE(bool(exported));
  EXPECT_THAT(llvm::toString(exported.takeError()),
              HasSubstr("replica 1 has 2 microbatches"));
  Cluster strange;
  DeviceKind kind;
  kind.name = "abacus";
  strange.addNode("a", "", strange.addKind(kind));
  llvm::Error error = SailorCosts::check(strange, *model, data, zone);
  EXPECT_THAT(llvm::toString(std::move(error)), HasSubstr("A100-40"));
}
