//===- WholePlanTest.cpp - bound, best plan and plan found ----------------===//
//
// Every plan of small problems, on named devices, judged as the planner's own:
// no plan is faster than the bound, and none that the planner finds is faster
// than the best.
//
//===----------------------------------------------------------------------===//

#include "autohet/Planner/UnitTableCosts.h"
#include "lib/Planner/JointSearch.h"
#include "lib/Planner/StateByRoom.h"
#include "planner/Instances.h"

#include "gmock/gmock.h"

#include <numeric>

using namespace autohet;
using test::Instance;
using test::Random;

namespace {

class AllPlans {
public:
  AllPlans(const Instance &instance, const PlannerOptions &options)
      : instance(instance), options(options),
        costs(instance.table, instance.cluster, options.optimizer,
              options.memory_fraction, options.objective),
        sizes(microbatchSizes(options)),
        isFree(instance.cluster.devices().size(), true) {}

  /// Of the fastest plan; infinity where none fits.
  double best() {
    addReplica(0);
    return best_s;
  }
  unsigned evaluated = 0;
  bool is_best_on_host = false; ///< in part

private:
  /// Replicas by rising first device of their first stage: each set once.
  void addReplica(unsigned leastDevice) {
    if (!plan.replicas.empty())
      shareBatch(0, options.global_batch);
    if (plan.replicas.size() ==
        std::min<size_t>(isFree.size(), options.global_batch))
      return;
    plan.replicas.emplace_back();
    addStage(0, leastDevice);
    plan.replicas.pop_back();
  }

  void addStage(unsigned begin, unsigned leastDevice) {
    unsigned units = instance.table.units.size();
    if (begin == units)
      return addReplica(plan.replicas.back().stages[0].devices[0] + 1);
    bool isFirst = plan.replicas.back().stages.empty();
    for (unsigned end = begin + 1; end <= units; ++end)
      for (const StageShape &shape : costs.shapes())
        for (const Node &node : instance.cluster.nodes)
          // Who comes first has the head that is left over.
          for (bool isTurned : {false, true}) {
            std::vector<unsigned> devices = devicesFor(shape, node);
            std::vector<int64_t> weights = shape.weights;
            if (devices.empty() || (isTurned && shape.parts.size() == 1))
              continue;
            if (isTurned) {
              unsigned first = shape.parts.front().count;
              std::rotate(devices.begin(), devices.begin() + first,
                          devices.end());
              std::rotate(weights.begin(), weights.begin() + first,
                          weights.end());
            }
            if (!isFirst || devices[0] >= leastDevice)
              addStage(begin, end, leastDevice, devices, weights);
          }
  }

  void addStage(unsigned begin, unsigned end, unsigned leastDevice,
                const std::vector<unsigned> &devices,
                const std::vector<int64_t> &weights) {
    for (Keeping keeping : {Keeping::All, Keeping::Inputs, Keeping::OnHost}) {
      if ((keeping == Keeping::Inputs && !options.allow_recompute) ||
          (keeping == Keeping::OnHost && !mayOffload(devices)))
        continue;
      ResolvedStage &stage = plan.replicas.back().stages.emplace_back();
      for (unsigned unit = begin; unit < end; ++unit)
        stage.units.push_back(unit);
      stage.devices = devices;
      stage.weights = weights;
      stage.keeping = keeping;
      for (unsigned device : devices)
        isFree[device] = false;
      addStage(end, leastDevice);
      for (unsigned device : devices)
        isFree[device] = true;
      plan.replicas.back().stages.pop_back();
    }
  }

  bool mayOffload(const std::vector<unsigned> &devices) const {
    return options.allow_offload && llvm::all_of(devices, [&](unsigned device) {
             return instance.cluster.kindOf(device).host_bandwidth_bytes_per_s >
                    0;
           });
  }

