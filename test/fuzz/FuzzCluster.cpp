//===- FuzzCluster.cpp - any text as cluster file, hostfile or quotas ------===//

#include "autohet/Cluster/SailorCluster.h"

#include <cstdlib>

using namespace autohet;

/// What is read is sound enough to be asked about every pair of devices.
static void check(llvm::Expected<Cluster> cluster) {
  if (!cluster) {
    if (llvm::toString(cluster.takeError()).empty())
      abort();
    return;
  }
  unsigned count = std::min<size_t>(cluster->devices().size(), 32);
  for (unsigned from = 0; from < count; ++from)
    for (unsigned to = 0; to < count; ++to)
      if (from != to && !(cluster->link(from, to).seconds(1e6) >= 0))
        abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  std::vector<std::string> warnings;
  check(parseCluster(text, "cluster.yaml", warnings));
  check(parseCluster(text, "cluster.yaml", warnings, /*kindsOnly=*/true));
  check(parseHostfile(text, "hostfile", localCluster()));
  SailorMachines machines;
  machines.kinds = {{"A100", 4, 8e10, {}}, {"T4", 1, 1.6e10, {}}};
  check(parseSailorQuotas(text, "quotas.json", machines, warnings));
  return 0;
}
