//===- SailorCluster.h - machines as Sailor describes them ------*- C++ -*-===//
//
// Sailor (eth-easl/sailor) has two files: kinds of GPU with how many of them a
// node has, and quotas, which say how many GPUs of each kind there are in each
// zone. Rates are in neither: those of known kinds are taken.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_CLUSTER_SAILORCLUSTER_H
#define AUTOHET_CLUSTER_SAILORCLUSTER_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Support/TreeReader.h"

namespace autohet {

struct SailorKind {
  std::string name;
  int64_t gpus_per_node = 0;
  double memory_bytes = 0;
  TextLocation location; ///< of its name
};

/// The first file.
struct SailorMachines {
  std::string file, zone;
  std::vector<SailorKind> kinds;

  const SailorKind *find(llvm::StringRef name) const;
};

/// Whether a file's top level is that of Sailor's cluster file, and not ours.
bool isSailorCluster(const Tree &tree);
SailorMachines readSailorMachines(const Tree &tree, llvm::StringRef file,
                                  ErrorList &errors);

/// As parseCluster(): one node of each kind, since the file alone says no more,
/// or the kinds whose rates are known.
llvm::Expected<Cluster> clusterOfSailor(const SailorMachines &machines,
                                        std::vector<std::string> &warnings,
                                        bool kindsOnly);

/// Whether a hostfile's text is the second file.
bool isSailorQuotas(llvm::StringRef text);
/// The second file, of these kinds. Nodes are called `zone-kind-0` and so on;
/// the last one of a zone and kind may have fewer devices.
llvm::Expected<Cluster> parseSailorQuotas(llvm::StringRef text,
                                          llvm::StringRef file,
                                          const SailorMachines &machines,
                                          std::vector<std::string> &warnings);
/// Both files; the error says where the first one is not what is needed.
llvm::Expected<Cluster> parseSailorQuotas(llvm::StringRef text,
                                          llvm::StringRef file,
                                          llvm::StringRef machinesFile,
                                          std::vector<std::string> &warnings);

} // namespace autohet

#endif
