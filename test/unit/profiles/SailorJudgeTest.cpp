//===- SailorJudgeTest.cpp - Sailor's formulas ----------------------------===//

#include "PublishedData.h"
#include "autohet/Profiles/SailorSearch.h"

#include "gmock/gmock.h"

using namespace autohet;
using testing::HasSubstr;

namespace {

class Judged : public testing::Test {
protected:
  // Read once: half a megabyte of JSON.
  static void SetUpTestSuite() {
    std::string folder = publishedData("sailor");
    if (folder.empty())
      return;
    std::vector<std::string> warnings;
    data = valueOf(loadSailorData(folder, warnings));
  }
  void SetUp() override {
    AUTOHET_SKIP_WITHOUT(publishedData("sailor"));
    model = valueOf(data.model("OPT-350"));
  }

  static SailorGroup group(const char *kind, int64_t tensor) {
    return {kind, 4, "us-central1-a", tensor};
  }

  static SailorData data;
  const SailorModel *model = nullptr;
};

SailorData Judged::data;

// The best that planners of others found for 4 A100 and 4 V100, and an
// exhaustive search over plans of one kind a stage: both figures are known.
TEST_F(Judged, KnownPlans) {
  SailorPlan mixed;
  mixed.microbatch_size = 2;
  mixed.global_batch = 1024;
  std::vector<SailorGroup> groups(4, group("A100-40", 1));
  groups.push_back(group("V100-16", 4));
  mixed.pipelines.push_back({{{0, 26, groups}}});
  EXPECT_NEAR(valueOf(judgeSailorPlan(mixed, *model, data, {})).step_s, 42.86,
              0.005);

  for (auto [each, seconds] : {std::pair(4, 43.33), std::pair(8, 22.45)}) {
    SailorPlan plain;
    plain.microbatch_size = 2;
    plain.global_batch = 1024;
    std::vector<SailorGroup> slow(each, group("V100-16", 1));
    std::vector<SailorGroup> fast(each, group("A100-40", 1));
    plain.pipelines.push_back({{{0, 7, slow}, {7, 26, fast}}});
    JudgedStep step = valueOf(judgeSailorPlan(plain, *model, data, {}));
    EXPECT_NEAR(step.step_s, seconds, 0.02);
    EXPECT_TRUE(step.fits());
  }
}

TEST_F(Judged, EqualReplicasCostWhatTheirPlanCosts) {
  SailorPlan plan;
  plan.microbatch_size = 2;
  plan.global_batch = 1024;
  plan.pipelines.push_back({{{0, 7, {4, group("V100-16", 2)}},
                             {7, 17, {4, group("A100-40", 1)}},
                             {17, 26, {4, group("A100-40", 1)}}}});
  std::vector<JudgedReplica> replicas(4, {{{0, 7, group("V100-16", 2)},
                                           {7, 17, group("A100-40", 1)},
                                           {17, 26, group("A100-40", 1)}},
                                          2,
                                          128});
  for (bool shared : {false, true}) {
    JudgedStep one = valueOf(judgeSailorPlan(plan, *model, data, {shared}));
    JudgedStep other = valueOf(judgeReplicas(replicas, *model, data, {shared}));
    EXPECT_DOUBLE_EQ(one.step_s, other.step_s);
    EXPECT_DOUBLE_EQ(one.sync_s, other.sync_s);
    EXPECT_DOUBLE_EQ(one.room_bytes, other.room_bytes);
  }
}

TEST_F(Judged, RanksOfANodeShareItsNic) {
  SailorPlan plan;
  plan.microbatch_size = 2;
  plan.global_batch = 1024;
  plan.pipelines.push_back({{{0, 26, {4, group("V100-16", 2)}}}});
  double own = valueOf(judgeSailorPlan(plan, *model, data, {false})).sync_s;
  double shared = valueOf(judgeSailorPlan(plan, *model, data, {true})).sync_s;
  EXPECT_GT(shared, 1.1 * own);
  EXPECT_LT(shared, 2 * own);
}

TEST_F(Judged, RefusesWhatIsNotProfiled) {
  SailorPlan plan;
  plan.microbatch_size = 16;
  plan.global_batch = 1024;
  plan.pipelines.push_back({{{0, 26, {group("V100-16", 1)}}}});
  EXPECT_THAT(
      errorOf(judgeSailorPlan(plan, *model, data, {})),
      HasSubstr("no profile of 'OPT-350' on 'V100-16' with microbatches "
                "of 16 on tensor parallelism 1; known"));
  plan.microbatch_size = 4;
  plan.pipelines[0].stages[0].end = 25;
  EXPECT_EQ(errorOf(judgeSailorPlan(plan, *model, data, {})),
            "the stages have 25 layers, the model 26");
}

// No planner of others found a better plan for these.
TEST_F(Judged, SearchMatchesOrBeatsTheBestPublishedPlans) {
  const SailorModel &large = *valueOf(data.model("GPT-Neo-2.7"));
  struct Case {
    const SailorModel *model;
    int64_t batch, gpus;
    double peer_s;
  };
  for (const Case &problem :
       {Case{model, 1024, 4, 42.86}, Case{model, 1024, 8, 22.454},
        Case{&large, 2048, 4, 0.85 * 347.6},
        Case{&large, 2048, 16, 0.92 * 83.3}}) {
    SailorSearchResult result = valueOf(searchSailorPlan(
        {{"A100-40", problem.gpus}, {"V100-16", problem.gpus}}, "us-central1-a",
        problem.batch, *problem.model, data, {}));
    EXPECT_LE(result.step.step_s, problem.peer_s);
    EXPECT_TRUE(result.step.fits());
    // What is written is what was judged.
    SailorPlan read =
        valueOf(parseSailorPlan(formatSailorPlan(result.plan), "p"));
    EXPECT_DOUBLE_EQ(
        valueOf(judgeSailorPlan(read, *problem.model, data, {})).step_s,
        result.step.step_s);
  }
}

TEST_F(Judged, SearchRefusesWhatItCannotPlan) {
  EXPECT_EQ(errorOf(searchSailorPlan({}, "us-central1-a", 8, *model, data, {})),
            "plans of 0 kinds: one or two are supported");
  EXPECT_THAT(errorOf(searchSailorPlan({{"TPU", 4}}, "us-central1-a", 8, *model,
                                       data, {})),
              HasSubstr("unknown device kind 'TPU'; known kinds: A100-40"));
  EXPECT_THAT(errorOf(searchSailorPlan({{"V100-16", 1}}, "us-central1-a", 8,
                                       *model, data, {})),
              HasSubstr("no profiled plan of 'OPT-350' fits"));
}

} // namespace
