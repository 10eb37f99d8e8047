//===- MixImprovement.cpp - small changes to a whole plan -----------------===//

#include "MixImprovement.h"
#include "MixNeighbours.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>
#include <tuple>

namespace autohet {

// A neighbour is judged if its estimate is at most this times the estimate of
// what it is a neighbour of: estimates leave out how gradients overlap.
static constexpr double promising = 1.02;
// So much faster is better.
static constexpr double leastGain = 1e-4;
// Mixes judged, times pairs of devices, since that is what judging goes over: a
// small part of a second.
static constexpr size_t judgedPairs = 400000;
// More devices than this are left to the relaxation: rounding costs less there.
static constexpr size_t maxDevices = 256;

/// What tells mixes apart, whatever the order of their templates.
static std::vector<int64_t> keyOf(const TemplateMix &mix) {
  std::vector<std::vector<int64_t>> entries;
  for (const CountedTemplate &entry : mix) {
    std::vector<int64_t> &key = entries.emplace_back();
    key = {entry.made.microbatch_size, entry.replicas};
    for (const TemplateStage &stage : entry.made.stages)
      key.insert(key.end(), {stage.end, stage.shape,
                             static_cast<unsigned>(stage.keeping)});
    key.push_back(-1);
  }
  llvm::sort(entries);
  std::vector<int64_t> all;
  for (const std::vector<int64_t> &key : entries)
    llvm::append_range(all, key);
  return all;
}

MixImprovement::MixImprovement(MixSearch &mixes, Judge &judge)
    : mixes(mixes), judge(judge), options(judge.plannerOptions()),
      available(judge.planCosts().classes().counts()) {
  size_t devices = judge.planCosts().machines().devices().size();
  budget = devices > maxDevices ? 0 : judgedPairs / (devices * devices);
}

void MixImprovement::run(const ResolvedPlan &start) {
  std::optional<TemplateMix> mix = mixOfPlan(start, judge.planCosts());
  if (!mix || isOver() || !tried.insert(keyOf(*mix)).second || !measure(*mix))
    return;
  double seconds = judged(*mix);
  while (!isOver() && improveOnce(*mix, seconds)) {
  }
}

// To the first better neighbour, by rising estimate.
bool MixImprovement::improveOnce(TemplateMix &mix, double &seconds) {
  int64_t replicas = replicaCount(mix);
  TemplateSearch search(mixes.spaceFor(replicas, replicas),
                        options.global_batch);
  search.deadline = judge.deadline();
  double limit = promising * secondsOfMix(mix, options.global_batch);
  std::vector<std::pair<double, TemplateMix>> candidates;
  for (TemplateMix &other : neighboursOf(mix, search, available)) {
    if (judge.isLate())
      return false;
    if (!tried.insert(keyOf(other)).second || !measure(other))
      continue;
    double estimate = secondsOfMix(other, options.global_batch);
    if (estimate < limit)
      candidates.emplace_back(estimate, std::move(other));
  }
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::tie(candidates[a].first, a) < std::tie(candidates[b].first, b);
  });
  for (size_t index : order) {
    if (isOver())
      return false;
    TemplateMix &other = candidates[index].second;
    double other_s = judged(other);
    if (other_s > seconds * (1 - leastGain))
      continue;
    seconds = other_s;
    mix = std::move(other);
    return true;
  }
  return false;
}

// The mix keeps its estimates, which compare with those of its neighbours.
double MixImprovement::judged(const TemplateMix &mix) {
  --budget;
  TemplateMix placed = mix;
  return mixes.judgeMix(placed);
}

// Whether it is within memory and the limit of devices.
bool MixImprovement::measure(TemplateMix &mix) const {
  int64_t replicas = replicaCount(mix);
  if (replicas > options.global_batch)
    return false;
  TemplateSpace space = mixes.spaceFor(replicas, replicas);
  space.are_stages_apart = true;
  for (CountedTemplate &entry : mix) {
    if (!checkTemplate(entry.made, space, space.ownedAtBest()).empty())
      return false;
    measureTemplate(entry.made, space);
  }
  unsigned devices = 0;
  for (unsigned count : devicesOf(mix, available.size()))
    devices += count;
  return !options.max_devices || devices <= *options.max_devices;
}

} // namespace autohet
