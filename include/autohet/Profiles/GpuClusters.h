//===- GpuClusters.h - clusters and models from data sheets -----*- C++ -*-===//
//
// For studies of machines that nobody here has: a cluster of known GPU kinds,
// and a transformer as the units that planning sees, by its shape alone.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_GPUCLUSTERS_H
#define AUTOHET_PROFILES_GPUCLUSTERS_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Plan/UnitTable.h"
#include "autohet/Profiles/GpuKinds.h"

namespace autohet {

/// What a kind reaches, by its data sheet and the efficiency.
DeviceKind deviceKindOf(const GpuKind &kind, const GpuEfficiency &efficiency);

struct DecoderShape {
  int64_t hidden = 0, layers = 0, sequence = 0, vocabulary = 0;
  int64_t inner = 0;      ///< of the feed-forward part
  bool has_gate = false;  ///< three matrices there, not two
  bool ties_words = true; ///< one matrix for embedding and head
};

/// Units "embed", "block0.attn", "block0.mlp", … and "head". Numbers move in 16
/// bits, attention keeps no matrix, and a parameter takes what mixed-precision
/// Adam takes: 16 bytes.
UnitTable unitsOf(const DecoderShape &shape);

} // namespace autohet

#endif
