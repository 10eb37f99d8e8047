//===- JudgeTerms.cpp - the terms of Sailor's formulas --------------------===//

#include "JudgeTerms.h"

#include <algorithm>

namespace autohet {

// The original's constants.
static constexpr double bytesPerFloat = 4;
static constexpr double bytesPerParameter = 24;
static constexpr double bucketBytes = 5e8;
static constexpr double libraryBytes = 2e9, libraryBytesWithTensor = 3e9;
static constexpr int64_t largestDivisor = 4;

double countedSends(size_t stage, size_t count, double activations_s,
                    double gradients_s) {
  if (count == 1)
    return 0;
  if (stage == 0)
    return count <= 3 ? activations_s : 2 * activations_s;
  if (stage == count - 1)
    return 2 * gradients_s;
  return activations_s + gradients_s;
}

llvm::Expected<JudgeTerms::Seconds>
JudgeTerms::stageSeconds(const SailorGroup &group, unsigned begin, unsigned end,
                         int64_t microbatchSize) const {
  auto layers = ofModel.seconds(group.kind, microbatchSize, group.tensor);
  if (!layers)
    return layers.takeError();
  Seconds seconds;
  for (const LayerSeconds &layer : layers->slice(begin, end - begin))
    seconds.pass_s += layer.pass();
  // The original counts one layer's update for the whole stage.
  seconds.update_s = (*layers)[begin].update_s;
  return seconds;
}

static SailorData::Link endOf(const SailorGroup &group, int64_t gpus) {
  return {group.zone, group.kind, gpus};
}

llvm::Expected<double> JudgeTerms::sendSeconds(const SailorGroup &from,
                                               const SailorGroup &to,
                                               unsigned layer,
                                               int64_t microbatchSize) const {
  auto fit = data.link(endOf(from, std::min(from.tensor, from.gpus_per_node)),
                       endOf(to, std::min(to.tensor, to.gpus_per_node)));
  if (!fit)
    return fit.takeError();
  double floats = ofModel.sizes.begin()->second[layer].output;
  return fit->seconds(floats * bytesPerFloat *
                      static_cast<double>(microbatchSize));
}

llvm::Expected<double>
JudgeTerms::ringSeconds(llvm::ArrayRef<SailorGroup> holders, unsigned begin,
                        unsigned end) const {
  if (holders.size() < 2)
    return 0;
  int64_t smallest = largestDivisor;
  for (const SailorGroup &group : holders)
    smallest = std::min(smallest, group.tensor);
  double divisor = static_cast<double>(smallest);
  double ranks = static_cast<double>(holders.size());
  double bytes = 0;
  for (unsigned layer = begin; layer < end; ++layer)
    bytes += ofModel.parameterBytes(layer);
  bytes /= divisor;

  double slowest = 0;
  const SailorGroup *lastFrom = nullptr, *lastTo = nullptr;
  auto isSame = [](const SailorGroup &one, const SailorGroup &other) {
    return one.kind == other.kind && one.zone == other.zone &&
           one.tensor == other.tensor;
  };
  for (size_t hop = 0; hop + 1 < holders.size(); ++hop) {
    const SailorGroup &from = holders[hop], &to = holders[hop + 1];
    if (lastFrom && isSame(*lastFrom, from) && isSame(*lastTo, to))
      continue;
    lastFrom = &from;
    lastTo = &to;
    auto single = data.link(endOf(from, 1), endOf(to, 1));
    if (!single)
      return single.takeError();
    auto shared = data.link(endOf(from, from.tensor), endOf(to, to.tensor));
    if (!shared)
      return shared.takeError();
    double seconds = 0;
    for (double rest = bytes; rest > 0; rest -= bucketBytes) {
      double part = std::min(rest, bucketBytes) / ranks;
      double hopSeconds = single->seconds(part);
      // All ranks of the node send their parts through the one NIC.
      if (options.ranks_share_nic)
        hopSeconds =
            std::max(hopSeconds, part * divisor / shared->bytesPerSecond(part));
      seconds += 2 * (ranks - 1) * hopSeconds;
    }
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

llvm::Expected<double> JudgeTerms::memoryBytes(int64_t tensor, unsigned begin,
                                               unsigned end,
                                               int64_t microbatchSize,
                                               int64_t inFlight) const {
  auto layers = ofModel.floats(tensor);
  if (!layers)
    return layers.takeError();
  double parameters = 0, kept = 0;
  for (const LayerFloats &layer : layers->slice(begin, end - begin)) {
    parameters += layer.parameters;
    kept += layer.kept;
  }
  return parameters * bytesPerParameter +
         kept * bytesPerFloat * static_cast<double>(microbatchSize * inFlight) +
         (tensor == 1 ? libraryBytes : libraryBytesWithTensor);
}

} // namespace autohet