  /// The first free ones: those of a class in a node are alike.
  std::vector<unsigned> devicesFor(const StageShape &shape,
                                   const Node &node) const {
    std::vector<unsigned> devices;
    for (const StageShape::Part &part : shape.parts) {
      unsigned left = part.count;
      for (unsigned i = 0; i < node.device_count && left; ++i) {
        unsigned device = node.first_device + i;
        if (!isFree[device] ||
            costs.classes().classOf(device) != part.machine_class)
          continue;
        devices.push_back(device);
        --left;
      }
      if (left)
        return {};
    }
    return devices;
  }

  void shareBatch(unsigned r, int64_t left) {
    if (r == plan.replicas.size()) {
      if (left == 0)
        judge();
      return;
    }
    for (int64_t size : sizes)
      for (int64_t count = 1; count * size <= left; ++count) {
        plan.replicas[r].microbatch_size = size;
        plan.replicas[r].microbatches = count;
        shareBatch(r + 1, left - count * size);
      }
  }

  // The order of replicas says who relays what.
  void judge() {
    std::vector<unsigned> order(plan.replicas.size());
    std::iota(order.begin(), order.end(), 0);
    ResolvedPlan asFound = plan;
    do {
      for (auto [replica, from] : llvm::zip_equal(plan.replicas, order))
        replica = asFound.replicas[from];
      judgeOrder();
    } while (order.size() > 2 &&
             std::next_permutation(order.begin(), order.end()));
    plan = std::move(asFound);
  }

  void judgeOrder() {
    for (Schedule schedule :
         {Schedule::OneForwardOneBackward, Schedule::GPipe}) {
      PlanEvaluation even = costs.evaluate(plan, schedule, "spread");
      if (take(even) || options.state_parts != StateParts::Uneven)
        continue;
      if (auto shared = shareStateByRoom(plan, even, costs))
        take(costs.evaluate(*shared, schedule, "spread"));
      shareState(0, 0, schedule);
    }
  }

  /// Whether it fits.
  bool take(const PlanEvaluation &evaluation) {
    ++evaluated;
    bool fits = llvm::all_of(evaluation.devices, [&](const auto &entry) {
      return entry.memory.total() <= costs.memoryRoom(entry.device);
    });
    if (!fits || evaluation.step_s >= best_s)
      return fits;
    best_s = evaluation.step_s;
    is_best_on_host =
        llvm::any_of(plan.replicas, [](const ResolvedReplica &replica) {
          return llvm::any_of(replica.stages, [](const ResolvedStage &stage) {
            return stage.keeping == Keeping::OnHost;
          });
        });
    return fits;
  }

  /// Shares of stage `s` on of replica `r` on.
  void shareState(size_t r, size_t s, Schedule schedule) {
    if (r == plan.replicas.size()) {
      Plan named;
      named.global_batch = options.global_batch;
      named.replicas = nameReplicas(plan, instance.table, instance.cluster);
      if (verifyPlan(named, instance.table, instance.cluster).empty())
        take(costs.evaluate(plan, schedule, "spread"));
      return;
    }
    if (s == plan.replicas[r].stages.size())
      return shareState(r + 1, 0, schedule);
    int64_t &share = plan.replicas[r].stages[s].state_share;
    for (share = 0; share < 4; ++share)
      shareState(r, s + 1, schedule);
    share = 1;
  }

  const Instance &instance;
  const PlannerOptions &options;
  UnitTableCosts costs;
  std::vector<int64_t> sizes; ///< of microbatches: of the space
  std::vector<bool> isFree;
  ResolvedPlan plan;
  double best_s = std::numeric_limits<double>::infinity();
};

struct Searched {
  double bound_s, step_s;
};

Searched search(const Instance &instance, const PlannerOptions &options) {
  UnitTableCosts costs(instance.table, instance.cluster, options.optimizer,
                       options.memory_fraction, options.objective);
  Judge judge(costs, options);
  JointSearch joint(judge);
  joint.run();
  return {joint.boundSeconds(), judge.bestSeconds()};
}

} // namespace

