//===- ClusterText.cpp - measurements as a cluster file -------------------===//

#include "Probe.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace autohet::probe;

/// Three digits are more than a measurement repeats.
static std::string quantity(double value, const char *unit) {
  static const struct {
    double scale;
    const char *prefix;
  } prefixes[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}};
  for (auto [scale, prefix] : prefixes)
    if (value >= scale || scale == 1) {
      char text[64];
      snprintf(text, sizeof(text), "%.*f %s%s",
               value / scale >= 100  ? 0
               : value / scale >= 10 ? 1
                                     : 2,
               value / scale, prefix, unit);
      return text;
    }
  return "";
}

static std::string linkText(const LinkRates &link) {
  char latency[40];
  bool isLong = link.latency_s >= 1e-3;
  snprintf(latency, sizeof(latency), "%.3g %s",
           link.latency_s * (isLong ? 1e3 : 1e6), isLong ? "ms" : "us");
  return "bandwidth: " + quantity(link.bandwidth_bytes_per_s, "B/s") +
         ", latency: " + latency;
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

std::string
autohet::probe::clusterText(const std::vector<Machine> &machines,
                            const std::vector<MeasuredLink> &links) {
  std::vector<size_t> kindOf; // the first machine of its kind
  for (size_t i = 0; i < machines.size(); ++i) {
    size_t like = 0;
    while (like < i &&
           !(kindOf[like] == like && isAlike(machines[like], machines[i])))
      ++like;
    kindOf.push_back(like);
  }
  double slowest = machines[0].rates.flops_per_s;
  for (const Machine &machine : machines)
    slowest = std::min(slowest, machine.rates.flops_per_s);

  std::string text =
      "# Measured by autohet-probe: matrix products of 512 x 512 "
      "by oneDNN, all devices of\n# a node at once; messages of "
      "4 MiB and 8 bytes by UCX.\nformat: 1\nkinds:\n";
  auto kindName = [&](size_t machine) {
    return "cpu-" + machines[kindOf[machine]].name;
  };
  for (size_t i = 0; i < machines.size(); ++i) {
    if (kindOf[i] != i)
      continue;
    const Machine &machine = machines[i];
    char speed[32];
    snprintf(speed, sizeof(speed), "%.3g", machine.rates.flops_per_s / slowest);
    text +=
        "  " + kindName(i) + ":\n    memory: " +
        std::to_string(int64_t(machine.memory_bytes / (1 << 20))) +
        " MiB\n    flops: " + quantity(machine.rates.flops_per_s, "FLOP/s") +
        "\n    memory_bandwidth: " +
        quantity(machine.rates.memory_bandwidth_bytes_per_s, "B/s") +
        "\n    relative_speed: " + speed +
        "\n    threads: " + std::to_string(machine.threads) + "\n";
  }
  text += "nodes:\n";
  for (size_t i = 0; i < machines.size(); ++i) {
    const Machine &machine = machines[i];
    text += "  - name: " + machine.name + "\n";
    if (!machine.address.empty())
      text += "    address: " + machine.address + "\n";
    if (i > 0)
      text += "    link: {" + linkText(machine.inside) + "}\n";
    text += "    devices: [{kind: " + kindName(i) +
            ", count: " + std::to_string(machine.devices) + "}]\n";
  }
  text += "links:\n  intra_node: {" + linkText(machines[0].inside) + "}\n";
  if (links.empty())
    return text;
  // Links that nobody measured are taken for the slowest measured one.
  LinkRates inter = links[0].there;
  for (const MeasuredLink &link : links)
    for (const LinkRates &way : {link.there, link.back}) {
      inter.bandwidth_bytes_per_s =
          std::min(inter.bandwidth_bytes_per_s, way.bandwidth_bytes_per_s);
      inter.latency_s = std::max(inter.latency_s, way.latency_s);
    }
  text += "  inter_node: {" + linkText(inter) + "}\n  overrides:\n";
  for (size_t i = 0; i < links.size(); ++i) {
    const std::string &from = machines[0].name, &to = machines[i + 1].name;
    text += "    - {from: " + from + ", to: " + to + ", " +
            linkText(links[i].there) + "}\n    - {from: " + to +
            ", to: " + from + ", " + linkText(links[i].back) + "}\n";
  }
  return text;
}
