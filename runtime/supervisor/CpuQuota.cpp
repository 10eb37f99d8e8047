//===- CpuQuota.cpp - speeds by quotas of control groups ------------------===//
//
// One group a worker, named after its supervisor's process so that what a
// killed supervisor left behind is recognised and swept at the next start.
// Versions 1 and 2 differ in file names only. A quota works by period: work
// shorter than a period escapes it, so periods are as short as the kernel's
// smallest quota (1 ms) allows, but not below 4 ms. Two things keep it exact:
// ticks (CoreTicks.h), and a burst of one quota, so that a worker whose
// neighbour had the core in one period catches up in the next.
//
//===----------------------------------------------------------------------===//

#include "supervisor/CoreTicks.h"
#include "supervisor/Emulation.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace autohet::runtime;

static constexpr double minPeriod_us = 4000, minQuota_us = 1000;
static const char prefix[] = "autohet-";

namespace {

/// Where groups with a CPU controller can be made.
struct Hierarchy {
  std::string root;
  int version = 0; ///< 0: nowhere
};

bool writeFile(const std::string &path, const std::string &text) {
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  bool isGood = fd >= 0 && write(fd, text.data(), text.size()) ==
                               static_cast<ssize_t>(text.size());
  if (fd >= 0)
    close(fd);
  return isGood;
}

Hierarchy findHierarchy() {
  std::ifstream mounts("/proc/self/mounts");
  Hierarchy found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, path, type, options;
    words >> device >> path >> type >> options;
    if (type == "cgroup" &&
        ("," + options + ",").find(",cpu,") != std::string::npos)
      return {path, 1};
    if (type != "cgroup2")
      continue;
    std::ifstream controllers(path + "/cgroup.controllers");
    for (std::string name; controllers >> name;)
      if (name == "cpu")
        found = {path, 2};
  }
  return found;
}

/// Groups whose supervisor is gone.
void sweep(const std::string &root) {
  DIR *directory = opendir(root.c_str());
  if (!directory)
    return;
  std::vector<std::string> stale;
  while (dirent *entry = readdir(directory)) {
    if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1))
      continue;
    pid_t pid = atoi(entry->d_name + sizeof(prefix) - 1);
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
      stale.push_back(root + "/" + entry->d_name);
  }
  closedir(directory);
  for (const std::string &path : stale)
    rmdir(path.c_str());
}

class QuotaLimit : public SpeedLimit {
public:
  QuotaLimit(std::string path, const Slot *slot) : path(std::move(path)) {
    if (slot)
      core = slot->core;
    processes = this->path + "/cgroup.procs";
  }
  ~QuotaLimit() override { rmdir(path.c_str()); }

  // Only calls that are allowed after a fork.
  void enter() const override {
    int fd = open(processes.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
      _exit(126);
    close(fd);
    if (core != anyCore)
      pinToCore(core);
  }
  void started(int) override {}

private:
  static constexpr uint32_t anyCore = ~0u;
  std::string path, processes;
  uint32_t core = anyCore;
};

class Quotas : public Emulation {
public:
  Quotas(const Manifest &manifest, Hierarchy hierarchy)
      : hierarchy(std::move(hierarchy)),
        shares(divideCores(manifest, usableCores())) {
    // Where whole cores can be filled, workers stay on them: no migrations, and
    // a large share has no neighbour. Where they cannot, the kernel balances.
    Shares packed = shares;
    slots = packSlots(packed, usableCores());
    if (packed.coresPerSpeed < shares.coresPerSpeed)
      slots.clear();
  }

  std::unique_ptr<SpeedLimit> limit(uint32_t rank) override {
    auto limit = makeGroup(rank);
    if (limit && slots.empty())
      for (uint32_t core = 0; core < usableCores(); ++core)
        ticks.start(core);
    else if (limit)
      ticks.start(slots[rank].core);
    return limit;
  }

  std::unique_ptr<SpeedLimit> makeGroup(uint32_t rank) {
    std::string path = hierarchy.root + "/" + prefix +
                       std::to_string(getpid()) + "-" + std::to_string(rank);
    if (mkdir(path.c_str(), 0755) != 0)
      return nullptr;
    auto limit = std::make_unique<QuotaLimit>(
        path, slots.empty() ? nullptr : &slots[rank]);
    double period_us = periodOf(rank);
    auto period = std::to_string(static_cast<long>(period_us));
    long quota_us = static_cast<long>(period_us * shares.cores[rank] + 0.5);
    auto quota = std::to_string(quota_us);
    bool isGood = hierarchy.version == 1
                      ? writeFile(path + "/cpu.cfs_period_us", period) &&
                            writeFile(path + "/cpu.cfs_quota_us", quota)
                      : writeFile(path + "/cpu.max", quota + " " + period);
    if (!isGood)
      return nullptr;
    // Not every kernel has bursts; without them speeds are a little low.
    writeFile(path + (hierarchy.version == 1 ? "/cpu.cfs_burst_us"
                                             : "/cpu.max.burst"),
              std::to_string(quota_us));
    // A quota is an upper bound. Far before everything else on the machine, it
    // is also a promise.
    if (hierarchy.version == 1)
      writeFile(path + "/cpu.shares", "262144");
    else
      writeFile(path + "/cpu.weight", "10000");
    return limit;
  }

  std::string describe() const override {
    double longest_us = 0;
    for (uint32_t rank = 0; rank < shares.cores.size(); ++rank)
      longest_us = std::max(longest_us, periodOf(rank));
    char text[200];
    snprintf(text, sizeof(text),
             "%.3f cores a unit of speed, by quotas of cgroup v%d, periods of "
             "%.1f to %.1f ms",
             shares.coresPerSpeed, hierarchy.version, minPeriod_us * 1e-3,
             longest_us * 1e-3);
    return text;
  }

private:
  Hierarchy hierarchy;
  Shares shares;
  std::vector<Slot> slots; // empty: not pinned
  CoreTicks ticks;         // on the cores of this node's workers

  double periodOf(uint32_t rank) const {
    return std::min(std::max(minPeriod_us, minQuota_us / shares.cores[rank]),
                    1e6);
  }
};

} // namespace

std::unique_ptr<Emulation>
autohet::runtime::makeQuotas(const Manifest &manifest, std::string &why) {
  Hierarchy hierarchy = findHierarchy();
  if (!hierarchy.version) {
    why = "no CPU controller is mounted";
    return nullptr;
  }
  sweep(hierarchy.root);
  if (hierarchy.version == 2)
    writeFile(hierarchy.root + "/cgroup.subtree_control", "+cpu");
  auto quotas = std::make_unique<Quotas>(manifest, hierarchy);
  // Try one: mounts are often read-only, and not everybody is root.
  if (!quotas->makeGroup(0)) {
    why = "none can be made in " + hierarchy.root + ": " + strerror(errno);
    return nullptr;
  }
  return quotas;
}
