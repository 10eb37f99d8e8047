//===- TargetOptions.cpp - which CPU to compile for -----------------------===//
//
// Detection goes by features, not by the detected name: virtual CPUs report
// model numbers that LLVM takes for another product, whose tuning then prefers
// narrow vectors.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/TargetOptions.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace autohet::cpu;

namespace {

// What the psABI's levels ask for beyond the level below.
constexpr StringLiteral kLevel3[] = {"avx2", "bmi",   "bmi2", "f16c",
                                     "fma",  "lzcnt", "movbe"};
constexpr StringLiteral kLevel4[] = {"avx512f", "avx512bw", "avx512cd",
                                     "avx512dq", "avx512vl"};

template <typename Has>
SmallVector<StringRef> missingOf(ArrayRef<StringLiteral> level, Has has) {
  SmallVector<StringRef> missing;
  for (StringRef feature : level)
    if (!has(feature))
      missing.push_back(feature);
  return missing;
}

// Features that matter to generated code. The rest of the host's list (crypto,
// virtualisation, memory protection) would only make programs less portable.
bool isUsed(StringRef feature) {
  return is_contained(kLevel3, feature) || is_contained(kLevel4, feature) ||
         feature == "avx512vnni" || feature == "avx512bf16" ||
         feature == "avx512fp16" || feature == "avx512vbmi";
}

bool impliesFeature(StringRef cpu, StringRef feature) {
  bool level4 = cpu == "x86-64-v4", level3 = level4 || cpu == "x86-64-v3";
  return (level3 && is_contained(kLevel3, feature)) ||
         (level4 && is_contained(kLevel4, feature));
}

} // namespace

std::string TargetOptions::str() const {
  return triple + ";" + cpu + ";" + features + ";" + utostr(preferVectorWidth);
}

Expected<TargetOptions> autohet::cpu::resolveTarget(TargetOptions wanted) {
  if (wanted.triple.empty())
    wanted.triple = sys::getDefaultTargetTriple();
  Triple triple(wanted.triple);
  if (triple.getArch() != Triple::x86_64 || !triple.isOSLinux())
    return createStringError("target triple '" + wanted.triple +
                             "' is not supported: kernels are generated for "
                             "x86_64 Linux");
  if (wanted.cpu.empty() && wanted.features.empty()) {
    StringMap<bool> host = sys::getHostCPUFeatures();
    auto has = [&](StringRef feature) { return host.lookup(feature); };
    SmallVector<StringRef> missing = missingOf(kLevel3, has);
    if (!missing.empty())
      return createStringError("this machine's CPU lacks " +
                               join(missing, ", ") +
                               "; generated code needs at least x86-64-v3");
    wanted.cpu = missingOf(kLevel4, has).empty() ? "x86-64-v4" : "x86-64-v3";
    SmallVector<std::string> additions;
    for (const auto &entry : host)
      if (entry.second && isUsed(entry.first()) &&
          !impliesFeature(wanted.cpu, entry.first()))
        additions.push_back("+" + entry.first().str());
    sort(additions); // a hash table's order would change cache keys
    wanted.features = join(additions, ",");
  } else if (wanted.cpu.empty()) {
    wanted.cpu = "x86-64-v3";
  }
  SmallVector<StringRef> listed;
  StringRef(wanted.features).split(listed, ',');
  bool avx512 = wanted.cpu == "x86-64-v4" || is_contained(listed, "+avx512vl");
  wanted.preferVectorWidth = avx512 ? 512 : 256;
  return wanted;
}

std::string autohet::cpu::missingFeaturesOnHost(const TargetOptions &target) {
  StringMap<bool> host = sys::getHostCPUFeatures();
  SmallVector<StringRef> missing;
  auto need = [&](StringRef feature) {
    if (!host.lookup(feature) && !is_contained(missing, feature))
      missing.push_back(feature);
  };
  for (StringRef feature : kLevel3)
    if (impliesFeature(target.cpu, feature))
      need(feature);
  for (StringRef feature : kLevel4)
    if (impliesFeature(target.cpu, feature))
      need(feature);
  SmallVector<StringRef> listed;
  StringRef(target.features).split(listed, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : listed)
    if (feature.consume_front("+"))
      need(feature);
  return join(missing, ", ");
}
