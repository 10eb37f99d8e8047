//===- MixImprovementTest.cpp - small changes to whole plans --------------===//

#include "autohet/Planner/UnitTableCosts.h"
#include "lib/Planner/JointSearch.h"
#include "lib/Planner/MixNeighbours.h"
#include "planner/Instances.h"

#include "llvm/ADT/STLExtras.h"
#include "gmock/gmock.h"

using namespace autohet;
using test::Instance;
using test::Random;

namespace {

/// A random instance, and what planners are asked about it.
struct Problem {
  explicit Problem(Random &random)
      : instance(test::makeInstance(random, 5, 6)),
        costs(instance.table, instance.cluster, OptimizerKind::AdamW) {
    options.global_batch = instance.global_batch;
  }

  Instance instance;
  UnitTableCosts costs;
  PlannerOptions options;
};

/// A replica of all units on one device, for some devices.
ResolvedPlan onePerReplica(Random &random, const Instance &instance) {
  ResolvedPlan plan;
  for (unsigned device = 0; device < instance.cluster.devices().size();
       ++device) {
    if (device && random.below(3) == 0)
      continue;
    ResolvedReplica &replica = plan.replicas.emplace_back();
    ResolvedStage &stage = replica.stages.emplace_back();
    for (unsigned unit = 0; unit < instance.table.units.size(); ++unit)
      stage.units.push_back(unit);
    stage.devices = {device};
    stage.weights = {1};
  }
  plan.replicas.front().microbatches = instance.global_batch;
  return plan;
}

/// The classes' devices that a mix takes, whatever its templates know of it.
ClassCounts devicesOfStages(const TemplateMix &mix, const PlanCosts &costs) {
  ClassCounts counts(costs.classes().size());
  for (const CountedTemplate &entry : mix)
    for (const TemplateStage &stage : entry.made.stages)
      for (const StageShape::Part &part : costs.shapes()[stage.shape].parts)
        counts[part.machine_class] += part.count * entry.replicas;
  return counts;
}

} // namespace

TEST(MixNeighbours, AreMixesOfWholePipelines) {
  Random random(11);
  unsigned neighbours = 0;
  for (int round = 0; round < 200; ++round) {
    Problem problem(random);
    const PlanCosts &costs = problem.costs;
    TemplateSpace space = {costs, microbatchSizes(problem.options)};
    TemplateSearch search(space, problem.options.global_batch);
    std::optional<TemplateMix> mix =
        mixOfPlan(onePerReplica(random, problem.instance), costs);
    ASSERT_TRUE(mix) << round;
    for (CountedTemplate &entry : *mix)
      measureTemplate(entry.made, space);
    ClassCounts available = costs.classes().counts();
    // A neighbour's neighbours have pipelines, too.
    for (unsigned step = 0; step < 3; ++step) {
      std::vector<TemplateMix> all = neighboursOf(*mix, search, available);
      if (all.empty())
        break;
      for (const TemplateMix &other : all) {
        ++neighbours;
        for (auto [used, most] :
             llvm::zip_equal(devicesOfStages(other, costs), available))
          EXPECT_LE(used, most) << round;
        for (const CountedTemplate &entry : other) {
          EXPECT_GT(entry.replicas, 0) << round;
          unsigned begin = 0;
          for (const TemplateStage &stage : entry.made.stages) {
            EXPECT_EQ(stage.begin, begin) << round;
            EXPECT_GT(stage.end, begin) << round;
            begin = stage.end;
          }
          EXPECT_EQ(begin, problem.instance.table.units.size()) << round;
        }
      }
      mix = all[random.below(all.size())];
      for (CountedTemplate &entry : *mix)
        measureTemplate(entry.made, space);
    }
  }
  EXPECT_GT(neighbours, 2000u);
}

