//===- MixNeighbours.cpp - the mixes that are one change away -------------===//
//
// Two kinds of changes. Within a replica: units go across a cut, two stages
// change places or become one, a stage gets another shape, the microbatch
// another size. Between replicas: a device goes from one to another, two become
// one, one becomes two; then pipelines are fitted to the new devices.
//
//===----------------------------------------------------------------------===//

#include "MixNeighbours.h"
#include "EqualReplicas.h"

#include "llvm/ADT/STLExtras.h"
#include <map>

namespace autohet {

// Pipelines are fitted to devices with no more parts than this.
static constexpr size_t maxFittedParts = 600;
// Shapes of a stage that are tried have at most so many devices more or fewer.
static constexpr unsigned maxDeviceChange = 2;

namespace {

class Neighbours {
public:
  Neighbours(const TemplateMix &mix, TemplateSearch &search,
             const ClassCounts &available)
      : mix(mix), search(search), costs(search.templates().costs),
        available(available), free(available) {
    for (auto [index, used] : llvm::enumerate(devicesOf(mix, available.size())))
      free[index] -= std::min(free[index], used);
  }

  std::vector<TemplateMix> run() {
    for (size_t index = 0; index < mix.size(); ++index) {
      moveUnits(index);
      changeStages(index);
      changeSize(index);
    }
    for (size_t from = 0; from < mix.size(); ++from) {
      addIdle(from);
      split(from);
      for (size_t to = 0; to < mix.size(); ++to)
        if (from != to || mix[from].replicas > 1) {
          moveDevice(from, to);
          if (from <= to)
            merge(from, to);
        }
    }
    return std::move(found);
  }

private:
  //===-- Within a replica ------------------------------------------------===//

  void moveUnits(size_t index) {
    const Template &made = mix[index].made;
    for (size_t s = 0; s + 1 < made.stages.size(); ++s)
      for (int step : {-1, 1}) {
        Template other = made;
        unsigned cut = made.stages[s].end + step;
        if (cut <= made.stages[s].begin || cut >= made.stages[s + 1].end)
          continue;
        other.stages[s].end = other.stages[s + 1].begin = cut;
        change(index, std::move(other));
      }
  }

  void changeStages(size_t index) {
    const Template &made = mix[index].made;
    for (size_t s = 0; s < made.stages.size(); ++s) {
      unsigned devices = costs.shapes()[made.stages[s].shape].deviceCount();
      for (unsigned shape = 0; shape < costs.shapes().size(); ++shape) {
        unsigned others = costs.shapes()[shape].deviceCount();
        if (shape == made.stages[s].shape ||
            std::max(devices, others) - std::min(devices, others) >
                maxDeviceChange)
          continue;
        Template other = made;
        other.stages[s].shape = shape;
        change(index, std::move(other));
      }
      if (s + 1 == made.stages.size())
        continue;
      const TemplateStage &first = made.stages[s], &second = made.stages[s + 1];
      if (first.shape != second.shape) {
        Template other = made;
        std::swap(other.stages[s].shape, other.stages[s + 1].shape);
        change(index, other);
        // Units stay with their shape.
        unsigned cut = first.begin + (second.end - second.begin);
        other.stages[s].end = other.stages[s + 1].begin = cut;
        change(index, std::move(other));
      }
      for (unsigned shape : {first.shape, second.shape}) {
        Template other = made;
        other.stages[s].end = second.end;
        other.stages[s].shape = shape;
        other.stages.erase(other.stages.begin() + s + 1);
        change(index, std::move(other));
      }
    }
  }

  void changeSize(size_t index) {
    llvm::ArrayRef<int64_t> sizes = search.templates().microbatch_sizes;
    const int64_t *own = llvm::find(sizes, mix[index].made.microbatch_size);
    for (const int64_t *other : {own - 1, own + 1}) {
      if (own == sizes.end() || other < sizes.begin() || other == sizes.end())
        continue;
      Template made = mix[index].made;
      made.microbatch_size = *other;
      change(index, std::move(made));
    }
  }

  /// All equal replicas, or one of them.
  void change(size_t index, Template other) {
    if (mix[index].replicas > 1) {
      TemplateMix one = without({{index, 1}});
      append(one, other, 1);
      keep(std::move(one));
    }
    TemplateMix all = without({{index, mix[index].replicas}});
    append(all, std::move(other), mix[index].replicas);
    keep(std::move(all));
  }

  //===-- Between replicas ------------------------------------------------===//

