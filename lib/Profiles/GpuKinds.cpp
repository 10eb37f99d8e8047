//===- GpuKinds.cpp - data sheets of GPU kinds ----------------------------===//

#include "autohet/Profiles/GpuKinds.h"
#include "autohet/Cluster/Cluster.h"

#include "llvm/ADT/STLExtras.h"

namespace autohet {

static constexpr double giga = 1e9;

// NVLink's rates are sums of both ways on the sheets, halved here; without
// NVLink it is PCIe's x16 rate. Multiprocessors are those of the makers' white
// papers on the chips.
static constexpr GpuKind kinds[] = {
    {"A100-40", 300 * giga, 108}, {"A100-80", 300 * giga, 108},
    {"H100", 450 * giga, 132},    {"H20", 450 * giga, 78},
    {"H800", 200 * giga, 132},    {"L4", 32 * giga, 58},
    {"RTX-3090", 32 * giga, 82},  {"T4", 16 * giga, 40},
    {"V100-16", 150 * giga, 80},
};

double GpuKind::flopsPerSecond() const {
  return findDataSheet(name)->fp16_tflops * 1e12;
}

double GpuKind::memoryBytesPerSecond() const {
  return findDataSheet(name)->memory_gb_per_s * giga;
}

llvm::ArrayRef<GpuKind> gpuKinds() { return kinds; }

const GpuKind *findGpuKind(llvm::StringRef name) {
  const GpuKind *found = llvm::find_if(
      kinds, [&](const GpuKind &kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

} // namespace autohet
