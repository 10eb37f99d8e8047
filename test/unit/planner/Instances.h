//===- Instances.h - random small planning problems -------------*- C++ -*-===//
//
// Small enough for brute force, uneven enough to mean something: units of
// unlike work and weight, two kinds of devices that may share nodes, memory
// that often does not do.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TEST_UNIT_PLANNER_INSTANCES_H
#define AUTOHET_TEST_UNIT_PLANNER_INSTANCES_H

#include "plan/Models.h"

#include <random>

namespace autohet::test {

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}
  double real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  }
  unsigned below(unsigned limit) { return engine() % limit; }

private:
  std::mt19937 engine;
};

/// Units of uneven work, and nodes of up to three devices of two kinds.
struct Instance {
  UnitTable table;
  Cluster cluster;
  int64_t global_batch = 1;
  bool allow_recompute = false;
};

inline Instance makeInstance(Random &random, unsigned maxUnits,
                             unsigned maxDevices) {
  Instance made;
  made.table = makeChain(0);
  made.table.units.clear();
  made.table.parameters.clear();
  unsigned units = 1 + random.below(maxUnits);
  for (unsigned i = 0; i < units; ++i) {
    Unit unit;
    unit.id = "u" + std::to_string(i);
    unit.parameters = {i};
    made.table.parameters.push_back(
        {unit.id + ".w", random.real(1e5, 4e6), true});
    unit.forward.per_sample.flops = random.real(0, 1e7);
    unit.backward.per_sample = unit.forward.per_sample * 2;
    unit.forward.once.commands = unit.backward.once.commands = 1;
    unit.activations.all = random.real(0, 4e5);
    unit.workspace.all = 1e4;
    if (!random.below(3)) {
      keepWhole(unit, 0.5);
      made.table.parameters.back().divided = false;
    }
    if (!random.below(3))
      unit.divided_extent = 3 + random.below(5);
    addSums(unit, random.real(0, 1e5));
    if (i + 1 < units)
      unit.successors = {{i + 1, random.real(1e3, 1e5)}};
    made.table.units.push_back(std::move(unit));
  }
  for (unsigned k = 0; k < 2; ++k) {
    DeviceKind kind;
    kind.name = "k" + std::to_string(k);
    kind.flops_per_s = random.real(5e9, 4e10);
    kind.memory_bytes = random.real(2e6, 4e7);
    kind.overhead_s = random.below(2) ? 0 : 5e-5;
    // What a unit keeps is on its host a little sooner or later than the unit
    // is done.
    if (k == 0 || kind.overhead_s > 0)
      kind.host_bandwidth_bytes_per_s = kind.flops_per_s / 20;
    made.cluster.addKind(kind);
  }
  unsigned left = 1 + random.below(maxDevices);
  while (left) {
    unsigned count = 1 + random.below(std::min(left, 3u));
    left -= count;
    std::vector<unsigned> kinds;
    for (unsigned i = 0; i < count; ++i)
      kinds.push_back(random.below(2));
    made.cluster.addNode("n" + std::to_string(made.cluster.nodes.size()), "",
                         kinds);
  }
  made.cluster.intra_node = {random.real(1e9, 2e10), 1e-6};
  made.cluster.inter_node = {random.real(1e8, 2e10), 1e-5};
  made.global_batch = 1 + random.below(6);
  made.allow_recompute = random.below(2);
  return made;
}

/// The same model, only computed.
inline void dropBackward(UnitTable &table) {
  table.is_forward_only = true;
  for (UnitParameter &parameter : table.parameters)
    parameter.trained = false;
  for (Unit &unit : table.units) {
    unit.backward = {};
    unit.activations = {};
  }
}

} // namespace autohet::test

#endif
