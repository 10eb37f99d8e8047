//===- KnownKinds.cpp - devices that people have --------------------------===//
//
// So that a cluster file need not repeat data sheets. Peaks are dense (without
// the sheets' "sparsity"); 16-bit ones with 32-bit accumulation. What large
// products of transformers reach of a peak is an assumption, stated below and
// printed with every plan that rests on it: a profile of the real devices
// replaces it.
//
//===----------------------------------------------------------------------===//

#include "autohet/Cluster/Cluster.h"

#include "llvm/ADT/STLExtras.h"

namespace autohet {

// Of the peak: products in vector units, in matrix units, and traffic of memory
// and to the host.
static constexpr double vectorEfficiency = 0.85, matrixEfficiency = 0.55,
                        memoryEfficiency = 0.8, hostEfficiency = 0.8;
// Launching a kernel.
static constexpr double launchOverhead_s = 5e-6;

namespace {

// To the host: 16 lanes of the sheet's PCI Express, one way. A sheet's GB is
// read as 10^9 bytes: near to what is free of as many GiB.
// clang-format off
const DataSheet knownKinds[] = {
    {"A10",       24,  600, 31.2, 125,   125,   31.5,  "NVIDIA A10 data sheet"},
    {"A40",       48,  696, 37.4, 149.7, 149.7, 31.5,  "NVIDIA A40 data sheet"},
    {"A100-40",   40, 1555, 19.5, 312,   312,   31.5,  "NVIDIA A100 data sheet, 40 GB SXM"},
    {"A100-80",   80, 2039, 19.5, 312,   312,   31.5,  "NVIDIA A100 data sheet, 80 GB SXM"},
    {"A100-PCIe", 80, 1935, 19.5, 312,   312,   31.5,  "NVIDIA A100 data sheet, 80 GB PCIe"},
    {"A800",      80, 2039, 19.5, 312,   312,   31.5,  "NVIDIA A800 data sheet, 80 GB SXM"},
    {"GH200",     96, 4000, 67,   989.5, 989.5, 450,   "NVIDIA GH200 data sheet, 96 GB HBM3"},
    {"H20",       96, 4000, 44,   148,   148,   63,    "NVIDIA H20 data sheet"},
    {"H100",      80, 3350, 67,   989.5, 989.5, 63,    "NVIDIA H100 data sheet, SXM"},
    {"H100-PCIe", 80, 2000, 51,   756,   756,   63,    "NVIDIA H100 data sheet, PCIe"},
    {"H200",     141, 4800, 67,   989.5, 989.5, 63,    "NVIDIA H200 data sheet, SXM"},
    {"H800",      80, 3350, 67,   989.5, 989.5, 63,    "NVIDIA H800 data sheet, SXM"},
    {"L4",        24,  300, 30.3, 121,   121,   31.5,  "NVIDIA L4 data sheet"},
    {"L40S",      48,  864, 91.6, 362,   362,   31.5,  "NVIDIA L40S data sheet"},
    {"MI250X",    64, 1638, 23.9, 191.5, 191.5, 31.5,  "AMD MI250X data sheet, one of its two dies"},
    {"MI300X",   192, 5300, 163.4, 1307.4, 1307.4, 63,    "AMD MI300X data sheet"},
    {"P100",      16,  732, 10.6, 21.2,  0,     15.75, "NVIDIA P100 data sheet, SXM2"},
    {"RTX-2080Ti", 11, 616, 13.4, 53.8,  0,     15.75, "NVIDIA Turing white paper"},
    {"RTX-3090",  24,  936, 35.6, 71,    71,    31.5,  "NVIDIA GA102 white paper"},
    {"RTX-4090",  24, 1008, 82.6, 165.2, 165.2, 31.5,  "NVIDIA Ada white paper"},
    {"T4",        16,  320, 8.1,  65,    0,     15.75, "NVIDIA T4 data sheet"},
    {"Titan-RTX", 24,  672, 16.3, 130.5, 0,     15.75, "NVIDIA Turing white paper"},
    {"V100-16",   16,  900, 15.7, 125,   0,     15.75, "NVIDIA V100 data sheet, SXM2"},
    {"V100-32",   32,  900, 15.7, 125,   0,     15.75, "NVIDIA V100 data sheet, SXM2"},
};
// clang-format on

// What people write for the one of several that they have most often.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> otherNames[] = {
    {"A100", "A100-80"},        {"A100-40GB", "A100-40"},
    {"A100-80GB", "A100-80"},   {"V100", "V100-16"},
    {"RTX3090", "RTX-3090"},    {"RTX4090", "RTX-4090"},
    {"TITAN-RTX", "Titan-RTX"}, {"GH-96", "GH200"}};

} // namespace

const DataSheet *findDataSheet(llvm::StringRef name) {
  llvm::StringRef wanted = name;
  for (auto [other, known] : otherNames)
    if (name == other)
      wanted = known;
  const auto *found = llvm::find_if(
      knownKinds, [&](const DataSheet &sheet) { return wanted == sheet.name; });
  return found == std::end(knownKinds) ? nullptr : found;
}

std::optional<DeviceKind> findKnownKind(llvm::StringRef name) {
  const DataSheet *found = findDataSheet(name);
  if (!found)
    return std::nullopt;
  DeviceKind kind;
  kind.name = name.str();
  kind.memory_bytes = found->memory_gb * 1e9;
  kind.memory_bandwidth_bytes_per_s =
      found->memory_gb_per_s * 1e9 * memoryEfficiency;
  kind.flops_per_s = found->fp32_tflops * 1e12 * vectorEfficiency;
  kind.flops_fp16_per_s = found->fp16_tflops * 1e12 * matrixEfficiency;
  kind.flops_bf16_per_s = found->bf16_tflops * 1e12 * matrixEfficiency;
  kind.host_bandwidth_bytes_per_s = found->host_gb_per_s * 1e9 * hostEfficiency;
  kind.overhead_s = launchOverhead_s;
  kind.relative_speed = found->fp32_tflops;
  kind.is_gpu = true;
  kind.source = found->source;
  return kind;
}

std::vector<llvm::StringRef> knownKindNames() {
  std::vector<llvm::StringRef> names;
  for (const DataSheet &kind : knownKinds)
    names.push_back(kind.name);
  return names;
}

} // namespace autohet
