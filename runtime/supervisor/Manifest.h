//===- Manifest.h - nodes and ranks of a job ------------------------------===//
//
// The parsed form of manifest.json (docs/formats/manifest.md), which supervisor
// and autohet-run share.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_RUNTIME_SUPERVISOR_MANIFEST_H
#define AUTOHET_RUNTIME_SUPERVISOR_MANIFEST_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace autohet::runtime {

struct ManifestNode {
  std::string name;
  std::string address; ///< "" where the cluster file gives none
  std::string executable;
  std::string triple;
  std::vector<std::string> features;

  /// On the same machine as all other local nodes.
  bool isLocal() const;
};

struct ManifestRank {
  uint32_t node = 0, device = 0;
  std::string kind;
  uint32_t threads = 1, replica = 0, stage = 0;
  uint64_t memory_bytes = 0; ///< 0: unknown
  double relative_speed = 1;
};

struct ManifestLink {
  uint32_t from = 0, to = 0;
  double bandwidth_bytes_per_s = 0, latency_s = 0;
};

struct Manifest {
  std::string name, structure_hash, plan_hash, program_hash, weights_index;
  uint64_t global_batch = 0; ///< 0: not given
  std::vector<ManifestNode> nodes;
  std::vector<ManifestRank> ranks;
  std::vector<ManifestLink> links;

  /// The first rank of `node`; its others follow it.
  uint32_t firstRank(uint32_t node) const;
  uint32_t rankCount(uint32_t node) const;

  /// "rank 2 (n0/1)", as every message calls it.
  std::string describeRank(uint32_t rank) const;
};

/// On failure returns false and sets `error`, which begins with where.
bool parseManifest(std::string_view text, Manifest &manifest,
                   std::string &error);

/// Whether `address` is a loopback address or "localhost", without asking a
/// name server.
bool isLoopbackName(std::string_view address);

} // namespace autohet::runtime

#endif
