//===- UnitTableCosts.cpp - costs from facts of model and machines --------===//

#include "autohet/Planner/UnitTableCosts.h"
#include "UnitRanges.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace autohet {

/// The layers of a model are mostly alike.
static bool takesAsLong(const Unit &unit, const Unit &other) {
  return unit.divided_extent == other.divided_extent &&
         unit.forward == other.forward && unit.backward == other.backward;
}

UnitTableCosts::UnitTableCosts(const UnitTable &table, const Cluster &cluster,
                               OptimizerKind optimizer, double memoryFraction,
                               PlanObjective objective, unsigned extent)
    : PlanCosts(table, cluster, optimizer),
      costs(table, cluster, optimizer, objective), extent(extent),
      ranges(std::make_unique<UnitRanges>(costs)),
      memoryFraction(memoryFraction) {
  makeShapes([&](const StageShape &shape) {
    return extent == 0 || shape.deviceCount() == extent;
  });
  findReach();
  for (const Unit &unit : table.units)
    alike.push_back(llvm::find_if(table.units,
                                  [&](const Unit &other) {
                                    return takesAsLong(unit, other);
                                  }) -
                    table.units.begin());
  for (const StageShape &shape : this->shapes()) {
    addExamples(shape);
    shares.push_back(sharesOf(shape.weights));
  }
}

