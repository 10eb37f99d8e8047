//===- MixSearch.cpp - plans of whole numbers of templates ----------------===//

#include "MixSearch.h"
#include "EqualReplicas.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// More devices than this make a cluster a large one.
static constexpr size_t manyDevices = 256;
// With fewer microbatches a stage than this, filling a pipeline takes long.
static constexpr size_t deepFactor = 4;
// So many plans of equal replicas are judged.
static constexpr size_t maxEqualMixes = 4, maxSingleMixes = 2;
// Numbers of devices of each class that small replicas have, in small and large
// clusters.
static constexpr size_t fewSmallParts = 40, manySmallParts = 600;
// Mixes of other numbers of replicas than was assumed.
static constexpr unsigned replicaRounds = 3;
// Rounds of running what was chosen, and of choosing again with what the judge
// saw; and of these, with those that only found what lacks memory.
static constexpr unsigned runRounds = 8, judgeRounds = 4, mostTried = 12;
// States of the knapsack, for small and large clusters.
static constexpr size_t fewStates = 20000, manyStates = 200000;

MixSearch::MixSearch(Judge &judge, std::vector<int64_t> microbatchSizes)
    : judge(judge), costs(judge.planCosts()), options(judge.plannerOptions()),
      sizes(std::move(microbatchSizes)), available(costs.classes().counts()) {}

TemplateSpace MixSearch::spaceFor(int64_t minReplicas,
                                  int64_t maxReplicas) const {
  TemplateSpace space = {costs, sizes, options.allow_recompute, minReplicas,
                         maxReplicas};
  space.allow_offload = options.allow_offload;
  space.state_parts = options.state_owner != "spread" ? StateParts::Alone
                      : judge.shares_state            ? StateParts::Uneven
                                                      : StateParts::Even;
  return space;
}

void MixSearch::add(Template made) {
  if (llvm::none_of(pool,
                    [&](const Template &other) { return made.isSame(other); }))
    pool.push_back(std::move(made));
}

//===-- Equal and small replicas ------------------------------------------===//

// All replicas alike: whole mixtures of one template are hard to find by
// rounding. On all devices, or on one alone where others would hold it up.
void MixSearch::addEqualReplicas(TemplateSearch &search, size_t least,
                                 size_t most) {
  search.deadline = judge.deadline();
  const TemplateSpace &space = search.templates();
  for (int64_t replicas = space.min_replicas; replicas <= space.max_replicas;
       ++replicas) {
    ClassCounts each = available, next = available;
    for (unsigned &count : each)
      count /= replicas;
    for (unsigned &count : next)
      count /= replicas + 1;
    // One replica more of the same is better.
    bool isMost = each != next || replicas == options.global_batch;
    size_t count = partsOfDevices(each, most);
    if (isMost && count > least && count <= most)
      addEqualReplicas(search, each, replicas, equalMixes);
  }
  if (space.min_replicas > 1 || least > 0)
    return;
  for (size_t index = 0; index < available.size(); ++index) {
    if (available[index] == 0)
      continue;
    ClassCounts one(available.size());
    one[index] = 1;
    addEqualReplicas(search, one, 1, singleMixes);
  }
}

void MixSearch::addEqualReplicas(TemplateSearch &search,
                                 const ClassCounts &each, int64_t replicas,
                                 TemplateMix &mixes) {
  for (int64_t size : sizes) {
    if (size * replicas > options.global_batch || judge.isLate())
      break;
    if (!addEqual(search, each, size, replicas, mixes))
      break; // larger ones need more memory
  }
}

// Few microbatches take long to fill many stages: wider ones may do.
bool MixSearch::addEqual(TemplateSearch &search, const ClassCounts &each,
                         int64_t size, int64_t replicas, TemplateMix &mixes) {
  int64_t microbatches = options.global_batch / (size * replicas);
  std::optional<Template> last;
  for (unsigned least = 1; !judge.isLate(); least *= 2) {
    std::optional<Template> made = search.withDevices(each, size, least);
    if (!made)
      break;
    if (!last || !made->isSame(*last)) {
      add(*made);
      last = made;
      runTemplate(*made, costs, microbatches);
      // Sizes that are no part of the batch are for mixtures.
      if (options.global_batch % size == 0)
        mixes.push_back({std::move(*made), replicas});
    }
    if (microbatches >= static_cast<int64_t>(deepFactor * last->stages.size()))
      break;
  }
  return last.has_value();
}

