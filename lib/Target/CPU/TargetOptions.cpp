//===- TargetOptions.cpp - which CPU to compile for -----------------------===//
//
// Detection goes by features, not by the detected name: virtual CPUs report
// model numbers that LLVM takes for another product, whose tuning then prefers
// narrow vectors.
//
//===----------------------------------------------------------------------===//

#include "autohet/Target/CPU/TargetOptions.h"
#include "BackEnd.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace llvm;
using KernelTarget = autohet::cpu::TargetOptions; // LLVM has one of that name

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

/// What LLVM does not know, it would leave out with a warning.
Error checkNames(const KernelTarget &target) {
  Expected<const Target *> backEnd = autohet::cpu::findBackEnd(target.triple);
  if (!backEnd)
    return backEnd.takeError();
  std::unique_ptr<MCSubtargetInfo> known(
      (*backEnd)->createMCSubtargetInfo(Triple(target.triple), "", ""));
  if (X86::parseArchX86(target.cpu, /*Only64Bit=*/true) == X86::CK_None)
    return createStringError(
        "'" + target.cpu +
        "' is no x86-64 CPU that LLVM knows; x86-64-v3 and x86-64-v4 are the "
        "usual ones");
  SmallVector<StringRef> listed;
  StringRef(target.features).split(listed, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : listed) {
    if (!feature.starts_with("+") && !feature.starts_with("-"))
      return createStringError("the CPU feature '" + feature +
                               "' needs '+' (with it) or '-' (without)");
    StringRef name = feature.drop_front();
    if (none_of(known->getAllProcessorFeatures(),
                [&](const auto &entry) { return name == entry.Key; }))
      return createStringError("'" + name +
                               "' is no CPU feature that LLVM knows; its names "
                               "are those of /proc/cpuinfo without '_' "
                               "(avx2, fma, avx512bf16)");
  }
  return Error::success();
}

} // namespace

std::string KernelTarget::str() const {
  return triple + ";" + cpu + ";" + features + ";" + utostr(preferVectorWidth);
}

Expected<KernelTarget> autohet::cpu::resolveTarget(KernelTarget wanted) {
  if (wanted.triple.empty())
    wanted.triple = sys::getDefaultTargetTriple();
  Triple triple(wanted.triple);
  if (triple.getArch() != Triple::x86_64 || !triple.isOSLinux())
    return createStringError("target triple '" + wanted.triple +
                             "' is not supported: kernels are generated for "
                             "x86_64 Linux");
  bool isHost = wanted.cpu.empty() && wanted.features.empty();
  if (isHost) {
    StringMap<bool> host = sys::getHostCPUFeatures();
    auto has = [&](StringRef feature) { return host.lookup(feature); };
    wanted.cpu = missingOf(kLevel4, has).empty() ? "x86-64-v4" : "x86-64-v3";
    SmallVector<StringRef> missing = missingOf(kLevel3, has);
    if (!missing.empty())
      return createStringError("this machine's CPU lacks " +
                               join(missing, ", ") +
                               "; generated code needs at least x86-64-v3");
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
  if (Error error = checkNames(wanted))
    return error;
  std::vector<std::string> required = requiredFeatures(wanted);
  auto has = [&](StringRef feature) { return is_contained(required, feature); };
  SmallVector<StringRef> missing = missingOf(kLevel3, has);
  if (!missing.empty())
    return createStringError(
        "the target '" + wanted.cpu + (wanted.features.empty() ? "" : " ") +
        wanted.features + "' lacks " + join(missing, ", ") +
        "; generated code needs at least x86-64-v3");
  wanted.preferVectorWidth = has("avx512vl") ? 512 : 256;
  return wanted;
}

std::vector<std::string>
autohet::cpu::requiredFeatures(const KernelTarget &target) {
  SmallVector<StringRef> ofCpu, listed;
  X86::getFeaturesForCPU(target.cpu, ofCpu);
  StringMap<bool> features;
  for (StringRef feature : ofCpu)
    features[feature] = true;
  StringRef(target.features).split(listed, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : listed) {
    bool isOn = feature.starts_with("+");
    features[feature.drop_front()] = isOn;
    X86::updateImpliedFeatures(feature.drop_front(), isOn, features);
  }
  std::vector<std::string> required;
  for (const auto &entry : features)
    if (entry.second)
      required.push_back(entry.first().str());
  sort(required);
  return required;
}