// Who comes first has the head that is left over: any class may.
void UnitTableCosts::addExamples(const StageShape &shape) {
  std::vector<Example> &orders = examples.emplace_back();
  std::vector<unsigned> order(shape.parts.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    Example &example = orders.emplace_back();
    for (unsigned number : order) {
      const StageShape::Part &part = shape.parts[number];
      size_t first = 0; // of the part's weights
      for (unsigned other = 0; other < number; ++other)
        first += shape.parts[other].count;
      // A class's devices stand node after node, so the first ones share one.
      llvm::ArrayRef<unsigned> members = classes()[part.machine_class].devices;
      llvm::append_range(example.devices, members.take_front(part.count));
      llvm::append_range(
          example.weights,
          llvm::ArrayRef(shape.weights).slice(first, part.count));
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

PassSeconds UnitTableCosts::offloadedSeconds(unsigned shape, unsigned unit,
                                             int64_t microbatchSize) const {
  std::lock_guard<std::mutex> lock(asked);
  auto [place, isNew] = offloaded.try_emplace({shape, unit, microbatchSize});
  if (isNew)
    place->second = secondsAtBest(shape, unit, microbatchSize, /*onHost=*/true);
  return place->second;
}

PassSeconds UnitTableCosts::secondsAtBest(unsigned shape, unsigned unit,
                                          int64_t microbatchSize,
                                          bool onHost) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  PassSeconds best = {never, never};
  for (const Example &example : examples[shape]) {
    PassSeconds seconds =
        onHost ? costs.offloadedSeconds(unit, example.devices, example.weights,
                                        microbatchSize)
               : costs.unitSeconds(unit, example.devices, example.weights,
                                   microbatchSize);
    best.forward_s = std::min(best.forward_s, seconds.forward_s);
    best.backward_s = std::min(best.backward_s, seconds.backward_s);
  }
  return best;
}

UnitTableCosts::~UnitTableCosts() = default;

bool UnitTableCosts::mayOffload(unsigned shape) const {
  return hasBackward() &&
         llvm::all_of(shapes()[shape].parts, [&](const StageShape::Part &part) {
           unsigned kind = classes()[part.machine_class].kind;
           return machines().kinds[kind].host_bandwidth_bytes_per_s > 0;
         });
}

const std::vector<PassSeconds> &
UnitTableCosts::secondsOf(int64_t microbatchSize) const {
  std::atomic<const std::vector<PassSeconds> *> *place =
      microbatchSize >= 0 && microbatchSize < int64_t(smallSizes)
          ? &ofSmallSize[microbatchSize]
          : nullptr;
  if (place)
    if (const auto *found = place->load(std::memory_order_acquire))
      return *found;
  std::lock_guard<std::mutex> lock(asked);
  auto [entry, isNew] = known.try_emplace(microbatchSize);
  std::vector<PassSeconds> &seconds = entry->second;
  size_t count = units().units.size();
  if (isNew)
    for (size_t made = 0; made < shapes().size(); ++made)
      for (unsigned other = 0; other < count; ++other)
        seconds.push_back(alike[other] < other
                              ? seconds[made * count + alike[other]]
                              : secondsAtBest(made, other, microbatchSize));
  if (place)
    place->store(&seconds, std::memory_order_release);
  return seconds;
}

PassSeconds UnitTableCosts::unitSeconds(unsigned shape, unsigned unit,
                                        int64_t microbatchSize) const {
  return secondsOf(microbatchSize)[shape * units().units.size() + unit];
}

PassSeconds UnitTableCosts::transferSeconds(unsigned fromClass,
                                            unsigned toClass, unsigned cut,
                                            int64_t microbatchSize,
                                            bool areApart) const {
  double bytes =
      ranges->crossingBytes(cut) * static_cast<double>(microbatchSize);
  double back_s = hasBackward()
                      ? linkBetween(toClass, fromClass, areApart).seconds(bytes)
                      : 0;
  return {linkBetween(fromClass, toClass, areApart).seconds(bytes), back_s};
}

double UnitTableCosts::transferPeriod(unsigned fromClass, unsigned toClass,
                                      unsigned cut, int64_t microbatchSize,
                                      bool areApart) const {
  double rate = linkBetween(fromClass, toClass, areApart).bandwidth_bytes_per_s;
  if (hasBackward())
    rate = std::min(
        rate, linkBetween(toClass, fromClass, areApart).bandwidth_bytes_per_s);
  return ranges->crossingBytes(cut) * static_cast<double>(microbatchSize) /
         rate;
}

int64_t UnitTableCosts::mostInFlight(const StageQuery &stage,
                                     double owned) const {
  int64_t most = std::numeric_limits<int64_t>::max();
  size_t position = 0;
  for (const StageShape::Part &part : shapes()[stage.shape].parts) {
    // All devices of a part have the same share.
    double share = shares[stage.shape][position];
    position += part.count;
    double room =
        memoryFraction *
        machines().kinds[classes()[part.machine_class].kind].memory_bytes;
    UnitRanges::Memory need =
        ranges->memory(stage.begin, stage.end, share, stage.microbatch_size,
                       owned, stage.keeping);
    if (!hasBackward()) {
      // Nothing is kept, however many stages are behind.
      if (need.bytes(kForwardOnlyInFlight) > room)
        return 0;
      continue;
    }
    if (need.bytes(1) > room)
      return 0;
    // From two on, each takes as much.
    double two = need.bytes(2), more = need.bytes(3) - two;
    if (two > room)
      most = 1;
    else if (more > 0)
      most = std::min<int64_t>(most, 2 + std::min((room - two) / more, 1e15));
  }
  return most;
}

//===-- Exchanges ---------------------------------------------------------===//

// Of holders behind relays, so many steps are taken in the number of nodes with
// one holder: what bounds forget between two steps is small.
static constexpr unsigned lonelySteps = 3;

void UnitTableCosts::findReach() {
  for (const Node &node : machines().nodes)
    largestNode = std::max<double>(largestNode, node.device_count);
  for (unsigned own = 0; own < classes().size(); ++own) {
    Reach &reach = reaches.emplace_back();
    for (unsigned other = 0; other < classes().size(); ++other) {
      reach.far = std::max(
          {reach.far, classes().link(own, other, false).bandwidth_bytes_per_s,
           classes().link(other, own, false).bandwidth_bytes_per_s});
      if (classes()[other].node_make != classes()[own].node_make)
        continue;
      reach.per_node += classes()[other].per_node;
      reach.near = std::max(
          reach.near, classes().link(own, other, true).bandwidth_bytes_per_s);
    }
    reach.near = std::max(reach.near, reach.far);
  }
}

// docs/planner.md has the proof.
ExchangeWays UnitTableCosts::exchangeRates(unsigned machineClass,
                                           unsigned extent,
                                           const StageHolders &holders) const {
  const Reach &reach = reaches[machineClass];
  double count = static_cast<double>(holders.replicas);
  // Who owns all neither sends gradients nor gets parameters; what it gets of
  // gradients may have come before it is through itself.
  if (holders.state_parts != StateParts::Even)
    return {ExchangeSeconds()};
  bool isAlone = reach.per_node <= extent;
  auto direct = [&](double together) -> ExchangeSeconds {
    together = std::min(together, count);
    return {((count - together) / reach.far + (together - 1) / reach.near) /
                count,
            0};
  };
  if (holders.most_together) {
    double together =
        std::min({static_cast<double>(reach.per_node / extent), count,
                  static_cast<double>(*holders.most_together)});
    ExchangeWays ways = {direct(together)};
    if (together > 1)
      ways.push_back({(1 - 1 / together) / reach.near,
                      (1 / together - 1 / count) / reach.far});
    return ways;
  }
  // Other holders may have a device each.
  ExchangeWays ways = {direct(1.0 + reach.per_node - extent)};
  if (isAlone)
    return ways;
  double most = largestNode;
  double nodes = static_cast<double>(machines().nodes.size());
  double mostLonely =
      std::clamp((nodes / count - 1 / most) / (1 - 1 / most), 0.0, 1.0);
  for (unsigned step = 0; step < lonelySteps; ++step) {
    double lonely = mostLonely * step / lonelySteps;
    double lonelier = mostLonely * (step + 1) / lonelySteps;
    auto relayed = [&](double alone) {
      return std::max(0.0, (1 - alone) / most - 1 / count);
    };
    ways.push_back({std::max((1 - 1 / count - relayed(lonely)) / reach.near,
                             lonely / reach.far),
                    relayed(lonelier) / reach.far});
  }
  return ways;
}

PassSeconds UnitTableCosts::updateSeconds(const StageQuery &stage,
                                          double owned) const {
  PassSeconds slowest;
  size_t position = 0;
  for (const StageShape::Part &part : shapes()[stage.shape].parts) {
    const DeviceKind &kind =
        machines().kinds[classes()[part.machine_class].kind];
    double bytes = ranges->ownedBytes(stage.begin, stage.end,
                                      shares[stage.shape][position], owned,
                                      shares[stage.shape].size());
    position += part.count;
    slowest.forward_s =
        std::max(slowest.forward_s, kind.seconds(costs.updateWork(bytes, 0)));
    slowest.backward_s =
        std::max(slowest.backward_s, kind.seconds(costs.normWork(bytes, 0)));
  }
  return slowest;
}

double UnitTableCosts::firstMessage(const StageQuery &stage) const {
  double part = 1;
  for (double share : shares[stage.shape]) {
    double all = ranges->trainedBytes(stage.begin, stage.end, share);
    double first = share * ranges->largestParameter(stage.begin);
    part = std::min(part, all > 0 ? first / all : 0);
  }
  return part;
}

ExchangeWays UnitTableCosts::exchangeWays(const StageQuery &stage,
                                          const StageHolders &holders) const {
  if (holders.replicas < 2)
    return {ExchangeSeconds()};
  const StageShape &shape = shapes()[stage.shape];
  ExchangeWays slowest;
  size_t position = 0;
  for (const StageShape::Part &part : shape.parts) {
    double share = shares[stage.shape][position];
    double bytes = ranges->evenBytes(stage.begin, stage.end, share);
    // What all ranks have whole has owners in many places, but no more of it
    // stays here.
    double whole_s = 0;
    if (holders.state_parts == StateParts::Even)
      whole_s = (ranges->trainedBytes(stage.begin, stage.end, share) - bytes) *
                (1 - 1 / static_cast<double>(holders.replicas)) /
                reaches[part.machine_class].near;
    position += part.count;
    ExchangeWays ways =
        exchangeRates(part.machine_class, shape.deviceCount(), holders);
    slowest.resize(ways.size());
    for (auto [longest, way] : llvm::zip_equal(slowest, ways)) {
      longest.first_s =
          std::max(longest.first_s, bytes * way.first_s + whole_s);
      longest.second_s = std::max(longest.second_s, bytes * way.second_s);
    }
  }
  return slowest;
}

PlanEvaluation UnitTableCosts::evaluate(const ResolvedPlan &plan,
                                        Schedule schedule,
                                        llvm::StringRef stateOwner) const {
  return evaluatePlan(plan, schedule, stateOwner, costs);
}

} // namespace autohet
