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

/// A device of the cluster file, used by the job or not.
struct ManifestDevice {
  uint32_t threads = 1;
  double relative_speed = 1;
};

struct ManifestLink {
  double bandwidth_bytes_per_s = 0; ///< 0: not limited
  double latency_s = 0;
};

/// For messages between devices that both patterns match: `node`, `node/index`
/// or a glob of either.
struct ManifestLinkOverride {
  std::string from, to;
  ManifestLink link;
};

struct Manifest {
  std::string name, structure_hash, plan_hash, program_hash, weights_index;
  uint64_t global_batch = 0; ///< 0: not given
  std::string optimizer;     ///< empty: not given
  std::vector<ManifestNode> nodes;
  std::vector<ManifestRank> ranks;
  /// Empty: the ranks are all there are.
  std::vector<ManifestDevice> clusterDevices;
  ManifestLink intra_node, inter_node;
  std::vector<ManifestLinkOverride> overrides;

  /// The first rank of `node`; its others follow it.
  uint32_t firstRank(uint32_t node) const;
  uint32_t rankCount(uint32_t node) const;

  /// What the cluster file says of messages from one rank to another.
  ManifestLink linkBetween(uint32_t from, uint32_t to) const;

  /// "n0/1"
  std::string deviceName(uint32_t rank) const;
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
