//===- SailorSearch.cpp - the best plan that Sailor's judge can read ------===//

#include "autohet/Profiles/SailorSearch.h"
#include "JudgeTerms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace autohet {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr unsigned maxStages = 8;

/// A kind with a degree of tensor parallelism, and its layers' prefix sums.
struct Way {
  unsigned pool = 0;
  SailorGroup group;
  // Of layers [0, i), one microbatch.
  std::vector<double> pass_s, fixed_bytes, kept_bytes;
  double room_bytes = 0; ///< without what libraries take
};

/// Groups of a stage: `other` only where it has two kinds.
struct StageKind {
  unsigned way = 0;
  std::optional<unsigned> other;
};

struct Candidate {
  double step_s = never;
  int64_t microbatch_size = 1, groups = 1;
  llvm::SmallVector<StageKind> stages;
  llvm::SmallVector<unsigned> ends;
};

class Search {
public:
  Search(llvm::ArrayRef<SailorPool> pools, llvm::StringRef zone,
         int64_t globalBatch, const SailorModel &model, const SailorData &data,
         const JudgeOptions &options)
      : pools(pools), zone(zone.str()), globalBatch(globalBatch), model(model),
        data(data), options(options), terms(model, data, options),
        layers(model.layer_count) {
    for (unsigned layer = 0; layer < layers; ++layer)
      parameterBytes += model.parameterBytes(layer);
  }

  llvm::Error run() {
    std::set<int64_t> sizes;
    for (const auto &[key, times] : model.times)
      sizes.insert(std::get<1>(key));
    // Plain shapes first: a good plan to prune all others with.
    for (bool plain : {true, false})
      for (int64_t size : sizes)
        if (llvm::Error error = trySize(size, plain))
          return error;
    return llvm::Error::success();
  }

  llvm::Error trySize(int64_t size, bool plain) {
    arePlain = plain;
    microbatchSize = size;
    if (llvm::Error error = makeWays())
      return error;
    if (ways.empty())
      return llvm::Error::success();
    int64_t most = 0;
    for (const SailorPool &pool : pools)
      most += pool.gpus;
    most = std::min<int64_t>(most, llvm::divideCeil(globalBatch, size));
    for (groups = 1; groups <= most; ++groups) {
      microbatches = llvm::divideCeil(globalBatch, size * groups);
      tryRuns();
    }
    return llvm::Error::success();
  }

  std::optional<SailorPlan> plan() const {
    if (best.step_s == never)
      return std::nullopt;
    SailorPlan plan;
    plan.microbatch_size = best.microbatch_size;
    plan.global_batch = globalBatch;
    plan.pipelines.emplace_back();
    unsigned begin = 0;
    for (auto [index, end] : llvm::enumerate(best.ends)) {
      SailorStage stage{begin, end, {}};
      for (const auto &[group, count] : bestGroups[index])
        stage.groups.insert(stage.groups.end(), count, group);
      plan.pipelines[0].stages.push_back(std::move(stage));
      begin = end;
    }
    return plan;
  }

  uint64_t shapes = 0;

private:
  /// All ways that the profile has for this size of microbatch.
  llvm::Error makeWays() {
    ways.clear();
    sends.clear();
    for (const auto &[index, pool] : llvm::enumerate(pools)) {
      auto kind = data.kind(pool.kind);
      if (!kind)
        return kind.takeError();
      for (int64_t tensor = 1; tensor <= (*kind)->gpus_per_node; ++tensor) {
        const std::vector<LayerSeconds> *times =
            model.findSeconds(pool.kind, microbatchSize, tensor);
        if (!times || !model.sizes.count(tensor))
          continue;
        Way way;
        way.pool = index;
        way.group = {pool.kind, (*kind)->gpus_per_node, zone, tensor};
        auto bytes = [&](unsigned end, int64_t inFlight) {
          return llvm::cantFail(
              terms.memoryBytes(tensor, 0, end, microbatchSize, inFlight));
        };
        double libraries = bytes(0, 0);
        way.room_bytes = (*kind)->memory_bytes - libraries;
        way.pass_s.push_back(0);
        for (const LayerSeconds &layer : *times)
          way.pass_s.push_back(way.pass_s.back() + layer.pass());
        for (unsigned end = 0; end <= layers; ++end) {
          way.fixed_bytes.push_back(bytes(end, 0) - libraries);
          way.kept_bytes.push_back(bytes(end, 1) - bytes(end, 0));
        }
        ways.push_back(std::move(way));
      }
    }
    // No ring is faster than a node's card at its peak, shared or not.
    fastestSync = 0;
    for (const Way &way : ways) {
      SailorData::Link end = {zone, way.group.kind, way.group.tensor};
      auto fit = data.link(end, end);
      if (!fit)
        return fit.takeError();
      double alone = fit->peak_bytes_per_s;
      if (!options.ranks_share_nic)
        alone *= static_cast<double>(way.group.tensor);
      fastestSync = std::max(fastestSync, alone);
    }
    // All layers but the last send alike.
    for (const Way &from : ways)
      for (const Way &to : ways) {
        auto seconds =
            terms.sendSeconds(from.group, to.group, 0, microbatchSize);
        if (!seconds)
          return seconds.takeError();
        sends.push_back(*seconds);
      }
    return llvm::Error::success();
  }

