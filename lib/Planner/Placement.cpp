//===- Placement.cpp - templates on named devices -------------------------===//

#include "Placement.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <numeric>

namespace autohet {

int64_t replicaCount(const TemplateMix &mix) {
  int64_t count = 0;
  for (const CountedTemplate &entry : mix)
    count += entry.replicas;
  return count;
}

ClassCounts devicesOf(const TemplateMix &mix, size_t classes) {
  ClassCounts counts(classes);
  for (const CountedTemplate &entry : mix)
    for (size_t index = 0; index < classes; ++index)
      counts[index] += entry.replicas * entry.made.devices[index];
  return counts;
}

namespace {

class Placer {
public:
  explicit Placer(const PlanCosts &costs)
      : costs(costs), free(costs.machines().nodes.size()) {
    const MachineClasses &classes = costs.classes();
    for (unsigned index = 0; index < classes.size(); ++index) {
      size_t make = classes[index].node_make;
      nodesOfMake.resize(std::max(nodesOfMake.size(), make + 1));
      for (unsigned device : classes[index].devices) {
        unsigned node = costs.machines().devices()[device].node;
        std::vector<unsigned> &ofClass = free[node][index];
        if (ofClass.empty() && !llvm::is_contained(nodesOfMake[make], node))
          nodesOfMake[make].push_back(node);
        ofClass.push_back(device);
      }
    }
    // Devices are taken from the end: the first ones first.
    for (auto &node : free)
      for (auto &[index, devices] : node)
        std::reverse(devices.begin(), devices.end());
  }

  /// Devices for a stage, near `preferred` if that is a node; or none.
  std::vector<unsigned> place(const StageShape &shape,
                              std::optional<unsigned> preferred) {
    unsigned make = costs.classes()[shape.parts[0].machine_class].node_make;
    if (preferred && fits(shape, *preferred))
      return take(shape, *preferred);
    // The node with the least room that is enough.
    std::optional<unsigned> best;
    unsigned least = 0;
    for (unsigned node : nodesOfMake[make]) {
      if (!fits(shape, node))
        continue;
      unsigned room = 0;
      for (const auto &[index, devices] : free[node])
        room += devices.size();
      if (best && room >= least)
        continue;
      best = node;
      least = room;
    }
    if (!best)
      return {};
    return take(shape, *best);
  }

private:
  bool fits(const StageShape &shape, unsigned node) {
    return llvm::all_of(shape.parts, [&](const StageShape::Part &part) {
      auto found = free[node].find(part.machine_class);
      return found != free[node].end() && found->second.size() >= part.count;
    });
  }

  std::vector<unsigned> take(const StageShape &shape, unsigned node) {
    std::vector<unsigned> taken;
    for (const StageShape::Part &part : shape.parts) {
      std::vector<unsigned> &devices = free[node][part.machine_class];
      for (unsigned i = 0; i < part.count; ++i) {
        taken.push_back(devices.back());
        devices.pop_back();
      }
    }
    return taken;
  }

