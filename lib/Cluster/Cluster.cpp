//===- Cluster.cpp - the machines of a job --------------------------------===//

#include "autohet/Cluster/Cluster.h"
#include "autohet/Support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include <algorithm>
#include <cassert>
#include <limits>

namespace autohet {

unsigned Cluster::addKind(DeviceKind kind) {
  assert(!findKind(kind.name) && "two kinds of one name");
  kinds.push_back(std::move(kind));
  return kinds.size() - 1;
}

unsigned Cluster::addNode(llvm::StringRef name, llvm::StringRef address,
                          llvm::ArrayRef<unsigned> deviceKinds) {
  unsigned node = nodes.size(), first = allDevices.size();
  nodes.push_back({name.str(), address.str(), first,
                   static_cast<unsigned>(deviceKinds.size()),
                   /*nic_bytes_per_s=*/0, /*inside=*/std::nullopt});
  for (auto [index, kind] : llvm::enumerate(deviceKinds)) {
    std::string device = (name + "/" + llvm::Twine(index)).str();
    deviceIndex[device] = allDevices.size();
    allDevices.push_back(
        {std::move(device), node, static_cast<unsigned>(index), kind});
  }
  return node;
}

std::optional<unsigned> Cluster::findKind(llvm::StringRef name) const {
  for (auto [index, kind] : llvm::enumerate(kinds))
    if (kind.name == name)
      return index;
  return std::nullopt;
}

std::optional<unsigned> Cluster::findNode(llvm::StringRef name) const {
  for (auto [index, node] : llvm::enumerate(nodes))
    if (node.name == name)
      return index;
  return std::nullopt;
}

std::optional<unsigned> Cluster::findDevice(llvm::StringRef name) const {
  auto found = deviceIndex.find(name);
  if (found == deviceIndex.end())
    return std::nullopt;
  return found->second;
}

bool matchesDevice(llvm::StringRef pattern, const Cluster &cluster,
                   unsigned device) {
  const Device &candidate = cluster.devices()[device];
  llvm::StringRef name = candidate.name;
  if (!pattern.contains('/'))
    name = cluster.nodes[candidate.node].name;
  if (pattern == name)
    return true;
  if (pattern.find_first_of("*?[") == llvm::StringRef::npos)
    return false;
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  if (!glob) {
    llvm::consumeError(glob.takeError());
    return false;
  }
  return glob->match(name);
}

Link Cluster::link(unsigned fromDevice, unsigned toDevice) const {
  if (fromDevice == toDevice)
    return {std::numeric_limits<double>::infinity(), 0};
  for (const LinkOverride &entry : llvm::reverse(overrides))
    if (matchesDevice(entry.from, *this, fromDevice) &&
        matchesDevice(entry.to, *this, toDevice))
      return entry.link;
  const Node &from = nodes[allDevices[fromDevice].node],
             &to = nodes[allDevices[toDevice].node];
  if (&from == &to)
    return from.inside.value_or(intra_node);
  Link link = inter_node;
  for (const Node *node : {&from, &to})
    if (node->nic_bytes_per_s > 0)
      link.bandwidth_bytes_per_s =
          std::min(link.bandwidth_bytes_per_s, node->nic_bytes_per_s);
  return link;
}

llvm::StringRef precisionName(Precision precision) {
  return precision == Precision::FP32   ? "fp32"
         : precision == Precision::BF16 ? "bf16"
                                        : "fp16";
}

std::optional<Precision> parsePrecision(llvm::StringRef name) {
  for (Precision precision :
       {Precision::FP32, Precision::BF16, Precision::FP16})
    if (name == precisionName(precision))
      return precision;
  return std::nullopt;
}

double DeviceKind::seconds(const Work &work) const {
  auto at = [&](double flops, double rate) {
    return flops / (rate > 0 ? rate : flops_per_s);
  };
  double time = work.commands * overhead_s + at(work.flops, flops_per_s) +
                at(work.attention_flops, attention_flops_per_s) +
                at(work.elementwise_flops, elementwise_flops_per_s);
  if (memory_bandwidth_bytes_per_s > 0)
    time += work.traffic_bytes / memory_bandwidth_bytes_per_s;
  return time;
}

std::string Cluster::describeLinks() const {
  auto rate = [](const Link &link) {
    return formatQuantity(link.bandwidth_bytes_per_s,
                          Dimension::BytesPerSecond);
  };
  return rate(intra_node) + " within a node and " + rate(inter_node) +
         " between nodes";
}

llvm::Error Cluster::usePrecision(Precision precision) {
  if (precision == Precision::FP32)
    return llvm::Error::success();
  std::vector<llvm::StringRef> unable;
  std::vector<bool> used(kinds.size());
  for (const Device &device : allDevices)
    used[device.kind] = true;
  for (auto [index, kind] : llvm::enumerate(kinds)) {
    double rate = precision == Precision::BF16 ? kind.flops_bf16_per_s
                                               : kind.flops_fp16_per_s;
    if (used[index] && rate == 0)
      unable.push_back(kind.name);
    // Attention gains as products do, other arithmetic not at all.
    if (kind.elementwise_flops_per_s == 0)
      kind.elementwise_flops_per_s = kind.flops_per_s;
    if (kind.attention_flops_per_s > 0)
      kind.attention_flops_per_s *= rate / kind.flops_per_s;
    kind.flops_per_s = rate;
  }
  if (unable.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      "no rate for " + precisionName(precision) + ": " +
      llvm::join(unable, ", ") +
      (precision == Precision::BF16
           ? " (older devices cannot; others need 'flops_bf16')"
           : " ('flops_fp16' gives one)"));
}

llvm::Expected<Cluster>
Cluster::filter(llvm::ArrayRef<std::string> patterns) const {
  std::vector<bool> keep(allDevices.size());
  for (const std::string &pattern : patterns) {
    bool any = false;
    for (unsigned device = 0; device < allDevices.size(); ++device)
      if (matchesDevice(pattern, *this, device))
        any = keep[device] = true;
    if (any)
      continue;
    // Of the node that is meant, if there is one, else all nodes.
    std::vector<llvm::StringRef> known;
    if (auto node = findNode(llvm::StringRef(pattern).split('/').first)) {
      for (const Device &device : allDevices)
        if (device.node == *node)
          known.push_back(device.name);
    } else {
      for (const Node &node : nodes)
        known.push_back(node.name);
    }
    return llvm::createStringError("no device matches '" + pattern +
                                   "'; there are " + llvm::join(known, ", "));
  }

  Cluster kept = *this;
  kept.nodes.clear();
  kept.allDevices.clear();
  kept.deviceIndex.clear();
  for (const Node &node : nodes) {
    unsigned first = kept.allDevices.size();
    for (unsigned device = node.first_device;
         device < node.first_device + node.device_count; ++device) {
      if (!keep[device])
        continue;
      kept.deviceIndex[allDevices[device].name] = kept.allDevices.size();
      kept.allDevices.push_back(allDevices[device]);
      kept.allDevices.back().node = kept.nodes.size();
    }
    unsigned count = kept.allDevices.size() - first;
    if (count)
      kept.nodes.push_back({node.name, node.address, first, count,
                            node.nic_bytes_per_s, node.inside});
  }
  return kept;
}

} // namespace autohet
