//===- SailorData.cpp - looking measured layers and links up --------------===//

#include "autohet/Profiles/SailorData.h"

#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>

namespace autohet {

double BandwidthFit::bytesPerSecond(double bytes) const {
  double l = std::log2(bytes / 1e6);
  double fitted = (c[0] * l * l + c[1] * l + c[2]) * 1e9;
  return std::clamp(fitted, peak_bytes_per_s * 1e-3, peak_bytes_per_s);
}

const std::vector<LayerSeconds> *
SailorModel::findSeconds(llvm::StringRef kind, int64_t microbatchSize,
                         int64_t tensor) const {
  auto found = times.find({kind.str(), microbatchSize, tensor});
  return found == times.end() ? nullptr : &found->second;
}

llvm::Expected<llvm::ArrayRef<LayerSeconds>>
SailorModel::seconds(llvm::StringRef kind, int64_t microbatchSize,
                     int64_t tensor) const {
  if (const std::vector<LayerSeconds> *found =
          findSeconds(kind, microbatchSize, tensor))
    return llvm::ArrayRef<LayerSeconds>(*found);
  std::string known;
  for (const auto &[key, layers] : times)
    if (std::get<0>(key) == kind)
      known += (known.empty() ? "" : ", ") + std::to_string(std::get<1>(key)) +
               "x" + std::to_string(std::get<2>(key));
  return llvm::createStringError(
      "no profile of '" + name + "' on '" + kind.str() +
      "' with microbatches of " + std::to_string(microbatchSize) +
      " on tensor parallelism " + std::to_string(tensor) +
      "; known (microbatch x tensor parallelism): " +
      (known.empty() ? "none" : known));
}

llvm::Expected<llvm::ArrayRef<LayerFloats>>
SailorModel::floats(int64_t tensor) const {
  auto found = sizes.find(tensor);
  if (found != sizes.end())
    return llvm::ArrayRef<LayerFloats>(found->second);
  std::string known;
  for (const auto &[key, layers] : sizes)
    known += (known.empty() ? "" : ", ") + std::to_string(key);
  return llvm::createStringError("no sizes of '" + name +
                                 "' for tensor parallelism " +
                                 std::to_string(tensor) + "; known: " + known);
}

double SailorModel::parameterBytes(unsigned layer) const {
  // The smallest degree measured stands for the whole: 1 where it is known.
  const auto &[tensor, layers] = *sizes.begin();
  return layers[layer].parameters * 4 * static_cast<double>(tensor);
}

template <typename Map>
static std::string keysOf(const Map &map) {
  std::string keys;
  for (const auto &[key, value] : map)
    keys += (keys.empty() ? "" : ", ") + key;
  return keys;
}

llvm::Expected<const SailorModel *>
SailorData::model(llvm::StringRef name) const {
  auto found = models.find(name.str());
  if (found != models.end())
    return &found->second;
  return llvm::createStringError("no profile of model '" + name.str() +
                                 "'; known: " + keysOf(models));
}

llvm::Expected<const SailorKind *>
SailorData::kind(llvm::StringRef name) const {
  std::string known;
  for (const SailorKind &kind : kinds) {
    if (kind.name == name)
      return &kind;
    known += (known.empty() ? "" : ", ") + kind.name;
  }
  return llvm::createStringError("unknown device kind '" + name.str() +
                                 "'; known kinds: " + known);
}

static std::string describe(const SailorData::Link &end) {
  return std::to_string(std::get<2>(end)) + " x " + std::get<1>(end) + " in " +
         std::get<0>(end);
}

llvm::Expected<BandwidthFit> SailorData::link(const Link &from,
                                              const Link &to) const {
  auto found = between.find({from, to});
  if (found != between.end())
    return found->second;
  return llvm::createStringError("no bandwidth from " + describe(from) +
                                 " to " + describe(to));
}

llvm::Expected<BandwidthFit> SailorData::sameKind(llvm::StringRef kind,
                                                  int64_t gpus) const {
  auto found = same_kind.find({kind.str(), gpus});
  if (found != same_kind.end())
    return found->second;
  return llvm::createStringError("no bandwidth between nodes with " +
                                 std::to_string(gpus) + " x " + kind.str());
}

} // namespace autohet
