//===- ExchangeTest.cpp - exchanges at best and as they are ---------------===//
//
// Bounds ask what of a stage's exchange is seen at least, wherever the other
// holders are and however wide their stages. Here that is held against the
// traffic of random plans.
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/Template.h"
#include "autohet/Planner/UnitTableCosts.h"
#include "lib/Planner/GradientTraffic.h"
#include "planner/Instances.h"

#include "gmock/gmock.h"

using namespace autohet;
using test::Random;

namespace {

/// Full and lonely nodes where `isPlain`: bounds are near there.
Cluster randomCluster(Random &random, bool isPlain) {
  Cluster cluster;
  for (const char *name : {"a", "b"}) {
    DeviceKind kind;
    kind.name = name;
    kind.memory_bytes = 1e12;
    kind.flops_per_s = random.real(1e10, 4e10);
    cluster.addKind(kind);
  }
  unsigned nodes = 2 + random.below(7), most = 1 + random.below(8);
  for (unsigned node = 0; node < nodes; ++node) {
    std::vector<unsigned> kinds;
    unsigned devices = 1 + random.below(most);
    if (isPlain)
      devices = random.below(2) ? most : 1;
    for (unsigned i = 0; i < devices; ++i)
      kinds.push_back(random.below(6) == 0);
    cluster.addNode("n" + std::to_string(node), "", kinds);
  }
  cluster.intra_node = {random.real(1e9, 2e10), 0};
  cluster.inter_node = {random.real(1e8, 4e9), 0};
  if (!isPlain && random.below(3) == 0)
    cluster.overrides = {{"n0", "*", {random.real(1e8, 4e9), 0}},
                         {"n?", "n1", {random.real(1e8, 4e9), 0}}};
  return cluster;
}

/// Replicas on random free devices, as long as there are such.
class RandomPlan {
public:
  RandomPlan(Random &random, const PlanCosts &costs, bool isPlain)
      : random(random), costs(costs),
        isFree(costs.machines().devices().size(), true),
        mostExtent(isPlain ? 1 : 1 + random.below(4)), isPlain(isPlain) {
    while (addReplica())
      ;
  }

  ResolvedPlan plan;
  std::vector<std::vector<unsigned>> shapes; ///< of each replica's stages

private:
  bool addReplica() {
    unsigned units = costs.units().units.size();
    ResolvedReplica replica;
    std::vector<unsigned> chosen;
    for (unsigned begin = 0, end = 0; begin < units; begin = end) {
      end = isPlain || random.below(2)
                ? units
                : begin + 1 + random.below(units - begin);
      std::optional<unsigned> shape = addStage(replica, begin, end);
      if (!shape)
        return false;
      chosen.push_back(*shape);
    }
    plan.replicas.push_back(std::move(replica));
    shapes.push_back(std::move(chosen));
    return true;
  }

  std::optional<unsigned> addStage(ResolvedReplica &replica, unsigned begin,
                                   unsigned end) {
    for (unsigned attempt = 0; attempt < 60; ++attempt) {
      unsigned shape = random.below(costs.shapes().size());
      const StageShape &made = costs.shapes()[shape];
      if (made.deviceCount() > mostExtent)
        continue;
      std::vector<unsigned> devices =
          devicesFor(made, random.below(costs.machines().nodes.size()));
      if (devices.empty())
        continue;
      ResolvedStage &stage = replica.stages.emplace_back();
      for (unsigned unit = begin; unit < end; ++unit)
        stage.units.push_back(unit);
      stage.devices = devices;
      stage.weights = made.weights;
      for (unsigned device : devices)
        isFree[device] = false;
      return shape;
    }
    return std::nullopt;
  }

  std::vector<unsigned> devicesFor(const StageShape &shape, unsigned node) {
    std::vector<unsigned> devices;
    for (const StageShape::Part &part : shape.parts) {
      unsigned left = part.count;
      for (unsigned device = 0; device < isFree.size() && left; ++device)
        if (isFree[device] && costs.machines().devices()[device].node == node &&
            costs.classes().classOf(device) == part.machine_class) {
          devices.push_back(device);
          --left;
        }
      if (left)
        return {};
    }
    return devices;
  }

  Random &random;
  const PlanCosts &costs;
  std::vector<bool> isFree;
  unsigned mostExtent;
  bool isPlain;
};

} // namespace

TEST(Exchange, NoneIsSeenForLessThanAtBest) {
  Random random(5);
  unsigned relayed = 0, near = 0, stages = 0;
  for (int round = 0; round < 1500; ++round) {
    bool isPlain = round % 2;
    Cluster cluster = randomCluster(random, isPlain);
    UnitTable table = test::makeChain(2 + random.below(3));
    UnitTableCosts costs(table, cluster, OptimizerKind::AdamW);
    RandomPlan made(random, costs, isPlain);
    int64_t replicas = made.plan.replicas.size();
    if (replicas < 2)
      continue;
    const char *owner = random.below(3) ? "spread" : "first";
    Ownership owners(made.plan, owner, *costs.costModel());
    GradientTraffic exchange(owners, *costs.costModel());
    StageHolders holders;
    // Of plans with no fewer replicas.
    holders.replicas = replicas - random.below(2);
    holders.state_parts =
        owners.isEven() ? StateParts::Even : StateParts::Alone;
    for (GradientExchange how :
         {GradientExchange::Direct, GradientExchange::Hierarchical})
      for (unsigned r = 0; r < replicas; ++r)
        for (unsigned s = 0; s < made.shapes[r].size(); ++s) {
          const ResolvedStage &stage = made.plan.replicas[r].stages[s];
          ExchangeSeconds actual;
          for (unsigned position = 0; position < stage.devices.size();
               ++position) {
            DeviceEvaluation entry;
            entry.device = stage.devices[position];
            entry.replica = r;
            entry.stage = s;
            entry.position = position;
            Traffic traffic = exchange.of(entry, r, how);
            actual.first_s = std::max(actual.first_s, traffic.first_s);
            actual.second_s = std::max(actual.second_s, traffic.second_s);
          }
          relayed += actual.second_s > 0;
          unsigned begin = stage.units.front(), end = stage.units.back() + 1;
          ExchangeWays ways =
              costs.exchangeWays({begin, end, made.shapes[r][s]}, holders);
          double total = actual.total();
          PassSeconds own = {random.real(0, total), random.real(0, total)};
          PassSeconds before = {random.real(0, total), random.real(0, total)};
          if (random.below(2))
            before = {};
          double first = random.real(0, 1);
          PassSeconds seen = exposedSeconds(actual, first, before, own);
          double least_s = exposedSeconds(ways, first, before, own).total();
          ASSERT_LE(least_s, seen.total() * (1 + 1e-9)) << round;
          double leastForward_s = std::numeric_limits<double>::infinity();
          for (const ExchangeSeconds &way : ways)
            leastForward_s =
                std::min(leastForward_s,
                         exposedSeconds(way, first, before, own).forward_s);
          ASSERT_LE(leastForward_s, seen.forward_s * (1 + 1e-9)) << round;
          ++stages;
          near += least_s > 0.5 * seen.total();
        }
  }
  EXPECT_GT(relayed, 1000u);
  EXPECT_GT(near, stages / 5) << near << " of " << stages;
}
