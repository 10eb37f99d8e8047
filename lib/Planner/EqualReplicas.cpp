//===- EqualReplicas.cpp - a replica of given devices ---------------------===//

#include "EqualReplicas.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace autohet {

// Two periods that differ by this part are one.
static constexpr double periodTolerance = 2e-3;

size_t partsOfDevices(const ClassCounts &devices, size_t most) {
  size_t parts = 1;
  for (unsigned count : devices)
    parts = std::min(most + 1, parts * (count + 1));
  return parts;
}

namespace {

class DevicesProgram {
public:
  DevicesProgram(const TemplateSpace &space, StageTables &tables,
                 const ClassCounts &devices)
      : tables(tables), devices(devices) {
    size_t states = 1;
    for (unsigned count : devices) {
      strides.push_back(states);
      states *= count + 1;
    }
    tails.resize(states);
    for (auto [index, variant] : llvm::enumerate(tables.variants())) {
      Choice choice = {static_cast<unsigned>(index), 0,
                       ClassCounts(devices.size())};
      bool fits = true;
      for (const StageShape::Part &part :
           space.costs.shapes()[variant.shape].parts) {
        choice.need[part.machine_class] += part.count;
        choice.offset += part.count * strides[part.machine_class];
        fits &= part.count <= devices[part.machine_class];
      }
      if (fits)
        choices.push_back(std::move(choice));
    }
  }

  /// Whether the devices do all units within the period.
  bool fits(double period_s) {
    std::fill(tails.begin(), tails.end(), Tail());
    tails[0].begin = tables.unitCount();
    for (size_t state = 0; state < tails.size(); ++state) {
      const Tail &tail = tails[state];
      if (tail.begin == unreached)
        continue;
      if (tail.begin == 0) {
        reached = state;
        return true;
      }
      for (const Choice &choice : choices)
        if (isThere(state, choice))
          extend(state, choice, period_s);
    }
    return false;
  }

  std::vector<TemplateStage> stages() const {
    std::vector<TemplateStage> result;
    unsigned begin = 0;
    for (size_t state = reached; state != 0;) {
      const Tail &tail = tails[state];
      const StageTables::Variant &variant = tables.variants()[tail.variant];
      state = tail.rest;
      result.push_back(
          {begin, tails[state].begin, variant.shape, variant.recompute});
      begin = tails[state].begin;
    }
    return result;
  }

private:
  static constexpr unsigned unreached = ~0u;

  /// The most units from the end on one part of the devices.
  struct Tail {
    unsigned begin = unreached, depth = 0;
    unsigned variant = 0; ///< of its first stage
    size_t rest = 0;      ///< the part without that one
  };
  struct Choice {
    unsigned variant;
    size_t offset;
    ClassCounts need;
  };

  bool isThere(size_t state, const Choice &choice) const {
    for (size_t index = 0; index < devices.size(); ++index)
      if (choice.need[index] &&
          state / strides[index] % (devices[index] + 1) + choice.need[index] >
              devices[index])
        return false;
    return true;
  }

  void extend(size_t state, const Choice &choice, double period_s) {
    const Tail &tail = tails[state];
    const StageTables::Variant &variant = tables.variants()[choice.variant];
    llvm::ArrayRef<uint16_t> furthest =
        tables.furthestEnds(choice.variant, tail.depth + 1);
    double room = period_s;
    if (state != 0)
      room -= tables
                  .transfer(tail.begin, variant.group,
                            tables.variants()[tail.variant].group)
                  .total();
    unsigned begin = tail.begin;
    while (begin > 0 &&
           variant.total_s[tail.begin] - variant.total_s[begin - 1] <= room &&
           furthest[begin - 1] >= tail.begin)
      --begin;
    if (begin == tail.begin)
      return;
    Tail &place = tails[state + choice.offset];
    if (place.begin == unreached || begin < place.begin ||
        (begin == place.begin && tail.depth + 1 < place.depth))
      place = {begin, tail.depth + 1, choice.variant, state};
  }

  StageTables &tables;
  const ClassCounts &devices;
  std::vector<size_t> strides;
  std::vector<Choice> choices;
  std::vector<Tail> tails; ///< of each part of the devices
  size_t reached = 0;
};

} // namespace

std::optional<Template> fitDevices(const TemplateSpace &space,
                                   StageTables &tables, int64_t microbatchSize,
                                   const ClassCounts &devices) {
  DevicesProgram program(space, tables, devices);
  double low = 0, high = tables.longestPeriod();
  if (!program.fits(high))
    return std::nullopt;
  Template made;
  made.microbatch_size = microbatchSize;
  made.stages = program.stages();
  while (high - low > periodTolerance * high) {
    double middle = (low + high) / 2;
    if (program.fits(middle)) {
      high = middle;
      made.stages = program.stages();
    } else {
      low = middle;
    }
  }
  measureTemplate(made, space);
  return made;
}

} // namespace autohet
