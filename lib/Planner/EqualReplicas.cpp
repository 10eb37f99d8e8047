//===- EqualReplicas.cpp - a replica of given devices ---------------------===//

#include "EqualReplicas.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

namespace autohet {

// Two periods that differ by this part are one.
static constexpr double periodTolerance = 2e-3;
// The deadline is asked once in so many parts of devices.
static constexpr size_t askedStates = 256;

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
                 const ClassCounts &devices, unsigned leastStage,
                 const Deadline &deadline)
      : space(space), tables(tables), devices(devices), deadline(deadline) {
    size_t states = 1;
    for (unsigned count : devices) {
      strides.push_back(states);
      states *= count + 1;
    }
    tails.resize(states);
    for (auto [index, variant] : llvm::enumerate(tables.variants())) {
      Choice choice = {
          static_cast<unsigned>(index), 0, ClassCounts(devices.size()), {}};
      for (const StageShape::Part &part :
           space.costs.shapes()[variant.shape].parts) {
        choice.need[part.machine_class] += part.count;
        choice.offset += part.count * strides[part.machine_class];
      }
      unsigned size =
          std::accumulate(choice.need.begin(), choice.need.end(), 0u);
      if (size >= leastStage && isPartOf(choice.need, devices))
        choices.push_back(std::move(choice));
    }
    findChoices();
  }

  /// No stages of these devices have a shorter period: what its units take of
  /// all devices' speed is no more than there is.
  double leastPeriod() const {
    auto speedOf = [&](const ClassCounts &counts) {
      double sum = 0;
      for (auto [index, count] : llvm::enumerate(counts))
        sum += count * space.costs.machines()
                           .kinds[space.costs.classes()[index].kind]
                           .flops_per_s;
      return sum;
    };
    std::vector<double> speeds;
    for (const Choice &choice : choices)
      speeds.push_back(speedOf(choice.need));
    double sum = 0;
    for (unsigned kind = 0; kind < tables.kindCount(); ++kind) {
      double least = std::numeric_limits<double>::infinity();
      llvm::ArrayRef<double> times = tables.kindSeconds(kind);
      for (auto [choice, speed] : llvm::zip_equal(choices, speeds))
        least = std::min(least, speed * times[choice.variant]);
      sum += least * tables.unitsOfKind(kind);
    }
    return choices.empty() ? 0 : sum / speedOf(devices) * (1 - 1e-9);
  }

  /// Whether the devices do all units within the period.
  bool fits(double period_s) {
    std::fill(tails.begin(), tails.end(), Tail());
    tails[0].begin = tables.unitCount();
    for (size_t state = 0; state < tails.size(); ++state) {
      if (tails[state].begin == unreached)
        continue;
      if (state % askedStates == 0 && deadline.isOver())
        return false;
      if (tails[state].begin == 0) {
        reached = state;
        return true;
      }
      for (unsigned index = firstChoices[state];
           index < firstChoices[state + 1]; ++index)
        extend(state, choices[choicesOfStates[index]], period_s);
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
          {begin, tails[state].begin, variant.shape, variant.keeping});
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
    /// By depth, as StageTables::nearestBegins(); empty: not asked yet.
    std::vector<llvm::ArrayRef<uint16_t>> nearest;
  };

  static bool isPartOf(const ClassCounts &some, const ClassCounts &all) {
    return llvm::all_of(llvm::zip_equal(some, all), [](auto pair) {
      return std::get<0>(pair) <= std::get<1>(pair);
    });
  }

  /// Which choices what is left beside each state has devices for.
  void findChoices() {
    ClassCounts left = devices;
    for (size_t state = 0; state < tails.size(); ++state) {
      firstChoices.push_back(choicesOfStates.size());
      for (auto [index, choice] : llvm::enumerate(choices))
        if (isPartOf(choice.need, left))
          choicesOfStates.push_back(index);
      for (size_t digit = 0; digit < left.size(); ++digit) {
        if (left[digit]-- > 0)
          break;
        left[digit] = devices[digit];
      }
    }
    firstChoices.push_back(choicesOfStates.size());
  }

  llvm::ArrayRef<uint16_t> nearestBegins(Choice &choice, unsigned depth) {
    if (choice.nearest.size() <= depth)
      choice.nearest.resize(depth + 1);
    if (choice.nearest[depth].empty())
      choice.nearest[depth] = tables.nearestBegins(choice.variant, depth);
    return choice.nearest[depth];
  }

  void extend(size_t state, Choice &choice, double period_s) {
    const Tail &tail = tails[state];
    Tail &place = tails[state + choice.offset];
    // So many units at least, or the place is better as it is.
    unsigned most = tail.begin - 1;
    if (place.begin != unreached) {
      bool isShallower = tail.depth + 1 < place.depth;
      if (place.begin == 0 && !isShallower)
        return;
      most = std::min(most, isShallower ? place.begin : place.begin - 1);
    }
    unsigned nearest = nearestBegins(choice, tail.depth + 1)[tail.begin];
    if (nearest > most)
      return;
    const StageTables::Variant &variant = tables.variants()[choice.variant];
    double room = period_s;
    if (state != 0)
      room -= tables
                  .transfer(tail.begin, variant.group,
                            tables.variants()[tail.variant].group)
                  .total();
    auto isWithin = [&](unsigned begin) {
      return variant.total_s[tail.begin] - variant.total_s[begin] <= room;
    };
    if (!isWithin(most))
      return;
    unsigned begin = most;
    while (begin > nearest && isWithin(begin - 1))
      --begin;
    place = {begin, tail.depth + 1, choice.variant, state};
  }

  const TemplateSpace &space;
  StageTables &tables;
  const ClassCounts &devices;
  const Deadline &deadline;
  std::vector<size_t> strides;
  std::vector<Choice> choices;
  /// Of each state, from the one number to the next.
  std::vector<unsigned> firstChoices, choicesOfStates;
  std::vector<Tail> tails; ///< of each part of the devices
  size_t reached = 0;
};

} // namespace

std::optional<Template> fitDevices(const TemplateSpace &space,
                                   StageTables &tables, int64_t microbatchSize,
                                   const ClassCounts &devices,
                                   unsigned leastStage,
                                   const Deadline &deadline) {
  DevicesProgram program(space, tables, devices, leastStage, deadline);
  double low = 0, high = tables.longestPeriod();
  if (!program.fits(high))
    return std::nullopt;
  Template made;
  made.microbatch_size = microbatchSize;
  made.stages = program.stages();
  double least = program.leastPeriod();
  while (high - low > periodTolerance * high && !deadline.isOver()) {
    double middle = (low + high) / 2;
    if (middle >= least && program.fits(middle)) {
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
