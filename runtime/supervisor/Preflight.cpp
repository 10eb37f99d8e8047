//===- Preflight.cpp - could this node run its part? ----------------------===//
//
// What is cheaper to learn before a queue than after it. Each check says what
// it found also where all is well: a preflight that only says "ok" teaches
// nothing.
//
//===----------------------------------------------------------------------===//

#include "supervisor/Preflight.h"
#include "core/Error.h"
#include "data/Weights.h"
#include "supervisor/Fingerprint.h"
#include "supervisor/HostFeatures.h"
#include "supervisor/Launch.h"
#include "supervisor/Sockets.h"
#include "supervisor/Supervisor.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace autohet::runtime;

namespace {

class Preflight {
public:
  Preflight(const ah_node_image &image, const ah_supervisor_options &options)
      : image(image), options(options) {}

  void checkManifest();
  void checkFeatures();
  void checkLibrary(const char *file, const char *what, const char *package);
  void checkPort();
  void checkMemory();
  void checkDisk(const std::string &folder);
  void checkWeights(const std::string &index);

  bool anyFailed = false;
  Manifest manifest;

private:
  const ah_node_image &image;
  const ah_supervisor_options &options;

  void report(bool isGood, const char *what, const std::string &text) {
    printf("  %s  %-9s %s\n", isGood ? "ok  " : "FAIL", what, text.c_str());
    anyFailed |= !isGood;
  }
  uint64_t sum(std::initializer_list<ah_space> spaces) const;
};

std::string mebibytes(double bytes) {
  return format("%.1f MiB", bytes / (1 << 20));
}

/// A number of "Name:   123 kB" in /proc/meminfo, in bytes.
uint64_t memoryInfo(const std::string &name) {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    uint64_t value = 0;
    file >> value;
    if (key == name + ":")
      return value << 10;
    file.ignore(256, '\n');
  }
  return 0;
}

/// What a container's limit leaves, or all.
uint64_t cgroupLimit() {
  for (const char *path : {"/sys/fs/cgroup/memory.max",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    uint64_t limit = 0;
    if (file >> limit)
      return limit;
  }
  return ~0ull;
}

/// A checkpoint's folder is made when it is needed.
std::string existingParent(std::string folder) {
  while (!folder.empty() && access(folder.c_str(), F_OK) != 0) {
    size_t slash = folder.find_last_not_of('/');
    slash = folder.rfind('/', slash);
    folder =
        slash == std::string::npos ? "" : folder.substr(0, slash ? slash : 1);
  }
  return folder.empty() ? "." : folder;
}

} // namespace

uint64_t Preflight::sum(std::initializer_list<ah_space> spaces) const {
  uint64_t total = 0;
  for (uint32_t device = 0; device < image.device_count; ++device)
    if (const ah_program *program = image.devices[device].program)
      for (ah_space space : spaces)
        total += program->space_bytes[space];
  return total;
}

void Preflight::checkManifest() {
  std::string error;
  bool isGood = parseManifest(image.manifest, manifest, error);
  report(isGood, "job",
         isGood ? format("'%s', nodes: %zu, ranks: %zu", manifest.name.c_str(),
                         manifest.nodes.size(), manifest.ranks.size())
                : error);
}

void Preflight::checkFeatures() {
  const ManifestNode &node = manifest.nodes[image.node];
  std::string missing = missingFeatures(node.features);
  report(missing.empty(), "cpu",
         missing.empty() ? format("has the %zu features that the code uses",
                                  node.features.size())
                         : "lacks " + missing);
}

void Preflight::checkLibrary(const char *file, const char *what,
                             const char *package) {
  void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  report(library, "library",
         library ? format("%s: %s", file, what)
                 : format("%s (%s) cannot be opened: %s (Debian: %s)", file,
                          what, dlerror(), package));
}

