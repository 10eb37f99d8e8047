//===- GpuKinds.h - data sheets and what is reached of them -----*- C++ -*-===//
//
// For device kinds that nobody has measured yet: how much of what their data
// sheets promise training reaches.
// bench/planner/README.md says how the efficiencies were fitted and how far off
// they are.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_GPUKINDS_H
#define AUTOHET_PROFILES_GPUKINDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace autohet {

/// What a kind's data sheet (findDataSheet) does not say.
struct GpuKind {
  llvm::StringLiteral name;
  double link_bytes_per_s;  ///< to the other GPUs of a node, one way
  unsigned multiprocessors; ///< matrix products run in waves of these

  /// Dense, 16 bit, on tensor cores.
  double flopsPerSecond() const;
  double memoryBytesPerSecond() const;
};

/// All known kinds, by name.
llvm::ArrayRef<GpuKind> gpuKinds();
const GpuKind *findGpuKind(llvm::StringRef name);

/// What a training step reaches of a data sheet. Fitted on one half of 774
/// measured steps on 2 to 512 A100 (bench/planner/accuracy); other kinds are
/// assumed to reach the same part.
struct GpuEfficiency {
  /// Of the dense rate, in a matrix product whose tiles fill the last wave.
  double matmul = 0.81;
  /// Of the memory's bandwidth, in everything else.
  double bandwidth = 0.88;
  /// No forward or backward of a block is shorter: its kernels have to be
  /// started one by one from Python.
  double block_start_s = 1.16e-3;
  /// More for a softmax that no fused kernel takes (Megatron's needs a multiple
  /// of 4 attention matrices).
  double plain_softmax_s = 0.47e-3;
  /// Of a node's network card, in collectives and messages.
  double network = 0.54;
};

} // namespace autohet

#endif
