//===- SailorData.h - measured layers and links of Sailor -------*- C++ -*-===//
//
// Sailor (eth-easl/sailor, MIT) publishes seconds and bytes of each layer of
// four models on seven GPU kinds, and fits of network bandwidths. This reads
// them as they are. What is missing in a profile is an error with the list of
// what there is, never 0 seconds.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_SAILORDATA_H
#define AUTOHET_PROFILES_SAILORDATA_H

#include "autohet/Cluster/SailorCluster.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace autohet {

/// Of one microbatch on each of the devices that share the layer.
struct LayerSeconds {
  double forward_s = 0, backward_s = 0, update_s = 0;

  double pass() const { return forward_s + backward_s; }
};

/// Of one sample on each of the devices that share the layer, in fp32 numbers.
struct LayerFloats {
  double parameters = 0;
  double output = 0; ///< whole, whatever the tensor parallelism
  double kept = 0;   ///< from the forward to the backward
};

/// GB/s = c[0] l² + c[1] l + c[2] with l = log2(bytes / 1e6).
struct BandwidthFit {
  double c[3] = {0, 0, 0};
  double peak_bytes_per_s = 0;

  /// The quadratic falls and turns negative outside of what was measured: held
  /// between a thousandth of the peak and the peak.
  double bytesPerSecond(double bytes) const;
  double seconds(double bytes) const { return bytes / bytesPerSecond(bytes); }
};

/// One model's layers; the first is the embedding, the last the head.
class SailorModel {
public:
  std::string name;
  unsigned layer_count = 0;

  /// `[layer]`; the error names what was asked for and what there is.
  llvm::Expected<llvm::ArrayRef<LayerSeconds>>
  seconds(llvm::StringRef kind, int64_t microbatchSize, int64_t tensor) const;
  /// Null where there is none.
  const std::vector<LayerSeconds> *findSeconds(llvm::StringRef kind,
                                               int64_t microbatchSize,
                                               int64_t tensor) const;
  llvm::Expected<llvm::ArrayRef<LayerFloats>> floats(int64_t tensor) const;

  /// [kind, microbatch size, tensor parallelism]
  std::map<std::tuple<std::string, int64_t, int64_t>, std::vector<LayerSeconds>>
      times;
  std::map<int64_t, std::vector<LayerFloats>> sizes;
  /// Bytes of all parameters of a layer.
  double parameterBytes(unsigned layer) const;
};

struct SailorData {
  std::map<std::string, SailorModel> models;
  std::vector<SailorKind> kinds;
  /// Between nodes: [zone, kind, GPUs in use, zone, kind, GPUs in use].
  using Link = std::tuple<std::string, std::string, int64_t>;
  std::map<std::pair<Link, Link>, BandwidthFit> between;
  /// [kind, GPUs in use], between nodes of one kind and within one.
  std::map<std::pair<std::string, int64_t>, BandwidthFit> same_kind, inside;

  llvm::Expected<const SailorModel *> model(llvm::StringRef name) const;
  llvm::Expected<const SailorKind *> kind(llvm::StringRef name) const;
  llvm::Expected<BandwidthFit> link(const Link &from, const Link &to) const;
  /// Between nodes of one kind.
  llvm::Expected<BandwidthFit> sameKind(llvm::StringRef kind,
                                        int64_t gpus) const;
};

/// Reads profiles/, network/ and config/ below `folder`. Entries that cannot
/// be measurements (an update in no time) are left out and named in `warnings`.
llvm::Expected<SailorData> loadSailorData(llvm::StringRef folder,
                                          std::vector<std::string> &warnings);

} // namespace autohet

#endif