  const PlanCosts &costs;
  std::vector<std::map<unsigned, std::vector<unsigned>>> free; ///< of a node
  std::vector<std::vector<unsigned>> nodesOfMake;
};

struct StagePlace {
  size_t replica, stage;
  unsigned size;
};

} // namespace

std::optional<ResolvedPlan> placeTemplates(const TemplateMix &mix,
                                           const PlanCosts &costs,
                                           PlacementOrder orderKind) {
  ResolvedPlan plan;
  std::vector<const Template *> templates;
  std::vector<StagePlace> order;
  for (const CountedTemplate &entry : mix)
    for (int64_t i = 0; i < entry.replicas; ++i) {
      ResolvedReplica &replica = plan.replicas.emplace_back();
      replica.microbatch_size = entry.made.microbatch_size;
      replica.stages.resize(entry.made.stages.size());
      for (auto [s, stage] : llvm::enumerate(entry.made.stages)) {
        ResolvedStage &made = replica.stages[s];
        made.units.resize(stage.end - stage.begin);
        std::iota(made.units.begin(), made.units.end(), stage.begin);
        made.weights = costs.shapes()[stage.shape].weights;
        made.keeping = stage.keeping;
        order.push_back(
            {templates.size(), s, costs.shapes()[stage.shape].deviceCount()});
      }
      templates.push_back(&entry.made);
    }
  std::vector<unsigned> largest(templates.size());
  for (const StagePlace &place : order)
    largest[place.replica] = std::max(largest[place.replica], place.size);
  llvm::sort(order, [&](const StagePlace &a, const StagePlace &b) {
    auto key = [&](const StagePlace &place) {
      int64_t replica = place.replica, stage = place.stage;
      int64_t size = -int64_t(place.size);
      switch (orderKind) {
      case PlacementOrder::ByReplica:
        return std::make_tuple(-int64_t(largest[place.replica]), replica, size,
                               stage);
      case PlacementOrder::ByStage:
        return std::make_tuple(size, stage, replica, int64_t(0));
      case PlacementOrder::BySize:
        break;
      }
      return std::make_tuple(size, replica, stage, int64_t(0));
    };
    return key(a) < key(b);
  });

  Placer placer(costs);
  llvm::ArrayRef<Device> devices = costs.machines().devices();
  std::optional<unsigned> lastNode;
  for (const StagePlace &place : order) {
    ResolvedReplica &replica = plan.replicas[place.replica];
    // Near the replica's other stages, or near the last replica's equal one.
    std::optional<unsigned> near;
    if (orderKind == PlacementOrder::ByStage)
      near = lastNode;
    for (size_t distance = 1; !near && distance <= replica.stages.size();
         ++distance)
      for (size_t other : {place.stage - distance, place.stage + distance})
        if (!near && other < replica.stages.size() &&
            !replica.stages[other].devices.empty())
          near = devices[replica.stages[other].devices.back()].node;
    ResolvedStage &stage = replica.stages[place.stage];
    stage.devices = placer.place(
        costs.shapes()[templates[place.replica]->stages[place.stage].shape],
        near);
    if (stage.devices.empty())
      return std::nullopt;
    lastNode = devices[stage.devices.back()].node;
  }
  return plan;
}

/// The shape of these devices, whatever their shares.
static std::optional<unsigned> findShape(const ResolvedStage &stage,
                                         const PlanCosts &costs) {
  std::map<unsigned, unsigned> counts;
  for (unsigned device : stage.devices)
    ++counts[costs.classes().classOf(device)];
  auto isOf = [&](const StageShape &shape) {
    return shape.parts.size() == counts.size() &&
           llvm::all_of(shape.parts, [&](const StageShape::Part &part) {
             auto found = counts.find(part.machine_class);
             return found != counts.end() && found->second == part.count;
           });
  };
  const StageShape *found = llvm::find_if(costs.shapes(), isOf);
  if (found == costs.shapes().end())
    return std::nullopt;
  return found - costs.shapes().begin();
}

std::optional<TemplateMix> mixOfPlan(const ResolvedPlan &plan,
                                     const PlanCosts &costs) {
  TemplateMix mix;
  for (const ResolvedReplica &replica : plan.replicas) {
    Template made;
    made.microbatch_size = replica.microbatch_size;
    unsigned begin = 0;
    for (const ResolvedStage &stage : replica.stages) {
      std::optional<unsigned> shape = findShape(stage, costs);
      unsigned end = begin + stage.units.size();
      if (!shape || end == begin || stage.units.front() != begin ||
          stage.units.back() != end - 1)
        return std::nullopt;
      made.stages.push_back({begin, end, *shape, stage.keeping});
      begin = end;
    }
    auto same = llvm::find_if(mix, [&](const CountedTemplate &entry) {
      return entry.made.isSame(made);
    });
    if (same != mix.end())
      ++same->replicas;
    else
      mix.push_back({std::move(made), 1});
  }
  return mix;
}

} // namespace autohet