void MixSearch::judgeEqual() {
  auto seconds = [&](const CountedTemplate &entry) {
    return secondsOfMix({entry}, options.global_batch);
  };
  // Apart, since what estimates leave out is between devices.
  for (auto [mixes, most] : {std::pair(&equalMixes, maxEqualMixes),
                             {&singleMixes, maxSingleMixes}}) {
    llvm::sort(*mixes, [&](const CountedTemplate &a, const CountedTemplate &b) {
      return std::make_pair(seconds(a), a.replicas) <
             std::make_pair(seconds(b), b.replicas);
    });
    for (const CountedTemplate &entry :
         llvm::ArrayRef(*mixes).take_front(most)) {
      TemplateMix mix = {entry};
      if (!judge.isLate())
        judgeMix(mix);
    }
  }
}

// Few devices of each class, in about the proportion that there are.
void MixSearch::addSmallReplicas(TemplateSearch &search) {
  search.deadline = judge.deadline();
  size_t maxParts = costs.machines().devices().size() <= manyDevices
                        ? fewSmallParts
                        : manySmallParts;
  ClassCounts most(available.size());
  while (true) {
    std::optional<size_t> scarcest;
    auto left = [&](size_t index) {
      return static_cast<double>(available[index]) / (most[index] + 1);
    };
    for (size_t index = 0; index < most.size(); ++index)
      if (most[index] < available[index] &&
          (!scarcest || left(index) > left(*scarcest)))
        scarcest = index;
    if (!scarcest)
      break;
    ++most[*scarcest];
    if (partsOfDevices(most, maxParts) > maxParts) {
      --most[*scarcest];
      break;
    }
  }
  ClassCounts devices(most.size());
  while (!judge.isLate()) {
    size_t digit = 0;
    while (digit < most.size() && devices[digit] == most[digit])
      devices[digit++] = 0;
    if (digit == most.size())
      return;
    ++devices[digit];
    for (int64_t size : sizes) {
      std::optional<Template> made = search.withDevices(devices, size);
      if (!made)
        break; // larger ones need more memory
      add(std::move(*made));
    }
  }
}

//===-- Mixes -------------------------------------------------------------===//

// What replicas exchange and how much state each holds depends on how many
// there are: solve again until that is what was assumed.
void MixSearch::run(int64_t replicas) {
  for (unsigned round = 0; round < replicaRounds && !judge.isLate(); ++round)
    if (!mixed.insert(replicas).second || !runMixes(replicas))
      return;
}

MixProblem MixSearch::makeProblem(int64_t replicas) const {
  TemplateSpace space = spaceFor(replicas, replicas);
  space.are_stages_apart = true;
  MixProblem problem;
  problem.global_batch = options.global_batch;
  problem.available = available;
  problem.max_devices = options.max_devices;
  problem.max_states =
      costs.machines().devices().size() <= manyDevices ? fewStates : manyStates;
  problem.deadline = judge.deadline();
  for (const Template &made : pool) {
    if (!checkTemplate(made, space, space.ownedAtBest()).empty())
      continue;
    problem.templates.push_back(made);
    measureTemplate(problem.templates.back(), space);
  }
  return problem;
}

// Whether there was a mix; `replicas` is then how many it has.
bool MixSearch::runMixes(int64_t &replicas) {
  MixProblem problem = makeProblem(replicas);
  std::vector<bool> isRun(problem.templates.size());
  bool isAny = false;
  unsigned round = 0;
  for (unsigned tried = 0;
       round < judgeRounds && tried < mostTried && !judge.isLate(); ++tried) {
    problem.limit_s = judge.bestSeconds();
    TemplateMix mix = solveMix(problem);
    // The recurrence is a little short of what schedules reach: run what was
    // chosen, and choose again.
    for (unsigned run = 0; run < runRounds && runChosen(mix, problem, isRun);
         ++run)
      mix = solveMix(problem);
    if (mix.empty())
      break;
    if (!mayMakeBatch(mix)) {
      dropTemplates(problem, isRun, [&](const Template &made) {
        return options.global_batch % made.microbatch_size != 0;
      });
      continue;
    }
    isAny = true;
    judgeMix(mix);
    replicas = replicaCount(mix);
    for (const CountedTemplate &entry : mix)
      for (Template &made : problem.templates)
        if (made.isSame(entry.made))
          made = entry.made;
    // What lacked memory is in no mix that fits.
    round += !dropTemplates(
        problem, isRun, [](const Template &made) { return made.lacks_memory; });
  }
  return isAny;
}

