//===- CpuWeight.cpp - shares by weights of control groups ----------------===//
//
// One group a worker, named after its supervisor's process so that what a
// killed supervisor left behind is recognised and swept at the next start.
// Versions 1 and 2 differ in file names only. A group's weight is a promise: of
// a core, its worker gets at least its share.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Emulation.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
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

class GroupClaim : public ShareClaim {
public:
  GroupClaim(double cores, std::optional<uint32_t> core,
             const std::string &path)
      : ShareClaim(cores, core), path(path), processes(path + "/cgroup.procs") {
  }
  ~GroupClaim() override { rmdir(path.c_str()); }

protected:
  void enterWeight() const override {
    int fd = open(processes.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
      _exit(126);
    close(fd);
  }

private:
  std::string path, processes;
};

class Weights : public Emulation {
public:
  Weights(const Manifest &manifest, Hierarchy hierarchy)
      : Emulation(manifest), hierarchy(std::move(hierarchy)) {}

  std::unique_ptr<ShareClaim> claim(uint32_t rank) override {
    std::string path = hierarchy.root + "/" + prefix +
                       std::to_string(getpid()) + "-" + std::to_string(rank);
    if (mkdir(path.c_str(), 0755) != 0)
      return nullptr;
    auto claim =
        std::make_unique<GroupClaim>(shares.cores[rank], coreOf(rank), path);
    // Far before everything else on the machine.
    bool isFirst = hierarchy.version == 1;
    double weight = parts[rank] * (isFirst ? 262144 : 10000);
    if (!writeFile(path + (isFirst ? "/cpu.shares" : "/cpu.weight"),
                   std::to_string(std::max(2L, std::lround(weight)))))
      return nullptr;
    return claim;
  }

  std::string describe() const override {
    char text[160];
    snprintf(text, sizeof(text),
             "%.3f cores a unit of speed, by weights of cgroup v%d",
             shares.coresPerSpeed, hierarchy.version);
    return text;
  }

private:
  Hierarchy hierarchy;
};

} // namespace

std::unique_ptr<Emulation>
autohet::runtime::makeWeights(const Manifest &manifest, std::string &why) {
  Hierarchy hierarchy = findHierarchy();
  if (!hierarchy.version) {
    why = "no CPU controller is mounted";
    return nullptr;
  }
  sweep(hierarchy.root);
  if (hierarchy.version == 2)
    writeFile(hierarchy.root + "/cgroup.subtree_control", "+cpu");
  auto weights = std::make_unique<Weights>(manifest, hierarchy);
  // Try one: mounts are often read-only, and not everybody is root.
  if (!weights->claim(0)) {
    why = "none can be made in " + hierarchy.root + ": " + strerror(errno);
    return nullptr;
  }
  return weights;
}
