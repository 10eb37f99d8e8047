//===- TemplateTest.cpp - prices, templates and bounds --------------------===//

#include "autohet/Planner/StepBound.h"
#include "autohet/Planner/UnitTableCosts.h"
#include "lib/Planner/PriceProblem.h"
#include "planner/Instances.h"

#include "gmock/gmock.h"

using namespace autohet;
using test::Instance;
using test::Random;

namespace {

std::vector<int64_t> allSizes(int64_t batch) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= batch; ++size)
    sizes.push_back(size);
  return sizes;
}

/// All ways to cut units [begin, n) into stages on any shapes.
template <typename Visit>
void forAllStages(const TemplateSpace &space, unsigned begin,
                  std::vector<TemplateStage> &stages, Visit visit) {
  unsigned units = space.costs.units().units.size();
  if (begin == units)
    return visit(stages);
  for (unsigned end = begin + 1; end <= units; ++end)
    for (unsigned shape = 0; shape < space.costs.shapes().size(); ++shape)
      for (Keeping keeping : {Keeping::All, Keeping::Inputs, Keeping::OnHost}) {
        if (!space.allows(keeping, shape))
          continue;
        stages.push_back({begin, end, shape, keeping});
        forAllStages(space, end, stages, visit);
        stages.pop_back();
      }
}

} // namespace

