//===- MachineClasses.cpp - devices as counts -----------------------------===//

#include "autohet/Planner/MachineClasses.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <tuple>

namespace autohet {
namespace {

/// All that links can tell a device by: which overrides name it, as sender and
/// as receiver. A bit for each.
using OverrideMask = std::vector<bool>;

/// What makes a device what it is, apart from its neighbours.
using DeviceMake = std::pair<unsigned, OverrideMask>; // kind, from ++ to

/// What makes a node what it is: its devices, its links where it has several
/// devices, and its network card.
using NodeMake = std::tuple<std::vector<DeviceMake>, double, double, double>;

Link insideOf(const Node &node, const Cluster &cluster) {
  return node.inside.value_or(cluster.intra_node);
}

std::vector<DeviceMake> makesOf(const Cluster &cluster) {
  std::vector<DeviceMake> makes;
  size_t count = cluster.overrides.size();
  for (unsigned device = 0; device < cluster.devices().size(); ++device) {
    DeviceMake &make = makes.emplace_back();
    make.first = cluster.devices()[device].kind;
    make.second.resize(2 * count);
    for (auto [index, entry] : llvm::enumerate(cluster.overrides)) {
      make.second[index] = matchesDevice(entry.from, cluster, device);
      make.second[count + index] = matchesDevice(entry.to, cluster, device);
    }
  }
  return makes;
}

} // namespace

MachineClasses::MachineClasses(const Cluster &cluster)
    : ofDevice(cluster.devices().size()) {
  std::vector<DeviceMake> makes = makesOf(cluster);
  std::map<NodeMake, unsigned> nodeMakes;
  std::map<std::pair<unsigned, DeviceMake>, unsigned> known;
  std::vector<OverrideMask> masks;
  std::vector<const Node *> nodeOf; // one of each class
  for (const Node &node : cluster.nodes) {
    std::vector<DeviceMake> inside(makes.begin() + node.first_device,
                                   makes.begin() + node.first_device +
                                       node.device_count);
    llvm::sort(inside);
    Link near = node.device_count > 1 ? insideOf(node, cluster) : Link();
    unsigned nodeMake = nodeMakes
                            .try_emplace({inside, near.bandwidth_bytes_per_s,
                                          near.latency_s, node.nic_bytes_per_s},
                                         nodeMakes.size())
                            .first->second;
    for (unsigned i = 0; i < node.device_count; ++i) {
      unsigned device = node.first_device + i;
      auto [place, isNew] =
          known.try_emplace({nodeMake, makes[device]}, allClasses.size());
      if (isNew) {
        MachineClass &made = allClasses.emplace_back();
        made.kind = makes[device].first;
        made.node_make = nodeMake;
        made.per_node = llvm::count(inside, makes[device]);
        masks.push_back(makes[device].second);
        nodeOf.push_back(&node);
      }
      ofDevice[device] = place->second;
      allClasses[place->second].devices.push_back(device);
    }
  }

  size_t overrides = cluster.overrides.size();
  for (unsigned from = 0; from < allClasses.size(); ++from)
    for (unsigned to = 0; to < allClasses.size(); ++to) {
      std::optional<Link> special;
      for (size_t index = overrides; index-- > 0 && !special;)
        if (masks[from][index] && masks[to][overrides + index])
          special = cluster.overrides[index].link;
      inside.push_back(special.value_or(insideOf(*nodeOf[from], cluster)));
      Link far = cluster.inter_node;
      for (const Node *node : {nodeOf[from], nodeOf[to]})
        if (node->nic_bytes_per_s > 0)
          far.bandwidth_bytes_per_s =
              std::min(far.bandwidth_bytes_per_s, node->nic_bytes_per_s);
      across.push_back(special.value_or(far));
    }
}

ClassCounts MachineClasses::counts() const {
  ClassCounts counts;
  for (const MachineClass &entry : allClasses)
    counts.push_back(entry.devices.size());
  return counts;
}

Link MachineClasses::bestLink(unsigned from, unsigned to) const {
  Link best = link(from, to, false);
  bool mayShare = from == to
                      ? allClasses[from].per_node > 1
                      : allClasses[from].node_make == allClasses[to].node_make;
  if (!mayShare)
    return best;
  const Link &near = link(from, to, true);
  return {std::max(best.bandwidth_bytes_per_s, near.bandwidth_bytes_per_s),
          std::min(best.latency_s, near.latency_s)};
}

} // namespace autohet