  /// To a replica, or as replicas of their own.
  void addIdle(size_t index) {
    TemplateMix more = mix;
    ++more[index].replicas;
    keep(std::move(more));
    TemplateMix all = mix;
    if (appendFitted(all, free, sizeOf(index)))
      keep(std::move(all));
    for (unsigned c = 0; c < free.size(); ++c) {
      if (!free[c])
        continue;
      ClassCounts single(free.size());
      single[c] = 1;
      TemplateMix alone = mix;
      if (appendFitted(alone, single, sizeOf(index)))
        keep(std::move(alone));
      ClassCounts devices = devicesOfOne(index);
      ++devices[c];
      TemplateMix changed = without({{index, 1}});
      if (appendFitted(changed, devices, sizeOf(index)))
        keep(std::move(changed));
    }
  }

  void moveDevice(size_t from, size_t to) {
    for (unsigned c = 0; c < free.size(); ++c) {
      ClassCounts giver = devicesOfOne(from), taker = devicesOfOne(to);
      if (!giver[c])
        continue;
      --giver[c];
      ++taker[c];
      TemplateMix changed = without({{from, 1}, {to, 1}});
      bool isGone = llvm::all_of(giver, [](unsigned count) { return !count; });
      if (appendFitted(changed, taker, sizeOf(to)) &&
          (isGone || appendFitted(changed, giver, sizeOf(from))))
        keep(std::move(changed));
    }
  }

  void merge(size_t first, size_t second) {
    ClassCounts devices = devicesOfOne(first);
    for (auto [count, other] : llvm::zip_equal(devices, devicesOfOne(second)))
      count += other;
    TemplateMix changed = without({{first, 1}, {second, 1}});
    if (appendFitted(changed, devices, sizeOf(first)))
      keep(std::move(changed));
  }

  void split(size_t index) {
    ClassCounts devices = devicesOfOne(index);
    // Halves, odd devices to one or the other; and each class by itself.
    for (bool areHalved : {true, false})
      for (unsigned c = 0; c < devices.size(); ++c) {
        ClassCounts one = devices;
        if (areHalved) {
          for (unsigned &count : one)
            count /= 2;
          one[c] = devices[c] - one[c];
        } else {
          one[c] = 0;
        }
        ClassCounts other = devices;
        for (auto [count, taken] : llvm::zip_equal(other, one))
          count -= taken;
        TemplateMix changed = without({{index, 1}});
        if (appendFitted(changed, one, sizeOf(index)) &&
            appendFitted(changed, other, sizeOf(index)))
          keep(std::move(changed));
      }
  }

  //===-- Mixes -----------------------------------------------------------===//

  int64_t sizeOf(size_t index) const { return mix[index].made.microbatch_size; }

  ClassCounts devicesOfOne(size_t index) const {
    return devicesOf({{mix[index].made, 1}}, free.size());
  }

  TemplateMix
  without(llvm::ArrayRef<std::pair<size_t, int64_t>> replicas) const {
    TemplateMix rest = mix;
    for (auto [index, count] : replicas)
      rest[index].replicas -= count;
    llvm::erase_if(rest, [](const auto &entry) { return entry.replicas == 0; });
    return rest;
  }

  static void append(TemplateMix &changed, Template made, int64_t replicas) {
    for (CountedTemplate &entry : changed)
      if (entry.made.isSame(made)) {
        entry.replicas += replicas;
        return;
      }
    changed.push_back({std::move(made), replicas});
  }

  bool appendFitted(TemplateMix &changed, const ClassCounts &devices,
                    int64_t size) {
    auto [place, isNew] = fitted.try_emplace({devices, size});
    // Other planners have sizes of their own.
    bool isSearched =
        llvm::is_contained(search.templates().microbatch_sizes, size);
    if (isNew && isSearched && !search.deadline.isOver() &&
        partsOfDevices(devices, maxFittedParts) <= maxFittedParts)
      place->second = search.withDevices(devices, size);
    if (!place->second)
      return false;
    append(changed, *place->second, 1);
    return true;
  }

  void keep(TemplateMix changed) {
    for (auto [used, most] :
         llvm::zip_equal(devicesOfShapes(changed), available))
      if (used > most)
        return;
    found.push_back(std::move(changed));
  }

  /// Templates that were changed know nothing of their devices yet.
  ClassCounts devicesOfShapes(const TemplateMix &changed) const {
    ClassCounts counts(free.size());
    for (const CountedTemplate &entry : changed)
      for (const TemplateStage &stage : entry.made.stages)
        for (const StageShape::Part &part : costs.shapes()[stage.shape].parts)
          counts[part.machine_class] += part.count * entry.replicas;
    return counts;
  }

  const TemplateMix &mix;
  TemplateSearch &search;
  const PlanCosts &costs;
  const ClassCounts &available;
  ClassCounts free; ///< devices that the mix leaves idle
  std::map<std::pair<ClassCounts, int64_t>, std::optional<Template>> fitted;
  std::vector<TemplateMix> found;
};

} // namespace

std::vector<TemplateMix> neighboursOf(const TemplateMix &mix,
                                      TemplateSearch &search,
                                      const ClassCounts &available) {
  return Neighbours(mix, search, available).run();
}

} // namespace autohet