TEST(WholePlan, BoundIsBelowTheBestIsBelowTheFound) {
  Random random(11);
  unsigned solved = 0, found = 0, near = 0, withRecompute = 0;
  for (int round = 0; round < 1000; ++round) {
    bool isDeep = round % 2;
    Instance instance =
        test::makeInstance(random, isDeep ? 4 : 3, isDeep ? 2 : 3);
    PlannerOptions options;
    options.global_batch = 1 + random.below(isDeep ? 5 : 3);
    options.allow_recompute = random.below(3) == 0;
    options.allow_offload = round % 3 == 0;
    options.max_alternatives = 0;
    double best = AllPlans(instance, options).best();
    Searched searched = search(instance, options);
    ASSERT_LE(searched.bound_s, best * (1 + 1e-9)) << round;
    ASSERT_GE(searched.step_s, best * (1 - 1e-9)) << round;
    if (best == std::numeric_limits<double>::infinity())
      continue;
    ++solved;
    withRecompute += options.allow_recompute;
    found += searched.step_s <= best * (1 + 1e-6);
    near += searched.bound_s > 0.8 * best;
  }
  EXPECT_GT(solved, 600u);
  EXPECT_GT(withRecompute, 100u);
  EXPECT_GT(found, 8 * solved / 10) << found << " of " << solved;
  EXPECT_GT(near, solved / 2) << near << " of " << solved;
}

// Pipelines of three devices, which have no room for all microbatches in
// flight.
TEST(WholePlan, SoItIsWithActivationsOnTheHost) {
  Random random(16);
  unsigned solved = 0, found = 0, onHost = 0;
  for (int round = 0; round < 1500; ++round) {
    Instance instance = test::makeInstance(random, 4, 3);
    if (instance.cluster.devices().size() < 3 ||
        instance.table.units.size() < 3)
      continue;
    for (Unit &unit : instance.table.units)
      unit.activations.all = random.real(2e6, 4e6);
    for (UnitParameter &parameter : instance.table.parameters)
      parameter.bytes /= 4;
    for (DeviceKind &kind : instance.cluster.kinds) {
      kind.memory_bytes = random.real(6e6, 1.4e7);
      kind.host_bandwidth_bytes_per_s = kind.flops_per_s / 3;
    }
    PlannerOptions options;
    options.global_batch = 3 + random.below(2);
    options.optimizer = OptimizerKind::SGD;
    options.max_microbatch_size = 1;
    options.allow_offload = true;
    options.max_alternatives = 0;
    AllPlans all(instance, options);
    double best = all.best();
    Searched searched = search(instance, options);
    ASSERT_LE(searched.bound_s, best * (1 + 1e-9)) << round;
    ASSERT_GE(searched.step_s, best * (1 - 1e-9)) << round;
    if (best == std::numeric_limits<double>::infinity())
      continue;
    ++solved;
    onHost += all.is_best_on_host;
    found += searched.step_s <= best * (1 + 1e-6);
  }
  EXPECT_GT(solved, 100u) << solved;
  EXPECT_GT(onHost, 20u) << onHost << " of " << solved;
  EXPECT_GT(found, 8 * solved / 10) << found << " of " << solved;
}

// Where state may lie in unlike parts, plans fit that do not otherwise.
TEST(WholePlan, SoItIsWithUnevenState) {
  Random random(14);
  unsigned solved = 0, found = 0, more = 0;
  for (int round = 0; round < 400; ++round) {
    Instance instance = test::makeInstance(random, 3, 3);
    // Parameters and gradients fit, beside all state, and what others send
    // for it, on one kind and a part of them on the other.
    double bytes = 0;
    for (const UnitParameter &parameter : instance.table.parameters)
      bytes += parameter.bytes;
    instance.cluster.kinds[0].memory_bytes =
        bytes * random.real(2.1, 3.5) + 2e6;
    instance.cluster.kinds[1].memory_bytes = bytes * random.real(4, 7) + 2e6;
    PlannerOptions options;
    options.global_batch = 1 + random.below(4);
    options.max_alternatives = 0;
    options.compare.clear();
    double even = AllPlans(instance, options).best();
    options.state_parts = StateParts::Uneven;
    double best = AllPlans(instance, options).best();
    llvm::Expected<PlannerResult> result =
        planCluster(instance.table, instance.cluster, options);
    if (!result) {
      llvm::consumeError(result.takeError());
      solved += best < std::numeric_limits<double>::infinity();
      continue;
    }
    ++solved;
    ASSERT_LE(result->lower_bound_s, best * (1 + 1e-9)) << round;
    // The order of replicas says who relays which of unlike parts; the brute
    // force knows one order.
    ASSERT_GE(result->best.evaluation.step_s, best * 0.98) << round;
    found += result->best.evaluation.step_s <= best * (1 + 1e-6);
    more += best < even * (1 - 1e-6) &&
            result->best.evaluation.step_s < even * (1 - 1e-6);
    EXPECT_TRUE(
        verifyPlan(result->best.plan, instance.table, instance.cluster).empty())
        << round;
  }
  EXPECT_GT(solved, 200u);
  EXPECT_GT(more, 10u);
  EXPECT_GT(found, 8 * solved / 10) << found << " of " << solved;
}