// No whole numbers of these microbatches are the batch if it is no multiple of
// what all their sizes are multiples of.
bool MixSearch::mayMakeBatch(const TemplateMix &mix) const {
  int64_t common = 0;
  for (const CountedTemplate &entry : mix)
    common = std::gcd(common, entry.made.microbatch_size);
  return common == 0 || options.global_batch % common == 0;
}

// Whether there was any: then other mixes are sought.
bool MixSearch::dropTemplates(
    MixProblem &problem, std::vector<bool> &isRun,
    llvm::function_ref<bool(const Template &)> isOut) {
  size_t kept = 0;
  for (size_t index = 0; index < problem.templates.size(); ++index) {
    if (isOut(problem.templates[index]))
      continue;
    if (kept != index) {
      problem.templates[kept] = std::move(problem.templates[index]);
      isRun[kept] = isRun[index];
    }
    ++kept;
  }
  bool isAny = kept < problem.templates.size();
  problem.templates.resize(kept);
  isRun.resize(kept);
  return isAny;
}

bool MixSearch::runChosen(const TemplateMix &mix, MixProblem &problem,
                          std::vector<bool> &isRun) const {
  double seconds = secondsOfMix(mix, options.global_batch);
  bool isAny = false;
  for (auto [index, made] : llvm::enumerate(problem.templates)) {
    if (isRun[index] ||
        llvm::none_of(mix, [&made = made](const CountedTemplate &entry) {
          return entry.made.isSame(made);
        }))
      continue;
    runTemplate(made, costs, made.microbatchesWithin(seconds));
    isRun[index] = isAny = true;
  }
  return isAny;
}

/// The replicas of a mix that have a part in the batch: not those too slow to
/// do even one microbatch in time, which only hold others up; and where there
/// are more than microbatches, those that do most.
static TemplateMix usedOf(const TemplateMix &mix, int64_t globalBatch) {
  double seconds = secondsOfMix(mix, globalBatch) * (1 + 1e-9);
  TemplateMix used;
  int64_t smallest = 0; // each does one microbatch
  for (const CountedTemplate &entry : mix)
    if (entry.made.microbatchesWithin(seconds) > 0) {
      used.push_back(entry);
      smallest += entry.replicas * entry.made.microbatch_size;
    }
  if (smallest <= globalBatch)
    return used;
  auto samplesOf = [&](const CountedTemplate &entry) {
    return entry.made.microbatchesWithin(seconds) * entry.made.microbatch_size;
  };
  llvm::stable_sort(used, [&](const auto &a, const auto &b) {
    return samplesOf(a) > samplesOf(b);
  });
  int64_t left = globalBatch;
  for (CountedTemplate &entry : used) {
    int64_t size = entry.made.microbatch_size;
    entry.replicas = std::min(entry.replicas, left / size);
    left -= entry.replicas * size;
  }
  llvm::erase_if(used, [](const auto &entry) { return entry.replicas == 0; });
  return used;
}

// The times are those under the best placement.
double MixSearch::judgeMix(TemplateMix &mix) {
  TemplateMix used = usedOf(mix, options.global_batch);
  std::vector<ReplicaLine> lines;
  for (const CountedTemplate &entry : used)
    for (int64_t i = 0; i < entry.replicas; ++i)
      lines.push_back({entry.made.pace_s, entry.made.way_s, entry.made.rest_s});
  bool isPlaced = false;
  SeenReplicas best;
  for (PlacementOrder order :
       {PlacementOrder::ByReplica, PlacementOrder::ByStage,
        PlacementOrder::BySize}) {
    if (isPlaced && (order == PlacementOrder::BySize || judge.isLate()))
      continue;
    std::optional<ResolvedPlan> plan = placeTemplates(used, costs, order);
    if (!plan)
      continue;
    isPlaced = true;
    SeenReplicas seen = judge.considerCounts(std::move(*plan), lines);
    if (seen.areBetterThan(best))
      best = std::move(seen);
  }
  mix = std::move(used);
  if (best.lines.empty())
    return never;
  size_t replica = 0;
  for (CountedTemplate &entry : mix) {
    entry.made.pace_s = entry.made.rest_s = 0;
    for (int64_t i = 0; i < entry.replicas; ++i, ++replica) {
      const ReplicaLine &line = best.lines[replica];
      entry.made.pace_s = std::max(entry.made.pace_s, line.period_s);
      entry.made.rest_s = std::max(entry.made.rest_s, line.rest_s);
      entry.made.lacks_memory |= best.lack_memory[replica];
    }
  }
  return best.fit() ? best.step_s : never;
}

} // namespace autohet