  double send(unsigned from, unsigned to) const {
    return sends[from * ways.size() + to];
  }

  double seconds(const StageKind &stage, unsigned begin, unsigned end) const {
    auto of = [&](unsigned way) {
      return ways[way].pass_s[end] - ways[way].pass_s[begin];
    };
    return stage.other ? std::max(of(stage.way), of(*stage.other))
                       : of(stage.way);
  }

  /// The slowest message between groups of two stages.
  double send(const StageKind &from, const StageKind &to) const {
    double slowest = 0;
    for (std::optional<unsigned> sender : {std::optional(from.way), from.other})
      for (std::optional<unsigned> taker : {std::optional(to.way), to.other})
        if (sender && taker)
          slowest = std::max(slowest, send(*sender, *taker));
    return slowest;
  }

  bool fits(const StageKind &stage, unsigned begin, unsigned end,
            int64_t inFlight) const {
    for (std::optional<unsigned> index :
         {std::optional(stage.way), stage.other}) {
      if (!index)
        continue;
      const Way &way = ways[*index];
      if (way.fixed_bytes[end] - way.fixed_bytes[begin] +
              (way.kept_bytes[end] - way.kept_bytes[begin]) *
                  static_cast<double>(inFlight) >
          way.room_bytes)
        return false;
    }
    return true;
  }