// The same of models that are only computed, whether a batch comes alone or
// follows another.
TEST(WholePlan, SoItIsWithoutABackward) {
  for (PlanObjective objective :
       {PlanObjective::Latency, PlanObjective::Throughput}) {
    Random random(12);
    unsigned solved = 0, found = 0, near = 0;
    for (int round = 0; round < 400; ++round) {
      bool isDeep = round % 2;
      Instance instance =
          test::makeInstance(random, isDeep ? 4 : 3, isDeep ? 2 : 3);
      test::dropBackward(instance.table);
      PlannerOptions options;
      options.objective = objective;
      options.optimizer = OptimizerKind::None;
      options.global_batch = 1 + random.below(isDeep ? 5 : 3);
      options.max_alternatives = 0;
      double best = AllPlans(instance, options).best();
      Searched searched = search(instance, options);
      ASSERT_LE(searched.bound_s, best * (1 + 1e-9)) << round;
      ASSERT_GE(searched.step_s, best * (1 - 1e-9)) << round;
      if (best == std::numeric_limits<double>::infinity())
        continue;
      ++solved;
      found += searched.step_s <= best * (1 + 1e-6);
      near += searched.bound_s > 0.8 * best;
    }
    EXPECT_GT(solved, 300u);
    EXPECT_GT(found, 8 * solved / 10) << found << " of " << solved;
    EXPECT_GT(near, solved / 2) << near << " of " << solved;
  }
}

// However little time there is, what is said of a plan is true, and says
// something.
TEST(WholePlan, BoundHoldsWithAnyDeadline) {
  Random random(13);
  unsigned solved = 0, planned = 0, near = 0;
  for (int round = 0; round < 200; ++round) {
    Instance instance = test::makeInstance(random, 3, 3);
    PlannerOptions options;
    options.global_batch = 1 + random.below(3);
    options.max_alternatives = 0;
    double best = AllPlans(instance, options).best();
    const double deadlines_s[] = {0, 1e-5, 1e-4, 1e-3};
    double deadline_s = deadlines_s[random.below(4)];
    options.deadline = Deadline::in(deadline_s);
    Searched searched = search(instance, options);
    ASSERT_LE(searched.bound_s, best * (1 + 1e-9)) << round;
    ASSERT_GE(searched.step_s, best * (1 - 1e-9)) << round;
    bool isSolved = best < std::numeric_limits<double>::infinity();
    solved += isSolved;
    near += isSolved && searched.bound_s > best / 3;
    EXPECT_GT(searched.bound_s, 0) << round;
    llvm::Expected<PlannerResult> result =
        planCluster(instance.table, instance.cluster, options);
    if (!result) {
      EXPECT_NE(llvm::toString(result.takeError()), "");
      continue;
    }
    ++planned;
    EXPECT_LE(result->lower_bound_s, best * (1 + 1e-9)) << round;
  }
  EXPECT_GT(solved, 100u);
  EXPECT_GT(planned, solved / 3) << planned << " of " << solved;
  EXPECT_GT(near, 9 * solved / 10) << near << " of " << solved;
}
