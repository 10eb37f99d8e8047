//===- Cluster.h - the machines of a job ------------------------*- C++ -*-===//
//
// Device kinds, nodes with their devices, and directed links: facts only, read
// from a cluster file (docs/formats/cluster.md) or a hostfile. Rates are what a
// device reaches, not what its data sheet says.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_CLUSTER_CLUSTER_H
#define AUTOHET_CLUSTER_CLUSTER_H

#include "autohet/Cluster/Work.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace autohet {

/// What code for a device must be compiled for.
struct Target {
  std::string triple;                ///< empty: of the compiling machine
  std::vector<std::string> features; ///< LLVM's names

  bool operator==(const Target &other) const {
    return triple == other.triple && features == other.features;
  }
};

struct DeviceKind {
  std::string name;
  Target target;
  double memory_bytes = 0;
  /// Of float32 products. The others are for planning only; 0: cannot, or
  /// unknown.
  double flops_per_s = 0;
  double flops_bf16_per_s = 0, flops_fp16_per_s = 0;
  /// Of products inside attention's kernels, and of arithmetic that is no
  /// product; 0: as fast as products.
  double attention_flops_per_s = 0, elementwise_flops_per_s = 0;
  /// 0: memory traffic is not counted.
  double memory_bandwidth_bytes_per_s = 0;
  /// Each way between a device's memory and its host's; 0: unknown, or none.
  double host_bandwidth_bytes_per_s = 0;
  /// To start a command.
  double overhead_s = 2e-6;
  /// For emulation: only the ratios between kinds count.
  double relative_speed = 1;
  int64_t threads = 1;
  double usd_per_hour = 0; ///< of one device; 0: unknown
  /// A graphics processor: plans and simulations only, no code yet.
  bool is_gpu = false;
  /// Where figures come from that the file does not give; empty: from the file.
  std::string source;

  /// The terms are added: on a host nothing hides one behind the other.
  double seconds(const Work &work) const;
};

/// What matrix products are computed in.
enum class Precision { FP32, BF16, FP16 };

llvm::StringRef precisionName(Precision precision); ///< "fp32", …
std::optional<Precision> parsePrecision(llvm::StringRef name);

struct Link {
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;

  double seconds(double bytes) const {
    return latency_s + bytes / bandwidth_bytes_per_s;
  }
};

/// Replaces the default link where both patterns match; the last one wins.
/// A pattern is `node`, `node/index`, or a glob of either (`a*`, `a*/0`).
struct LinkOverride {
  std::string from, to;
  Link link;
};

struct Node {
  std::string name;
  std::string address; ///< empty: local to the others
  unsigned first_device = 0, device_count = 0;
  /// What all its devices together send to, or receive from, other nodes; 0: no
  /// limit but the links'.
  double nic_bytes_per_s = 0;
  /// Between its devices, instead of Cluster::intra_node.
  std::optional<Link> inside;
};

struct Device {
  std::string name;   ///< "node/index"
  unsigned node = 0;  ///< into Cluster::nodes
  unsigned index = 0; ///< as written; filtering does not renumber
  unsigned kind = 0;  ///< into Cluster::kinds
};

class Cluster {
public:
  std::vector<DeviceKind> kinds;
  std::vector<Node> nodes;
  std::vector<LinkOverride> overrides;
  Link intra_node = {10e9, 2e-6};
  Link inter_node = {1.25e9, 50e-6};

  unsigned addKind(DeviceKind kind);
  /// Adds a node with one device of each given kind, in order.
  unsigned addNode(llvm::StringRef name, llvm::StringRef address,
                   llvm::ArrayRef<unsigned> deviceKinds);

  llvm::ArrayRef<Device> devices() const { return allDevices; }
  const DeviceKind &kindOf(unsigned device) const {
    return kinds[allDevices[device].kind];
  }
  std::optional<unsigned> findKind(llvm::StringRef name) const;
  std::optional<unsigned> findNode(llvm::StringRef name) const;
  /// By its name "node/index".
  std::optional<unsigned> findDevice(llvm::StringRef name) const;

  /// The link that a message between two devices takes. To itself: free.
  Link link(unsigned fromDevice, unsigned toDevice) const;
  /// "10 GB/s within a node and 1.25 GB/s between nodes", where no file says
  /// otherwise.
  std::string describeLinks() const;

  /// Sets each kind's rate to that of `precision`. The error names the kinds
  /// that cannot compute in it.
  llvm::Error usePrecision(Precision precision);

  /// Keeps the devices that match one of `patterns` (as in LinkOverride), and
  /// nodes that still have one. The error names a pattern that matches none
  /// and what there is.
  llvm::Expected<Cluster> filter(llvm::ArrayRef<std::string> patterns) const;

private:
  std::vector<Device> allDevices;
  llvm::StringMap<unsigned> deviceIndex;
};

/// What the maker of a known kind promises, dense and at best.
struct DataSheet {
  const char *name;
  double memory_gb, memory_gb_per_s;
  double fp32_tflops, fp16_tflops, bf16_tflops; ///< 0: cannot
  double host_gb_per_s;                         ///< to the host, each way
  const char *source;
};
/// By one of the names that findKnownKind takes; null where unknown.
const DataSheet *findDataSheet(llvm::StringRef name);

/// Kinds of devices that people have, by the names that they use ("A100-80"):
/// data-sheet figures times a stated efficiency. None where unknown.
std::optional<DeviceKind> findKnownKind(llvm::StringRef name);
std::vector<llvm::StringRef> knownKindNames();

/// Whether a pattern names this device or its node.
bool matchesDevice(llvm::StringRef pattern, const Cluster &cluster,
                   unsigned device);

/// More is a typing error; planning would take minutes.
constexpr uint64_t kMostDevices = 100000;

/// Reads a cluster file. Readings that are legal but hardly meant (80 bytes of
/// memory) are added to `warnings`. Without nodes where `kindsOnly`.
llvm::Expected<Cluster> parseCluster(llvm::StringRef text, llvm::StringRef file,
                                     std::vector<std::string> &warnings,
                                     bool kindsOnly = false);
llvm::Expected<Cluster> loadCluster(llvm::StringRef path,
                                    std::vector<std::string> &warnings,
                                    bool kindsOnly = false);

/// A cluster file that reads back as this cluster, whose devices must be all
/// those of its nodes.
std::string formatCluster(const Cluster &cluster);

/// Reads `host slots=N [type=T]` lines. Types are kinds of `kinds`; hosts
/// without one have the kind of this machine.
llvm::Expected<Cluster>
parseHostfile(llvm::StringRef text, llvm::StringRef file, const Cluster &kinds);
llvm::Expected<Cluster> loadHostfile(llvm::StringRef path,
                                     const Cluster &kinds);

/// What a user names: a cluster file, a hostfile, or both, which then brings
/// the nodes and the file the kinds; neither is this machine.
struct ClusterSource {
  std::string file, hostfile;
  std::vector<std::string> include; ///< patterns; empty: all devices

  /// Whether its rates are somebody's measurement; this machine's are assumed.
  bool hasRates() const { return !file.empty() || !hostfile.empty(); }
};
llvm::Expected<Cluster> loadCluster(const ClusterSource &source,
                                    std::vector<std::string> &warnings);

/// This machine as one device of a node "localhost".
Cluster localCluster();
/// Its only kind, "host". The rate is assumed, not measured.
DeviceKind hostKind();

} // namespace autohet

#endif
