//===- Emulation.cpp - unequal devices made of one machine ----------------===//

#include "supervisor/Emulation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// First fit, largest first.
std::vector<uint32_t> autohet::runtime::packCores(const Shares &shares,
                                                  uint32_t cores) {
  std::vector<uint32_t> order(shares.cores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(-shares.cores[a], a) < std::pair(-shares.cores[b], b);
  });
  std::vector<double> used(cores);
  std::vector<uint32_t> found(shares.cores.size());
  for (uint32_t rank : order) {
    uint32_t core = 0;
    while (core < cores && used[core] + shares.cores[rank] > 1)
      ++core;
    if (core == cores)
      return {};
    found[rank] = core;
    used[core] += shares.cores[rank];
  }
  return found;
}

std::vector<double> autohet::runtime::partsOfLargest(const Shares &shares) {
  double largest = *std::max_element(shares.cores.begin(), shares.cores.end());
  std::vector<double> parts;
  for (double share : shares.cores)
    parts.push_back(share / largest);
  return parts;
}

Emulation::Emulation(const Manifest &manifest)
    : shares(divideCores(manifest, usableCores())),
      parts(partsOfLargest(shares)), cores(packCores(shares, usableCores())) {}

// Workers that take turns often: a pipeline's stages wait for each other. Not
// every kernel lets a process choose how long it runs in one go.
static void takeShortTurns() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } wanted = {};
  wanted.size = sizeof(wanted);
  wanted.nice = getpriority(PRIO_PROCESS, 0);
  wanted.runtime_ns = 200'000;
  syscall(SYS_sched_setattr, 0, &wanted, 0);
}

// Only calls that are allowed after a fork.
void ShareClaim::enter() const {
  enterWeight();
  if (core)
    pinToCore(*core);
  takeShortTurns();
}

namespace {

class NiceClaim : public ShareClaim {
public:
  NiceClaim(double cores, std::optional<uint32_t> core, int nicer)
      : ShareClaim(cores, core), nicer(nicer) {}

protected:
  void enterWeight() const override {
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + nicer);
  }

private:
  int nicer;
};

class Niceness : public Emulation {
public:
  using Emulation::Emulation;

  std::unique_ptr<ShareClaim> claim(uint32_t rank) override {
    // What the kernel gives by niceness: a quarter more each.
    int nicer =
        static_cast<int>(std::lround(-std::log(parts[rank]) / std::log(1.25)));
    return std::make_unique<NiceClaim>(shares.cores[rank], coreOf(rank), nicer);
  }

  std::string describe() const override {
    char text[160];
    snprintf(text, sizeof(text), "%.3f cores a unit of speed, by niceness",
             shares.coresPerSpeed);
    return text;
  }
};

} // namespace

std::unique_ptr<Emulation>
autohet::runtime::makeNiceness(const Manifest &manifest) {
  return std::make_unique<Niceness>(manifest);
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
  if (way && strcmp(way, "weight") && strcmp(way, "nice")) {
    error =
        std::string("AUTOHET_EMULATE_BY=") + way + ": expected weight or nice";
    return nullptr;
  }
  if (way && !strcmp(way, "nice"))
    return makeNiceness(manifest);
  auto weights = makeWeights(manifest, error);
  if (weights || way)
    return weights;
  fprintf(stderr, "autohet: no weights of cgroups (%s): using niceness\n",
          error.c_str());
  error.clear();
  return makeNiceness(manifest);
}