// Weak duality certifies both sides: the weights prove that no prices are
// better.
TEST(PriceProblem, PrimalMeetsDual) {
  Random random(1);
  for (int round = 0; round < 1500; ++round) {
    PriceProblem problem;
    problem.resource_count = 1 + random.below(5);
    for (unsigned i = 0; i <= random.below(12); ++i) {
      PriceProblem::Plane &plane = problem.planes.emplace_back();
      plane.constant = random.real(-1, 2);
      for (unsigned r = 0; r < problem.resource_count; ++r)
        plane.slopes.push_back(random.below(3) ? random.real(0, 5) : 0);
    }
    ASSERT_EQ(problem.check(), "");
    PriceSolution solution = solvePrices(problem);
    double sum = 0, upper = 0, longest = 0;
    for (double price : solution.prices) {
      EXPECT_GE(price, 0);
      sum += price;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    double weights = 0;
    for (auto [index, plane] : llvm::enumerate(problem.planes)) {
      weights += solution.weights[index];
      upper += solution.weights[index] * plane.constant;
    }
    EXPECT_NEAR(weights, 1, 1e-9);
    for (unsigned r = 0; r < problem.resource_count; ++r) {
      double used = 0;
      for (auto [index, plane] : llvm::enumerate(problem.planes))
        used += solution.weights[index] * plane.slopes[r];
      longest = std::max(longest, used);
    }
    EXPECT_NEAR(solution.objective, problem.objective(solution.prices), 1e-9);
    ASSERT_NEAR(solution.objective, upper + longest, 1e-8) << round;
  }
}

// The cheapest template: bound ≤ brute force ≤ found, and near it where every
// stage has a microbatch of its own.
static void
compareWithBruteForce(int rounds, OptimizerKind optimizer,
                      std::optional<PlanObjective> forwardOnly = std::nullopt,
                      unsigned maxUnits = 3, unsigned maxDevices = 4) {
  Random random(2);
  unsigned solved = 0, impossible = 0, tight = 0, loose = 0;
  for (int round = 0; round < rounds; ++round) {
    Instance instance = test::makeInstance(random, maxUnits, maxDevices);
    if (round % 2)
      instance.global_batch = 40 + random.below(100);
    if (forwardOnly) {
      test::dropBackward(instance.table);
      instance.allow_recompute = false;
    }
    UnitTableCosts costs(instance.table, instance.cluster, optimizer, 1,
                         forwardOnly.value_or(PlanObjective::Latency));
    TemplateSpace space = {
        costs, allSizes(std::min<int64_t>(3, instance.global_batch)),
        instance.allow_recompute, 1, 2};
    space.allow_offload = round % 3 == 0;
    DevicePrices prices;
    for (unsigned i = 0; i < costs.classes().size(); ++i)
      prices.of_class.push_back(random.real(0, 2));
    prices.of_replica = random.below(2) ? 0 : random.real(0, 0.5);
    // Large replicas may be dear, and none is larger than the cluster.
    bool hasSizes = random.below(3) == 0;
    ClassCounts available = costs.classes().counts();
    double sum = 0;
    for (unsigned count : available) {
      prices.part_of_class.push_back(hasSizes ? random.real(0.1, 2) : 0);
      sum += count * prices.part_of_class.back();
    }
    for (double &part : prices.part_of_class)
      part /= hasSizes ? sum : 1;
    for (unsigned i = 0; hasSizes && i < 3; ++i)
      prices.of_large.push_back(random.below(2) ? 0 : random.real(0, 0.5));

    double exact = std::numeric_limits<double>::infinity();
    std::vector<TemplateStage> stages;
    for (int64_t size : space.microbatch_sizes)
      forAllStages(space, 0, stages, [&](const auto &candidate) {
        Template made;
        made.microbatch_size = size;
        made.stages = candidate;
        if (!checkTemplate(made, space, space.ownedAtBest()).empty())
          return;
        measureTemplate(made, space);
        if (hasSizes && prices.sizeOf(made.devices) > 1 + 1e-9)
          return;
        exact = std::min(exact,
                         chargedSeconds(made, prices, instance.global_batch));
      });
    TemplateSearch search(space, instance.global_batch);
    TemplateSearch::Cheapest cheapest =
        search.cheapest(prices, std::numeric_limits<double>::infinity(), 1e-3);
    if (exact == std::numeric_limits<double>::infinity()) {
      ++impossible;
      continue;
    }
    ++solved;
    ASSERT_LE(cheapest.bound_s, exact * (1 + 1e-9)) << round;
    ASSERT_FALSE(cheapest.found.empty()) << round;
    double found =
        chargedSeconds(cheapest.found.front(), prices, instance.global_batch);
    double least =
        *std::min_element(prices.of_class.begin(), prices.of_class.end());
    if (hasSizes ||
        least * static_cast<double>(instance.global_batch) < 3 * 1.2)
      continue; // pipelines may have fewer microbatches than stages
    ++(cheapest.bound_s > 0.99 * exact && found < 1.01 * exact ? tight : loose);
  }
  EXPECT_GT(solved, rounds / 2u);
  EXPECT_GT(impossible, forwardOnly ? 0u : 20u);
  EXPECT_GT(tight, 8 * loose) << tight << " " << loose;
}

TEST(TemplateSearch, BoundIsBelowBruteForce) {
  compareWithBruteForce(1200, OptimizerKind::AdamW);
}

// Deep pipelines drain early, and their whole microbatches are few.
TEST(TemplateSearch, BoundIsBelowBruteForceInLongChains) {
  compareWithBruteForce(300, OptimizerKind::SGD, std::nullopt, /*maxUnits=*/6,
                        /*maxDevices=*/2);
}

TEST(TemplateSearch, BoundIsBelowBruteForceWithoutABackward) {
  for (PlanObjective objective :
       {PlanObjective::Latency, PlanObjective::Throughput})
    compareWithBruteForce(500, OptimizerKind::None, objective);
}

// Whatever classes are worth, also nothing.
TEST(TemplateSearch, LeastDevicesAreBruteForces) {
  Random random(5);
  unsigned solved = 0, impossible = 0;
  for (int round = 0; round < 400; ++round) {
    Instance instance = test::makeInstance(random, 4, 4);
    UnitTableCosts costs(instance.table, instance.cluster,
                         OptimizerKind::AdamW);
    TemplateSpace space = {costs,
                           {1, 2},
                           instance.allow_recompute,
                           1,
                           static_cast<int64_t>(1 + random.below(3))};
    std::vector<double> prices;
    for (unsigned i = 0; i < costs.classes().size(); ++i)
      prices.push_back(random.below(3) ? random.real(0, 2) : 0);
    auto priceOf = [&](const ClassCounts &devices) {
      double sum = 0;
      for (auto [count, price] : llvm::zip_equal(devices, prices))
        sum += count * price;
      return sum;
    };
    std::optional<double> least;
    std::vector<TemplateStage> stages;
    forAllStages(space, 0, stages, [&](const auto &candidate) {
      ClassCounts devices(prices.size());
      for (const TemplateStage &stage : candidate) {
        if (costs.mostInFlight(
                {stage.begin, stage.end, stage.shape, 1, stage.keeping},
                space.ownedAtBest()) < 1)
          return;
        for (const StageShape::Part &part : costs.shapes()[stage.shape].parts)
          devices[part.machine_class] += part.count;
      }
      least = std::min(least.value_or(priceOf(devices)), priceOf(devices));
    });
    std::optional<ClassCounts> found =
        TemplateSearch(space, instance.global_batch).leastDevices(prices);
    ASSERT_EQ(found.has_value(), least.has_value()) << round;
    ++(found ? solved : impossible);
    if (found) {
      ASSERT_NEAR(priceOf(*found), *least, 1e-9) << round;
    }
  }
  EXPECT_GT(solved, 200u);
  EXPECT_GT(impossible, 10u);
}

namespace {

/// A template of one device a stage, and the plan of it alone.
struct Placed {
  Template made;
  ResolvedPlan plan;
};

Placed placeChain(Random &random, const PlanCosts &costs) {
  Placed result;
  unsigned units = costs.units().units.size();
  unsigned devices = costs.machines().devices().size();
  unsigned stages = std::min(devices, units);
  result.made.microbatch_size = 1 + random.below(3);
  ResolvedReplica &replica = result.plan.replicas.emplace_back();
  replica.microbatch_size = result.made.microbatch_size;
  unsigned begin = 0;
  for (unsigned s = 0; s < stages; ++s) {
    unsigned left = stages - s - 1;
    unsigned end =
        left ? begin + 1 + random.below(units - begin - left) : units;
    unsigned shape = 0;
    for (auto [index, other] : llvm::enumerate(costs.shapes()))
      if (other.deviceCount() == 1 &&
          other.mainClass() == costs.classes().classOf(s))
        shape = index;
    result.made.stages.push_back({begin, end, shape});
    ResolvedStage &stage = replica.stages.emplace_back();
    for (unsigned unit = begin; unit < end; ++unit)
      stage.units.push_back(unit);
    stage.devices = {s};
    stage.weights = {1};
    begin = end;
  }
  return result;
}

} // namespace

// What solvers plan with against the judge's events. One-forward-one-backward
// starts and ends with up to two periods that the recurrence does not see, so
// it is within 2 % of many microbatches, over links that are not the pace; run
// event by event, templates are so for any number.
TEST(Template, TimesAreNearTheJudge) {
  Random random(3);
  double worst = 0;
  for (int round = 0; round < 300; ++round) {
    Instance instance = test::makeInstance(random, 6, 4);
    bool isFast = round % 2;
    if (isFast)
      instance.cluster.inter_node = {1e12, 0};
    // Templates do not know which nodes their stages will lie in.
    instance.cluster.intra_node = instance.cluster.inter_node;
    UnitTableCosts costs(instance.table, instance.cluster,
                         OptimizerKind::AdamW);
    Placed placed = placeChain(random, costs);
    TemplateSpace space = {costs, {placed.made.microbatch_size}};
    Template &made = placed.made;
    measureTemplate(made, space);
    int64_t microbatches = isFast ? 150 : 2 + random.below(60);
    placed.plan.replicas[0].microbatches = microbatches;
    double judged =
        costs.evaluate(placed.plan, Schedule::OneForwardOneBackward, "spread")
            .pipeline_s;
    if (judged == 0)
      continue;
    if (isFast) {
      double recurrence = made.seconds(microbatches) - made.rest_s;
      EXPECT_NEAR(recurrence / judged, 1, 0.02) << round;
      // No schedule is faster than the bound.
      EXPECT_LE(made.way_s - made.slack_s +
                    static_cast<double>(microbatches - 1) * made.period_s,
                judged * (1 + 1e-9))
          << round;
    }
    runTemplate(made, costs, microbatches);
    worst = std::max(
        worst,
        std::abs((made.seconds(microbatches) - made.rest_s) / judged - 1));
  }
  EXPECT_LT(worst, 0.02);
}

// Without a backward the recurrence is what happens.
TEST(Template, ForwardTimesAreTheJudges) {
  Random random(4);
  for (int round = 0; round < 300; ++round) {
    Instance instance = test::makeInstance(random, 6, 4);
    test::dropBackward(instance.table);
    instance.cluster.intra_node = instance.cluster.inter_node;
    PlanObjective objective =
        round % 2 ? PlanObjective::Latency : PlanObjective::Throughput;
    UnitTableCosts costs(instance.table, instance.cluster, OptimizerKind::None,
                         1, objective);
    Placed placed = placeChain(random, costs);
    TemplateSpace space = {costs, {placed.made.microbatch_size}};
    measureTemplate(placed.made, space);
    int64_t microbatches = 1 + random.below(300);
    placed.plan.replicas[0].microbatches = microbatches;
    PlanEvaluation judged =
        costs.evaluate(placed.plan, Schedule::OneForwardOneBackward, "spread");
    EXPECT_NEAR(placed.made.seconds(microbatches), judged.step_s,
                1e-9 * judged.step_s)
        << round;
    EXPECT_GE(judged.latency_s, judged.interval_s * (1 - 1e-9)) << round;
    EXPECT_EQ(judged.agreement_s + judged.update_s + judged.exposed_sync_s, 0);
  }
}
