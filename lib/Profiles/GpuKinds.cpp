//===- GpuKinds.cpp - data sheets of GPU kinds ----------------------------===//

#include "autohet/Profiles/GpuKinds.h"

#include "llvm/ADT/STLExtras.h"

namespace autohet {

static constexpr double tera = 1e12, giga = 1e9;
static constexpr double gib = 1024.0 * 1024 * 1024;

// Rates of data sheets are without sparsity. NVLink's are sums of both ways on
// the sheets, halved here; without NVLink it is PCIe's x16 rate.
static constexpr GpuKind kinds[] = {
    {"A100-40", 312 * tera, 40 * gib, 1555 * giga, 300 * giga, 108,
     "NVIDIA A100 Tensor Core GPU data sheet, SXM 40 GB"},
    {"A100-80", 312 * tera, 80 * gib, 2039 * giga, 300 * giga, 108,
     "NVIDIA A100 Tensor Core GPU data sheet, SXM 80 GB"},
    {"GH200-96", 989 * tera, 96 * gib, 4000 * giga, 450 * giga, 132,
     "NVIDIA GH200 Grace Hopper Superchip data sheet, HBM3"},
    {"H100", 989 * tera, 80 * gib, 3350 * giga, 450 * giga, 132,
     "NVIDIA H100 Tensor Core GPU data sheet, SXM"},
    {"H20", 148 * tera, 96 * gib, 4000 * giga, 450 * giga, 78,
     "published specification of the H20: 148 TFLOP/s, 4.0 TB/s, 900 GB/s"},
    {"H800", 989 * tera, 80 * gib, 3350 * giga, 200 * giga, 132,
     "published specification of the H800 SXM: H100 with 400 GB/s NVLink"},
    {"L4", 121 * tera, 24 * gib, 300 * giga, 32 * giga, 58,
     "NVIDIA L4 Tensor Core GPU data sheet"},
    {"RTX-3090", 71 * tera, 24 * gib, 936 * giga, 32 * giga, 82,
     "NVIDIA Ampere GA102 whitepaper, FP16 with FP32 accumulation"},
    {"T4", 65 * tera, 16 * gib, 300 * giga, 16 * giga, 40,
     "NVIDIA T4 Tensor Core GPU data sheet"},
    {"V100-16", 125 * tera, 16 * gib, 900 * giga, 150 * giga, 80,
     "NVIDIA V100 Tensor Core GPU data sheet, SXM2 16 GB"},
};

llvm::ArrayRef<GpuKind> gpuKinds() { return kinds; }

const GpuKind *findGpuKind(llvm::StringRef name) {
  const GpuKind *found = llvm::find_if(
      kinds, [&](const GpuKind &kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : found;
}

} // namespace autohet