void Preflight::checkPort() {
  std::string error;
  Fingerprint fingerprint = fingerprintOf(manifest, options, "");
  auto launch = decideLaunch(
      manifest, image.node, options,
      [](const char *name) { return std::getenv(name); }, fingerprint.hash(),
      error);
  if (!launch)
    return report(false, "launch", error);
  if (manifest.nodes.size() == 1)
    return report(true, "port", "a job of one node opens none");
  std::string where =
      launch->masterAddress + ":" + std::to_string(launch->masterPort);
  if (image.node == 0) {
    int socket = listenOn(launch->masterAddress, launch->masterPort,
                          /*mayBeLoopback=*/true, error);
    if (socket >= 0)
      close(socket);
    return report(socket >= 0, "port",
                  socket >= 0 ? "can listen on " + where : error);
  }
  // Nobody listens yet; being refused is an answer from the right machine.
  bool isFinal = false;
  int socket = connectTo(launch->masterAddress, launch->masterPort,
                         /*seconds=*/2, error, isFinal);
  bool isReachable =
      socket >= 0 || error.find(strerror(ECONNREFUSED)) != std::string::npos;
  if (socket >= 0)
    close(socket);
  report(isReachable, "port",
         isReachable ? "reaches node 0 at " + where : error);
}

void Preflight::checkMemory() {
  uint64_t needed = sum({AH_SPACE_ARENA, AH_SPACE_PARAMETER, AH_SPACE_GRADIENT,
                         AH_SPACE_STATE, AH_SPACE_CONSTANT, AH_SPACE_SCALAR});
  uint64_t available = std::min(memoryInfo("MemAvailable"), cgroupLimit());
  report(needed <= available, "memory",
         format("needs %s, %s are available", mebibytes(needed).c_str(),
                mebibytes(available).c_str()));
}

void Preflight::checkDisk(const std::string &folder) {
  // A checkpoint: what is trained, and the optimizer's state.
  uint64_t needed = sum({AH_SPACE_PARAMETER, AH_SPACE_STATE});
  struct statvfs disk;
  std::string where = existingParent(folder);
  if (statvfs(where.c_str(), &disk) != 0)
    return report(false, "disk", where + ": " + strerror(errno));
  double available = double(disk.f_bavail) * disk.f_frsize;
  bool isWritable = access(where.c_str(), W_OK) == 0;
  report(isWritable && available >= needed, "disk",
         isWritable ? format("a checkpoint takes up to %s here, %s are free in "
                             "'%s'",
                             mebibytes(needed).c_str(),
                             mebibytes(available).c_str(), where.c_str())
                    : "'" + where + "' cannot be written");
}

void Preflight::checkWeights(const std::string &path) {
  ah_status status = guarded([&] {
    WeightsIndex index(path);
    uint64_t bytes = 0;
    for (const auto &entry : index.tensors()) {
      index.verify(entry.second);
      index.release(entry.second);
      bytes += entry.second.bytes;
    }
    report(true, "weights",
           format("%zu tensors, %s, checksums match", index.tensors().size(),
                  mebibytes(bytes).c_str()));
  });
  if (status != AH_OK)
    report(false, "weights", ah_last_error());
}

int autohet::runtime::runPreflight(const ah_node_image &image,
                                   const ah_supervisor_options &options,
                                   const std::string &weightsIndex,
                                   const std::string &outputFolder) {
  Preflight preflight(image, options);
  preflight.checkManifest();
  if (preflight.anyFailed)
    return 1;
  preflight.checkFeatures();
  preflight.checkLibrary("libdnnl.so.2", "matrix products", "libdnnl2");
  if (preflight.manifest.ranks.size() > 1)
    preflight.checkLibrary("libucp.so.0", "communication", "libucx0");
  preflight.checkPort();
  preflight.checkMemory();
  preflight.checkDisk(outputFolder);
  preflight.checkWeights(weightsIndex.empty()
                             ? folderOfExecutable() + "/" +
                                   preflight.manifest.weights_index
                             : weightsIndex);
  return preflight.anyFailed ? 1 : 0;
}