  /// Every sequence of runs that the pools can fill `groups` times.
  void tryRuns() {
    std::vector<unsigned> order;
    for (unsigned pool = 0; pool < pools.size(); ++pool)
      order.push_back(pool);
    blockRates.clear();
    for (const Way &way : ways)
      blockRates.push_back(static_cast<double>(layers - 2) /
                           (way.pass_s[layers - 1] - way.pass_s[1]));
    do {
      left.clear();
      for (const SailorPool &pool : pools)
        left.push_back(pool.gpus);
      llvm::SmallVector<StageKind> stages;
      tryPool(order, 0, stages);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  bool push(unsigned way, llvm::SmallVector<StageKind> &stages) {
    int64_t &room = left[ways[way].pool];
    int64_t need = groups * ways[way].group.tensor;
    if (stages.size() == maxStages || room < need)
      return false;
    room -= need;
    rate += blockRates[way];
    stages.push_back({way, std::nullopt});
    return true;
  }
  void pop(unsigned count, unsigned way, llvm::SmallVector<StageKind> &stages) {
    left[ways[way].pool] += count * groups * ways[way].group.tensor;
    rate -= count * blockRates[way];
    stages.resize(stages.size() - count);
  }

  /// Whether all blocks at a summed speed of `blocksPerSecond` a microbatch,
  /// the way of one of them, and the all-reduce of an even part of the
  /// parameters would already take longer than the best plan.
  bool isTooSlow(double blocksPerSecond, size_t stages) const {
    double blocks = static_cast<double>(layers - 2);
    double pipeline =
        static_cast<double>(microbatches - 1) * blocks / blocksPerSecond +
        blocks / *std::max_element(blockRates.begin(), blockRates.end());
    return pipeline + syncAtLeast(stages) >= best.step_s;
  }

  double syncAtLeast(size_t stages) const {
    double ranks = static_cast<double>(groups);
    return 2 * (ranks - 1) / ranks * parameterBytes /
           static_cast<double>(stages) / fastestSync;
  }

  /// What the GPUs left in a pool could add at most.
  double potential(unsigned pool) const {
    double most = 0;
    for (auto [way, blockRate] : llvm::zip_equal(ways, blockRates))
      if (way.pool == pool)
        most =
            std::max(most, blockRate * static_cast<double>(left[pool]) /
                               static_cast<double>(groups * way.group.tensor));
    return most;
  }

  /// Stages on the pools order[at], order[at + 1], …
  void tryPool(const std::vector<unsigned> &order, size_t at,
               llvm::SmallVector<StageKind> &stages) {
    if (at == order.size()) {
      if (!stages.empty())
        tryCuts(stages);
      return;
    }
    double most = rate;
    for (size_t pool = at; pool < order.size(); ++pool)
      most += potential(order[pool]);
    if (isTooSlow(most, maxStages))
      return;
    // A first run with one degree, a second with another.
    for (unsigned first = 0; first < ways.size(); ++first) {
      if (ways[first].pool != order[at])
        continue;
      unsigned taken = 0;
      for (; push(first, stages); ++taken) {
        afterRun(order, at, stages);
        for (unsigned second = 0; second < ways.size(); ++second) {
          if (arePlain || ways[second].pool != order[at] || second == first)
            continue;
          unsigned more = 0;
          for (; push(second, stages); ++more)
            afterRun(order, at, stages);
          pop(more, second, stages);
        }
      }
      pop(taken, first, stages);
    }
    afterRun(order, at, stages);
  }

  /// Goes on to the next pool, directly or over a stage on both.
  void afterRun(const std::vector<unsigned> &order, size_t at,
                llvm::SmallVector<StageKind> &stages) {
    tryPool(order, at + 1, stages);
    if (at + 1 == order.size() || arePlain || mixed ||
        stages.size() == maxStages)
      return;
    for (unsigned way = 0; way < ways.size(); ++way)
      for (unsigned other = 0; other < ways.size(); ++other) {
        if (ways[way].pool != order[at] || ways[other].pool != order[at + 1])
          continue;
        // What is left for the mixed stage is seen when the sequence is
        // complete; that it can have at most both pools' rests, here.
        mixed = StageKind{way, other};
        if (mixedShare()) {
          double slower = std::min(blockRates[way], blockRates[other]);
          rate += slower;
          stages.push_back(*mixed);
          tryPool(order, at + 1, stages);
          stages.pop_back();
          rate -= slower;
        }
        mixed.reset();
      }
  }

  /// How many groups of the mixed stage run on its first kind.
  std::optional<int64_t> mixedShare() const {
    const Way &way = ways[mixed->way], &other = ways[*mixed->other];
    int64_t most = left[way.pool] / way.group.tensor;
    int64_t others = left[other.pool] / other.group.tensor;
    if (most == 0 || others == 0 || most + others < groups || groups < 2)
      return std::nullopt;
    return std::min(most, groups - 1);
  }

  void tryCuts(llvm::ArrayRef<StageKind> stages) {
    std::optional<int64_t> share;
    if (mixed) {
      share = mixedShare();
      if (!share)
        return;
    }
    ++shapes;
    if (isTooSlow(rate, stages.size()))
      return;
    size_t count = stages.size();
    llvm::SmallVector<double> counted;
    double fastest = 0, charged = 0, weighted = 0;
    for (size_t s = 0; s < count; ++s) {
      counted.push_back(countedSends(
          s, count, s + 1 < count ? send(stages[s], stages[s + 1]) : 0,
          s ? send(stages[s], stages[s - 1]) : 0));
      double own = stages[s].other ? std::min(blockRates[stages[s].way],
                                              blockRates[*stages[s].other])
                                   : blockRates[stages[s].way];
      fastest = std::max(fastest, own);
      charged += counted[s];
      weighted += counted[s] * own;
    }
    // As isTooSlow(), with this shape's messages: stages that all end together
    // are the best that cuts could do.
    double blocks = static_cast<double>(layers - 2);
    double others = static_cast<double>(microbatches - 1);
    double rest = syncAtLeast(count);
    if (others * (blocks + weighted) / rate + blocks / fastest + charged +
            rest >=
        best.step_s)
      return;
    double limit = best.step_s - rest - charged - blocks / fastest;

    // longest[s][end]: of stages [0, s) on layers [0, end).
    std::vector<std::vector<double>> longest(
        count + 1, std::vector<double>(layers + 1, never));
    std::vector<std::vector<unsigned>> from(
        count + 1, std::vector<unsigned>(layers + 1, 0));
    longest[0][0] = 0;
    for (size_t s = 0; s < count; ++s)
      for (unsigned begin = 0; begin < layers; ++begin) {
        if (longest[s][begin] == never)
          continue;
        for (unsigned end = begin + 1; end <= layers; ++end) {
          double slot = std::max(longest[s][begin],
                                 seconds(stages[s], begin, end) + counted[s]);
          if (others * slot >= limit ||
              !fits(stages[s], begin, end, static_cast<int64_t>(count - s)))
            break;
          if (slot < longest[s + 1][end]) {
            longest[s + 1][end] = slot;
            from[s + 1][end] = begin;
          }
        }
      }
    if (longest[count][layers] == never)
      return;
    Candidate candidate;
    candidate.ends.resize(count);
    unsigned end = layers;
    for (size_t s = count; s; --s) {
      candidate.ends[s - 1] = end;
      end = from[s][end];
    }
    candidate.stages.assign(stages.begin(), stages.end());
    judge(candidate, share);
  }

  void judge(Candidate &candidate, std::optional<int64_t> share) {
    Candidate before = std::move(best);
    auto groupsBefore = std::move(bestGroups);
    best = std::move(candidate);
    best.microbatch_size = microbatchSize;
    best.groups = groups;
    best.step_s = 0;
    bestGroups.clear();
    for (const StageKind &stage : best.stages) {
      auto &list = bestGroups.emplace_back();
      if (!stage.other) {
        list.push_back({ways[stage.way].group, groups});
        continue;
      }
      list.push_back({ways[stage.way].group, *share});
      list.push_back({ways[*stage.other].group, groups - *share});
    }
    JudgedStep step =
        llvm::cantFail(judgeSailorPlan(*plan(), model, data, options));
    best.step_s = step.fits() ? step.step_s : never;
    if (best.step_s < before.step_s)
      return;
    best = std::move(before);
    bestGroups = std::move(groupsBefore);
  }

  llvm::ArrayRef<SailorPool> pools;
  std::string zone;
  int64_t globalBatch;
  const SailorModel &model;
  const SailorData &data;
  const JudgeOptions &options;
  JudgeTerms terms;
  unsigned layers;
  double parameterBytes = 0;

  int64_t microbatchSize = 1, groups = 1, microbatches = 1;
  std::vector<Way> ways;
  std::vector<double> sends;
  std::vector<double> blockRates; ///< of each way, blocks a second
  std::vector<int64_t> left;      ///< of each pool
  double rate = 0;                ///< of the stages so far
  double fastestSync = 0;         ///< bytes/s
  std::optional<StageKind> mixed;
  bool arePlain = false; ///< no second run, no mixed stage

  Candidate best;
  std::vector<std::vector<std::pair<SailorGroup, int64_t>>> bestGroups;
};

} // namespace

llvm::Expected<SailorSearchResult>
searchSailorPlan(llvm::ArrayRef<SailorPool> pools, llvm::StringRef zone,
                 int64_t globalBatch, const SailorModel &model,
                 const SailorData &data, const JudgeOptions &options) {
  if (pools.empty() || pools.size() > 2)
    return llvm::createStringError("plans of " + std::to_string(pools.size()) +
                                   " kinds: one or two are supported");
  Search search(pools, zone, globalBatch, model, data, options);
  if (llvm::Error error = search.run())
    return error;
  std::optional<SailorPlan> plan = search.plan();
  if (!plan)
    return llvm::createStringError("no profiled plan of '" + model.name +
                                   "' fits into these devices");
  auto step = judgeSailorPlan(*plan, model, data, options);
  if (!step)
    return step.takeError();
  return SailorSearchResult{std::move(*plan), *step, search.shapes};
}

} // namespace autohet
