//===- UnitTableCosts.cpp - costs from facts of model and machines --------===//

#include "autohet/Planner/UnitTableCosts.h"
#include "UnitRanges.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

namespace autohet {

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
  for (const StageShape &shape : this->shapes()) {
    std::vector<unsigned> &devices = examples.emplace_back();
    // A class's devices stand node after node, so the first ones share a node.
    for (const StageShape::Part &part : shape.parts) {
      llvm::ArrayRef<unsigned> members = classes()[part.machine_class].devices;
      devices.insert(devices.end(), members.begin(),
                     members.begin() + part.count);
    }
    shares.push_back(sharesOf(shape.weights));
  }
}

UnitTableCosts::~UnitTableCosts() = default;

PassSeconds UnitTableCosts::unitSeconds(unsigned shape, unsigned unit,
                                        int64_t microbatchSize) const {
  size_t count = units().units.size();
  auto [place, isNew] = known.try_emplace(microbatchSize);
  if (isNew)
    for (auto [index, made] : llvm::enumerate(shapes()))
      for (unsigned other = 0; other < count; ++other)
        place->second.push_back(costs.unitSeconds(
            other, examples[index], made.weights, microbatchSize));
  return place->second[shape * count + unit];
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
    auto need = [&](int64_t inFlight) {
      return ranges->memory(stage.begin, stage.end, share,
                            stage.microbatch_size, inFlight, owned,
                            stage.recompute);
    };
    if (!hasBackward()) {
      // Nothing is kept, however many stages are behind.
      if (need(kForwardOnlyInFlight) > room)
        return 0;
      continue;
    }
    double none = need(0), one = need(1);
    if (one > room)
      return 0;
    if (one > none)
      most =
          std::min<int64_t>(most, std::min((room - none) / (one - none), 1e15));
  }
  return most;
}

double UnitTableCosts::syncSeconds(const StageQuery &stage, int64_t replicas,
                                   int64_t mostTogether) const {
  if (replicas < 2)
    return 0;
  double slowest = 0;
  size_t position = 0;
  for (const StageShape::Part &part : shapes()[stage.shape].parts) {
    double share = shares[stage.shape][position];
    position += part.count;
    // Holders that do not find room in this node are reached over its links.
    unsigned perNode = 0;
    double near = 0, far = 0;
    const MachineClass &own = classes()[part.machine_class];
    for (unsigned other = 0; other < classes().size(); ++other) {
      if (classes()[other].node_make == own.node_make) {
        perNode += classes()[other].per_node;
        near = std::max(near, classes()
                                  .link(part.machine_class, other, true)
                                  .bandwidth_bytes_per_s);
      }
      far = std::max(far, classes()
                              .link(part.machine_class, other, false)
                              .bandwidth_bytes_per_s);
    }
    double holders = static_cast<double>(replicas);
    double together =
        std::min(static_cast<double>(perNode) /
                     static_cast<double>(shapes()[stage.shape].deviceCount()),
                 static_cast<double>(mostTogether));
    double outside = std::max(0.0, holders - together) / holders;
    double inside = std::max(0.0, (holders - 1) / holders - outside);
    double bytes = ranges->trainedBytes(stage.begin, stage.end, share);
    double direct = outside / far + inside / std::max(near, far);
    // Relays share what leaves the node; all else stays in it.
    double among = std::max(1.0, std::min(together, holders));
    double relayed =
        outside / among / far + (1 - 1 / among) / std::max(near, far);
    slowest = std::max(slowest, bytes * std::min(direct, relayed));
  }
  return slowest;
}

double UnitTableCosts::updateSeconds() const {
  double bytes = 0, rate = 0;
  for (const UnitParameter &parameter : units().parameters)
    bytes += parameter.trained ? parameter.bytes : 0;
  for (const MachineClass &machine : classes().classes()) {
    double each = costs.updateSeconds(machine.devices.front(), 1);
    if (each == 0)
      return 0;
    rate += static_cast<double>(machine.devices.size()) / each;
  }
  return bytes / rate;
}

PlanEvaluation UnitTableCosts::evaluate(const ResolvedPlan &plan,
                                        Schedule schedule,
                                        llvm::StringRef stateOwner) const {
  return evaluatePlan(plan, schedule, stateOwner, costs);
}

} // namespace autohet
