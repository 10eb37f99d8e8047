//===- Models.h - small unit tables and clusters for tests ------*- C++ -*-===//

#ifndef AUTOHET_TEST_UNIT_PLAN_MODELS_H
#define AUTOHET_TEST_UNIT_PLAN_MODELS_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Plan/UnitTable.h"

#include <string>
#include <vector>

namespace autohet::test {

/// Tensor-parallel ranks sum so much a sample in each pass.
inline void addSums(Unit &unit, double bytes) {
  for (PassWork *pass : {&unit.forward, &unit.backward})
    pass->exchanges.push_back({RankExchange::Sum, bytes});
}

/// Every tensor-parallel rank computes, and keeps, this part of all.
inline void keepWhole(Unit &unit, double part) {
  for (PassWork *pass : {&unit.forward, &unit.backward}) {
    pass->whole_per_sample = pass->per_sample * part;
    pass->whole_once = pass->once * part;
  }
  for (DividedBytes *bytes :
       {&unit.activations, &unit.workspace, &unit.gradient_workspace})
    bytes->whole = bytes->all * part;
}

/// embed, block0.attn, block0.mlp, …, head: a chain with equal blocks. The
/// head's weight is the embedding's where `isTied`.
inline UnitTable makeChain(unsigned blocks, bool isTied = false) {
  UnitTable table;
  table.structure_hash = 0x0123456789abcdef;
  auto add = [&](const std::string &id, double flops, double bytes) {
    Unit unit;
    unit.id = id;
    unit.parameters = {static_cast<unsigned>(table.parameters.size())};
    table.parameters.push_back({id + ".weight", bytes, true});
    unit.forward.per_sample.flops = flops;
    unit.backward.per_sample.flops = 2 * flops;
    unit.forward.once.commands = unit.backward.once.commands = 1;
    unit.activations.all = 1e5;
    unit.workspace.all = 1e4;
    addSums(unit, 1e4);
    if (!table.units.empty())
      table.units.back().successors = {
          {static_cast<unsigned>(table.units.size()), 1e4}};
    table.units.push_back(std::move(unit));
  };
  add("embed", 0, 4e6);
  for (unsigned block = 0; block < blocks; ++block) {
    std::string name = "block" + std::to_string(block);
    add(name + ".attn", 1e7, 1e6);
    add(name + ".mlp", 2e7, 2e6);
  }
  add("head", 1e7, 4e6);
  if (isTied) {
    table.units.back().parameters = {0};
    table.parameters.pop_back();
  }
  return table;
}

/// One node a device; device i is `n<i>/0` with speed speeds[i] · 10 GFLOP/s.
inline Cluster makeCluster(const std::vector<double> &speeds,
                           double memoryBytes = 1e9) {
  Cluster cluster;
  for (size_t i = 0; i < speeds.size(); ++i) {
    std::string name = "speed" + std::to_string(speeds[i]);
    std::optional<unsigned> kind = cluster.findKind(name);
    if (!kind) {
      DeviceKind fresh;
      fresh.name = name;
      fresh.memory_bytes = memoryBytes;
      fresh.flops_per_s = speeds[i] * 10e9;
      fresh.relative_speed = speeds[i];
      fresh.overhead_s = 0;
      kind = cluster.addKind(fresh);
    }
    cluster.addNode("n" + std::to_string(i), "", *kind);
  }
  return cluster;
}

} // namespace autohet::test

#endif
