//===- TemplateTest.cpp - prices, templates and bounds --------------------===//

#include "autohet/Planner/StepBound.h"
#include "autohet/Planner/UnitTableCosts.h"
#include "lib/Planner/PriceProblem.h"
#include "plan/Models.h"
#include "planner/Clusters.h"

#include "gmock/gmock.h"
#include <random>

using namespace autohet;

namespace {

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  double real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  }
  unsigned below(unsigned limit) { return engine() % limit; }

private:
  std::mt19937 engine;
};

/// Units of uneven work, and nodes of up to three devices of two kinds.
struct Instance {
  UnitTable table;
  Cluster cluster;
  int64_t global_batch = 1;
  bool allow_recompute = false;
};

Instance makeInstance(Random &random, unsigned maxUnits, unsigned maxDevices) {
  Instance made;
  made.table = test::makeChain(0);
  made.table.units.clear();
  made.table.parameters.clear();
  unsigned units = 1 + random.below(maxUnits);
  for (unsigned i = 0; i < units; ++i) {
    Unit unit;
    unit.id = "u" + std::to_string(i);
    unit.parameters = {i};
    made.table.parameters.push_back(
        {unit.id + ".w", random.real(1e5, 4e6), true});
    unit.forward_flops = random.real(0, 1e7);
    unit.backward_flops = 2 * unit.forward_flops;
    unit.activation_bytes = random.real(0, 4e5);
    unit.workspace_bytes = 1e4;
    unit.divisible = random.below(3) ? 1 : 0.5;
    unit.all_reduce_bytes = random.real(0, 1e5);
    if (i + 1 < units)
      unit.successors = {{i + 1, random.real(1e3, 1e5)}};
    made.table.units.push_back(std::move(unit));
  }
  for (unsigned k = 0; k < 2; ++k) {
    DeviceKind kind;
    kind.name = "k" + std::to_string(k);
    kind.flops_per_s = random.real(5e9, 4e10);
    kind.memory_bytes = random.real(2e6, 4e7);
    kind.overhead_s = random.below(2) ? 0 : 5e-5;
    made.cluster.addKind(kind);
  }
  unsigned left = 1 + random.below(maxDevices);
  while (left) {
    unsigned count = 1 + random.below(std::min(left, 3u));
    left -= count;
    std::vector<unsigned> kinds;
    for (unsigned i = 0; i < count; ++i)
      kinds.push_back(random.below(2));
    made.cluster.addNode("n" + std::to_string(made.cluster.nodes.size()), "",
                         kinds);
  }
  made.cluster.intra_node = {random.real(1e9, 2e10), 1e-6};
  made.cluster.inter_node = {random.real(1e8, 2e10), 1e-5};
  made.global_batch = 1 + random.below(6);
  made.allow_recompute = random.below(2);
  return made;
}

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
      for (bool recompute : {false, true}) {
        if (recompute && !space.allow_recompute)
          continue;
        stages.push_back({begin, end, shape, recompute});
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
TEST(TemplateSearch, BoundIsBelowBruteForce) {
  Random random(2);
  unsigned solved = 0, impossible = 0, tight = 0, loose = 0;
  for (int round = 0; round < 1200; ++round) {
    Instance instance = makeInstance(random, 3, 4);
    if (round % 2)
      instance.global_batch = 40 + random.below(100);
    UnitTableCosts costs(instance.table, instance.cluster,
                         OptimizerKind::AdamW);
    TemplateSpace space = {
        costs, allSizes(std::min<int64_t>(3, instance.global_batch)),
        instance.allow_recompute, 1, 2};
    DevicePrices prices;
    for (unsigned i = 0; i < costs.classes().size(); ++i)
      prices.of_class.push_back(random.real(0, 2));
    prices.of_replica = random.below(2) ? 0 : random.real(0, 0.5);

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
    if (least * static_cast<double>(instance.global_batch) < 3 * 1.2)
      continue; // pipelines may have fewer microbatches than stages
    ++(cheapest.bound_s > 0.99 * exact && found < 1.01 * exact ? tight : loose);
  }
  EXPECT_GT(solved, 600u);
  EXPECT_GT(impossible, 20u);
  EXPECT_GT(tight, 8 * loose) << tight << " " << loose;
}