TEST(MixOfPlan, IsWhatWasPlaced) {
  Random random(12);
  unsigned placed = 0;
  for (int round = 0; round < 200; ++round) {
    Problem problem(random);
    const PlanCosts &costs = problem.costs;
    TemplateSpace space = {costs, microbatchSizes(problem.options)};
    TemplateSearch search(space, problem.options.global_batch);
    ClassCounts devices = costs.classes().counts();
    std::optional<Template> made = search.withDevices(devices, 1);
    if (!made)
      continue;
    std::optional<ResolvedPlan> plan =
        placeTemplates({{*made, 1}}, costs, PlacementOrder::BySize);
    if (!plan)
      continue;
    ++placed;
    std::optional<TemplateMix> mix = mixOfPlan(*plan, costs);
    ASSERT_TRUE(mix) << round;
    ASSERT_EQ(mix->size(), 1u) << round;
    EXPECT_EQ(mix->front().replicas, 1) << round;
    EXPECT_TRUE(mix->front().made.isSame(*made)) << round;
  }
  EXPECT_GT(placed, 100u);
}

// Few microbatches want wide stages: those are all that is left, and no period
// becomes shorter by it.
TEST(TemplateSearch, StagesHaveAtLeastSoManyDevices) {
  constexpr unsigned leastStage = 2;
  Random random(13);
  unsigned wider = 0;
  for (int round = 0; round < 200; ++round) {
    Problem problem(random);
    const PlanCosts &costs = problem.costs;
    TemplateSearch search({costs, microbatchSizes(problem.options)},
                          problem.options.global_batch);
    ClassCounts devices = costs.classes().counts();
    std::optional<Template> any = search.withDevices(devices, 1);
    std::optional<Template> wide = search.withDevices(devices, 1, leastStage);
    auto isWide = [&](const TemplateStage &stage) {
      unsigned size = 0;
      for (const StageShape::Part &part : costs.shapes()[stage.shape].parts)
        size += part.count;
      return size >= leastStage;
    };
    if (any && llvm::all_of(any->stages, isWide)) {
      ASSERT_TRUE(wide) << round;
      EXPECT_TRUE(wide->isSame(*any)) << round;
    }
    if (!wide)
      continue;
    ASSERT_TRUE(any) << round;
    EXPECT_TRUE(llvm::all_of(wide->stages, isWide)) << round;
    // Periods are halved until two in a thousand are left.
    EXPECT_GE(wide->period_s, any->period_s * (1 - 4e-3)) << round;
    wider += !wide->isSame(*any);
  }
  EXPECT_GT(wider, 20u);
}

// From the plainest plan that there is, it comes near what the whole search
// finds; and never below the bound.
TEST(MixImprovement, MakesPlansBetterDownToTheBound) {
  Random random(13);
  unsigned better = 0, asGood = 0, all = 0;
  for (int round = 0; round < 300; ++round) {
    Problem problem(random);
    const PlanCosts &costs = problem.costs;
    const PlannerOptions &options = problem.options;
    Judge whole(costs, options);
    JointSearch joint(whole);
    joint.run();
    if (!whole.best)
      continue;
    Judge judge(costs, options);
    ResolvedPlan start = onePerReplica(random, problem.instance);
    start.replicas.resize(1);
    judge.consider(start);
    if (!judge.best)
      continue; // one device cannot hold the model
    double before = judge.bestSeconds();
    MixSearch mixes(judge, microbatchSizes(options));
    MixImprovement improvement(mixes, judge);
    improvement.run(start);
    EXPECT_LE(judge.bestSeconds(), before) << round;
    EXPECT_GE(judge.bestSeconds(), joint.boundSeconds() * (1 - 1e-9)) << round;
    ++all;
    better += judge.bestSeconds() < before;
    asGood += judge.bestSeconds() < 1.05 * whole.bestSeconds();
  }
  // Of some instances one device is the best plan.
  EXPECT_GT(better, all / 2) << better << " of " << all;
  EXPECT_GT(asGood, all / 2) << asGood << " of " << all;
}
