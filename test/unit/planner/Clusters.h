//===- Clusters.h - models and clusters of real size for tests --*- C++ -*-===//

#ifndef AUTOHET_TEST_UNIT_PLANNER_CLUSTERS_H
#define AUTOHET_TEST_UNIT_PLANNER_CLUSTERS_H

#include "plan/Models.h"

#include <string>
#include <utility>
#include <vector>

namespace autohet::test {

/// A decoder of `blocks` equal blocks as the Model phase would describe it, two
/// units a block; fp32.
inline UnitTable makeDecoder(unsigned blocks, double hidden, double sequence,
                             double vocabulary) {
  UnitTable table;
  table.structure_hash = 1;
  double boundary = 4 * sequence * hidden;
  auto add = [&](const std::string &id, double weights, double flops,
                 double activations) {
    Unit unit;
    unit.id = id;
    unit.parameters = {static_cast<unsigned>(table.parameters.size())};
    table.parameters.push_back({id + ".weight", 4 * weights, true});
    unit.forward.per_sample.flops = flops;
    unit.forward.per_sample.traffic_bytes = activations;
    unit.backward.per_sample = unit.forward.per_sample * 2;
    unit.forward.once.commands = 10;
    unit.forward.once.traffic_bytes = 4 * weights;
    unit.backward.once = unit.forward.once;
    unit.activations.all = activations;
    unit.workspace.all = boundary;
    addSums(unit, boundary);
    if (!table.units.empty())
      table.units.back().successors = {
          {static_cast<unsigned>(table.units.size()), boundary}};
    table.units.push_back(std::move(unit));
  };
  add("embed", vocabulary * hidden, 0, boundary);
  for (unsigned block = 0; block < blocks; ++block) {
    std::string name = "block" + std::to_string(block);
    double attention = 4 * hidden * hidden, mlp = 8 * hidden * hidden;
    add(name + ".attn", attention,
        2 * attention * sequence + 4 * sequence * sequence * hidden,
        5 * boundary);
    add(name + ".mlp", mlp, 2 * mlp * sequence, 9 * boundary);
  }
  add("head", vocabulary * hidden, 2 * vocabulary * hidden * sequence,
      4 * sequence * vocabulary);
  return table;
}

/// Kinds A100, H800, H20 and V100 by their data sheets, at about half of the
/// arithmetic rate: only sizes and ratios matter here.
inline Cluster makeDatacenter() {
  Cluster cluster;
  auto add = [&](const char *name, double flops, double memory,
                 double bandwidth) {
    DeviceKind kind;
    kind.name = name;
    kind.flops_per_s = flops / 2;
    kind.memory_bytes = memory;
    kind.memory_bandwidth_bytes_per_s = bandwidth;
    cluster.addKind(kind);
  };
  add("A100", 312e12, 80e9, 2.0e12);
  add("H800", 989e12, 80e9, 3.35e12);
  add("H20", 148e12, 96e9, 4.0e12);
  add("V100", 125e12, 32e9, 0.9e12);
  cluster.intra_node = {200e9, 5e-6};
  cluster.inter_node = {50e9, 10e-6};
  return cluster;
}

/// Adds `count` nodes with so many devices of each kind.
inline void addNodes(Cluster &cluster, unsigned count,
                     std::vector<std::pair<unsigned, unsigned>> kinds) {
  std::vector<unsigned> devices;
  for (auto [kind, number] : kinds)
    devices.insert(devices.end(), number, kind);
  for (unsigned i = 0; i < count; ++i)
    cluster.addNode("n" + std::to_string(cluster.nodes.size()), "", devices);
}

} // namespace autohet::test

#endif
