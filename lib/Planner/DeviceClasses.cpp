//===- DeviceClasses.cpp - which devices are interchangeable --------------===//

#include "DeviceClasses.h"

#include "llvm/ADT/STLExtras.h"
#include <cassert>

namespace autohet {

static bool isEqual(const Link &a, const Link &b) {
  return a.bandwidth_bytes_per_s == b.bandwidth_bytes_per_s &&
         a.latency_s == b.latency_s;
}

static bool areInterchangeable(const CostModel &costs, unsigned a, unsigned b) {
  llvm::ArrayRef<Device> devices = costs.machines().devices();
  // A node's only device may stand for another node's only one; where nodes
  // have several, who shares the node with whom counts.
  auto isAlone = [&](unsigned device) {
    return costs.machines().nodes[devices[device].node].device_count == 1;
  };
  bool isSameNode = devices[a].node == devices[b].node;
  if (devices[a].kind != devices[b].kind ||
      (!isSameNode && !(isAlone(a) && isAlone(b))) ||
      !isEqual(costs.link(a, b), costs.link(b, a)))
    return false;
  for (unsigned other = 0; other < devices.size(); ++other)
    if (other != a && other != b &&
        (!isEqual(costs.link(a, other), costs.link(b, other)) ||
         !isEqual(costs.link(other, a), costs.link(other, b))))
      return false;
  return true;
}

DeviceClasses::DeviceClasses(const CostModel &costs) {
  unsigned count = costs.machines().devices().size();
  for (unsigned device = 0; device < count; ++device) {
    auto found = llvm::find_if(members, [&](const auto &group) {
      return llvm::all_of(group, [&](unsigned member) {
        return areInterchangeable(costs, member, device);
      });
    });
    if (found != members.end())
      found->push_back(device);
    else
      members.push_back({device});
  }
}

ClassCounts DeviceClasses::counts() const {
  ClassCounts counts;
  for (const std::vector<unsigned> &group : members)
    counts.push_back(group.size());
  return counts;
}

std::vector<std::vector<unsigned>>
DeviceClasses::assign(llvm::ArrayRef<ClassCounts> groups) const {
  ClassCounts used(members.size());
  std::vector<std::vector<unsigned>> result;
  for (const ClassCounts &group : groups) {
    std::vector<unsigned> &devices = result.emplace_back();
    for (unsigned index = 0; index < members.size(); ++index)
      for (unsigned taken = 0; taken < group[index]; ++taken) {
        assert(used[index] < members[index].size() && "too many of a class");
        devices.push_back(members[index][used[index]++]);
      }
    llvm::sort(devices);
  }
  return result;
}

} // namespace autohet
