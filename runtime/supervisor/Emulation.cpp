//===- Emulation.cpp - unequal devices made of one machine ----------------===//

#include "supervisor/Emulation.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sched.h>

using namespace autohet::runtime;

/// The rest is for supervisors, the kernel, and whoever looks on.
static constexpr double usableFraction = 0.9;

uint32_t autohet::runtime::usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return std::max(CPU_COUNT(&set), 1);
}

void autohet::runtime::pinToCore(uint32_t n) {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set) && n-- == 0) {
      CPU_ZERO(&set);
      CPU_SET(core, &set);
      sched_setaffinity(0, sizeof(set), &set);
      return;
    }
}

Shares autohet::runtime::divideCores(const Manifest &manifest, double cores) {
  std::vector<ManifestDevice> devices = manifest.clusterDevices;
  if (devices.empty())
    for (const ManifestRank &rank : manifest.ranks)
      devices.push_back({rank.threads, rank.relative_speed});
  double speeds = 0;
  for (const ManifestDevice &device : devices)
    speeds += device.relative_speed;
  Shares shares;
  shares.coresPerSpeed = usableFraction * cores / speeds;
  for (const ManifestDevice &device : devices)
    shares.coresPerSpeed = std::min(
        shares.coresPerSpeed,
        usableFraction * std::max(device.threads, 1u) / device.relative_speed);
  for (const ManifestRank &rank : manifest.ranks)
    shares.cores.push_back(shares.coresPerSpeed * rank.relative_speed);
  return shares;
}

/// First fit, largest first; false where some rank fits nowhere.
static bool pack(const std::vector<double> &shares, uint32_t cores,
                 std::vector<Slot> &slots) {
  std::vector<uint32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
  });
  std::vector<double> used(cores);
  slots.assign(shares.size(), {});
  for (uint32_t rank : order) {
    uint32_t core = 0;
    while (core < cores && used[core] + shares[rank] > 1)
      ++core;
    if (core == cores)
      return false;
    slots[rank] = {core, used[core], used[core] + shares[rank]};
    used[core] += shares[rank];
  }
  return true;
}

std::vector<Slot> autohet::runtime::packSlots(Shares &shares, uint32_t cores) {
  std::vector<Slot> slots;
  while (!pack(shares.cores, cores, slots)) {
    shares.coresPerSpeed *= 0.95;
    for (double &share : shares.cores)
      share *= 0.95;
  }
  return slots;
}

std::unique_ptr<Emulation>
autohet::runtime::makeEmulation(const Manifest &manifest, std::string &error) {
  for (uint32_t rank = 0; rank < manifest.ranks.size(); ++rank)
    if (!(manifest.ranks[rank].relative_speed > 0)) {
      error = manifest.describeRank(rank) +
              " has no relative speed: --emulate needs one for each device";
      return nullptr;
    }
  // For tests, and for whoever wants to compare the two.
  const char *way = std::getenv("AUTOHET_EMULATE_BY");
  if (way && strcmp(way, "quota") && strcmp(way, "duty-cycle")) {
    error = std::string("AUTOHET_EMULATE_BY=") + way +
            ": expected quota or duty-cycle";
    return nullptr;
  }
  if (way && !strcmp(way, "duty-cycle"))
    return makeDutyCycles(manifest);
  auto quotas = makeQuotas(manifest, error);
  if (quotas || way)
    return quotas;
  fprintf(stderr, "autohet: no cgroup quotas (%s): using duty cycles\n",
          error.c_str());
  error.clear();
  return makeDutyCycles(manifest);
}
