//===- Probe.h - what a machine reaches -------------------------*- C++ -*-===//
//
// Figures of a cluster file, measured with what a run computes and sends with:
// oneDNN's products, UCX's messages.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_AUTOHET_PROBE_PROBE_H
#define AUTOHET_TOOLS_AUTOHET_PROBE_PROBE_H

#include <string>
#include <vector>

namespace autohet::probe {

struct DeviceRates {
  double flops_per_s = 0;
  double memory_bandwidth_bytes_per_s = 0;
};

struct LinkRates {
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0; ///< of a message of a few bytes, one way
};

/// One node with equal devices.
struct Machine {
  std::string name, address;
  unsigned devices = 1, threads = 1;
  double memory_bytes = 0; ///< of each device
  DeviceRates rates;       ///< of the slowest device
  double spread = 0;       ///< 0.1: the fastest is 10 % faster
  LinkRates inside;        ///< between two of its devices
};

/// Links from the first machine to another, and back.
struct MeasuredLink {
  LinkRates there, back;
};

/// Cores that this process may use.
unsigned usableCores();
/// Memory that this process may use: the machine's, or its cgroup's limit.
double usableMemoryBytes();

/// All `machine.devices` at once, each with its own cores, about three seconds.
/// Throws autohet::runtime::Error.
void measureDevices(Machine &machine);

/// Between two processes of this machine.
LinkRates measureInside();

/// Waits for one machine at `address` and answers its measurement: what this
/// one is, then the link between them.
void answer(const Machine &self, const std::string &address, unsigned port);
/// The other side: asks the machine that answers there.
MeasuredLink ask(const std::string &address, unsigned port, Machine &other);

/// A cluster file of the machines; `links[i]` is between the first and machine
/// i + 1.
std::string clusterText(const std::vector<Machine> &machines,
                        const std::vector<MeasuredLink> &links);

// What keeps a text from naming a node, or from being an address; empty where
// nothing does.
std::string nameProblem(const std::string &name);
std::string addressProblem(const std::string &address);

} // namespace autohet::probe

#endif
