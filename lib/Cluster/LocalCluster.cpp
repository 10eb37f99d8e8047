//===- LocalCluster.cpp - this machine as a cluster -----------------------===//

#include "autohet/Cluster/SailorCluster.h"

#include "llvm/Support/Threading.h"
#include <algorithm>
#include <unistd.h>

namespace autohet {

// Plans depend on the ratio of compute to communication only, and a cluster of
// equal devices little even on that: a core of today is near enough.
static constexpr double assumedFlopsPerCore = 100e9;

DeviceKind hostKind() {
  DeviceKind kind;
  kind.name = "host";
  kind.memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<double>(sysconf(_SC_PAGE_SIZE));
  kind.threads = std::max(1, llvm::get_physical_cores());
  kind.flops_per_s = assumedFlopsPerCore * static_cast<double>(kind.threads);
  return kind;
}

Cluster localCluster() {
  Cluster cluster;
  unsigned host = cluster.addKind(hostKind());
  cluster.addNode("localhost", "", host);
  return cluster;
}

static llvm::Expected<Cluster> loadWhole(const ClusterSource &source,
                                         std::vector<std::string> &warnings) {
  if (source.hostfile.empty())
    return source.file.empty() ? localCluster()
                               : loadCluster(source.file, warnings);
  llvm::Expected<std::string> hosts = readTextFile(source.hostfile);
  if (!hosts)
    return hosts.takeError();
  if (isSailorQuotas(*hosts))
    return parseSailorQuotas(*hosts, source.hostfile, source.file, warnings);
  Cluster kinds;
  if (source.file.empty())
    warnings.push_back(source.hostfile + ": remark: a hostfile has no links: " +
                       kinds.describeLinks() +
                       " are assumed; --cluster FILE may give others");
  if (!source.file.empty()) {
    llvm::Expected<Cluster> read =
        loadCluster(source.file, warnings, /*kindsOnly=*/true);
    if (!read)
      return read.takeError();
    kinds = std::move(*read);
  }
  return parseHostfile(*hosts, source.hostfile, kinds);
}

llvm::Expected<Cluster> loadCluster(const ClusterSource &source,
                                    std::vector<std::string> &warnings) {
  llvm::Expected<Cluster> cluster = loadWhole(source, warnings);
  if (cluster && !source.include.empty()) {
    llvm::Expected<Cluster> kept = cluster->filter(source.include);
    if (!kept)
      return llvm::createStringError("--include: " +
                                     llvm::toString(kept.takeError()));
    cluster = std::move(kept);
  }
  return cluster;
}

} // namespace autohet
