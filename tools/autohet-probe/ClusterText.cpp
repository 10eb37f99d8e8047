//===- ClusterText.cpp - measurements as a cluster file -------------------===//

#include "Probe.h"

#include "autohet/Cluster/Cluster.h"
#include "autohet/Cluster/Names.h"

#include <algorithm>
#include <cmath>

using namespace autohet;
using namespace autohet::probe;

/// To three digits: no measurement repeats more.
static double rounded(double value) {
  double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

static Link linkOf(const LinkRates &rates) {
  Link link;
  link.bandwidth_bytes_per_s = rounded(rates.bandwidth_bytes_per_s);
  link.latency_s = rounded(rates.latency_s);
  return link;
}

/// Machines within 5 % of each other have one kind.
static bool isAlike(const Machine &one, const Machine &other) {
  auto near = [](double a, double b) {
    return std::fabs(a - b) <= 0.05 * std::max(a, b);
  };
  return one.threads == other.threads &&
         near(one.memory_bytes, other.memory_bytes) &&
         near(one.rates.flops_per_s, other.rates.flops_per_s);
}

static DeviceKind kindOf(const Machine &machine, double slowest_flops_per_s) {
  constexpr double mib = 1 << 20;
  DeviceKind kind;
  kind.name = "cpu-" + machine.name;
  kind.memory_bytes = std::floor(machine.memory_bytes / mib) * mib;
  kind.flops_per_s = rounded(machine.rates.flops_per_s);
  kind.memory_bandwidth_bytes_per_s =
      rounded(machine.rates.memory_bandwidth_bytes_per_s);
  kind.relative_speed =
      rounded(machine.rates.flops_per_s / slowest_flops_per_s);
  kind.threads = machine.threads;
  return kind;
}

std::string probe::nameProblem(const std::string &name) {
  return findNodeNameProblem(name);
}

std::string probe::addressProblem(const std::string &address) {
  return findAddressProblem(address);
}

std::string probe::clusterText(const std::vector<Machine> &machines,
                               const std::vector<MeasuredLink> &links) {
  double slowest_flops_per_s = machines[0].rates.flops_per_s;
  for (const Machine &machine : machines)
    slowest_flops_per_s =
        std::min(slowest_flops_per_s, machine.rates.flops_per_s);
  Cluster cluster;
  std::vector<size_t> firsts; // a machine of each kind
  for (const Machine &machine : machines) {
    size_t kind = 0;
    while (kind < firsts.size() && !isAlike(machines[firsts[kind]], machine))
      ++kind;
    if (kind == firsts.size()) {
      firsts.push_back(&machine - machines.data());
      cluster.addKind(kindOf(machine, slowest_flops_per_s));
    }
    unsigned node = cluster.addNode(
        machine.name, machine.address,
        std::vector<unsigned>(machine.devices, static_cast<unsigned>(kind)));
    if (node > 0)
      cluster.nodes[node].inside = linkOf(machine.inside);
  }
  cluster.intra_node = linkOf(machines[0].inside);
  if (!links.empty()) {
    // Links that nobody measured are taken for the slowest measured one.
    LinkRates slowest = links[0].there;
    for (const MeasuredLink &link : links)
      for (const LinkRates &way : {link.there, link.back}) {
        slowest.bandwidth_bytes_per_s =
            std::min(slowest.bandwidth_bytes_per_s, way.bandwidth_bytes_per_s);
        slowest.latency_s = std::max(slowest.latency_s, way.latency_s);
      }
    cluster.inter_node = linkOf(slowest);
    for (size_t i = 0; i < links.size(); ++i) {
      const std::string &first = machines[0].name,
                        &other = machines[i + 1].name;
      cluster.overrides.push_back({first, other, linkOf(links[i].there)});
      cluster.overrides.push_back({other, first, linkOf(links[i].back)});
    }
  }
  return "# Measured by autohet-probe: matrix products of 512 x 512 by oneDNN, "
         "all devices of\n# a node at once; messages of 4 MiB and 8 bytes by "
         "UCX.\n" +
         formatCluster(cluster);
}
