//===- MixProblem.cpp - how many replicas of each template ----------------===//

#include "MixProblem.h"
#include "MixRelaxation.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace autohet {

static constexpr double never = std::numeric_limits<double>::infinity();
// Two times that differ by this part are one.
static constexpr double timeTolerance = 1e-3;

ClassCounts MixProblem::rooms() const {
  ClassCounts rooms = available;
  if (max_devices)
    rooms.push_back(*max_devices);
  return rooms;
}

ClassCounts MixProblem::needsOf(const Template &made) const {
  ClassCounts needs = made.devices;
  if (max_devices)
    needs.push_back(
        std::accumulate(made.devices.begin(), made.devices.end(), 0u));
  return needs;
}

std::string MixProblem::check() const {
  if (global_batch < 1)
    return "no batch";
  for (const Template &made : templates) {
    if (made.devices.size() != available.size())
      return "a template has other classes";
    if (llvm::all_of(made.devices, [](unsigned count) { return count == 0; }))
      return "a template has no devices";
  }
  return "";
}

std::string MixProblem::verify(const TemplateMix &mix) const {
  unsigned sum = 0;
  for (auto [used, there] :
       llvm::zip_equal(devicesOf(mix, available.size()), available)) {
    if (used > there)
      return "a class has too few devices";
    sum += used;
  }
  if (max_devices && sum > *max_devices)
    return "too many devices";
  return mix.empty() ? "no replicas" : "";
}

double secondsOfMix(const TemplateMix &mix, int64_t globalBatch) {
  if (mix.empty())
    return never;
  double low = 0, high = 0;
  for (const CountedTemplate &entry : mix)
    high = std::max(high, entry.made.seconds(1));
  auto samplesWithin = [&](double limit) {
    double samples = 0;
    for (const CountedTemplate &entry : mix)
      samples += static_cast<double>(entry.replicas) *
                 static_cast<double>(entry.made.microbatch_size) *
                 static_cast<double>(entry.made.microbatchesWithin(limit));
    return samples;
  };
  double wanted = static_cast<double>(globalBatch);
  if (samplesWithin(high) >= wanted)
    return high;
  low = high;
  high = std::max(high, 1e-9);
  while (samplesWithin(high) < wanted)
    high *= 2;
  for (int round = 0; round < 40; ++round) {
    double middle = (low + high) / 2;
    (samplesWithin(middle) < wanted ? low : high) = middle;
  }
  return high;
}

namespace {

/// The most samples from any number of devices, template by template.
class Knapsack {
public:
  /// A limit for all devices together is one more of `counts`.
  Knapsack(const MixProblem &problem, ClassCounts rooms)
      : problem(problem), counts(std::move(rooms)) {
    size_t states = 1;
    for (unsigned count : counts) {
      strides.push_back(states);
      states *= count + 1;
    }
    samples.resize(states);
    choices.resize(states);
  }

  static size_t statesOf(llvm::ArrayRef<unsigned> counts, size_t most) {
    size_t states = 1;
    for (unsigned count : counts)
      states = std::min(most + 1, states * (count + 1));
    return states;
  }

  /// A template, and how many samples any mix with it has at most.
  struct Candidate {
    unsigned index;
    double most;
  };

  /// The most samples within `limit_s`, with some of the templates, by falling
  /// `most`.
  double fill(double limit_s, llvm::ArrayRef<Candidate> candidates) {
    std::fill(samples.begin(), samples.end(), 0);
    std::fill(choices.begin(), choices.end(), nothing);
    for (const auto &[index, most] : candidates) {
      // Neither this one nor those behind it are in a better mix.
      if (samples.back() >= most)
        break;
      const Template &made = problem.templates[index];
      gain = static_cast<double>(made.microbatch_size) *
             static_cast<double>(made.microbatchesWithin(limit_s));
      need = problem.needsOf(made);
      choice = index;
      offset = 0;
      bool isRoom = true;
      for (auto [count, stride, room] :
           llvm::zip_equal(need, strides, counts)) {
        offset += count * stride;
        isRoom &= count <= room;
      }
      // What its devices do without it, they do everywhere.
      if (isRoom && samples[offset] < gain)
        take(counts.size() - 1, 0);
    }
    return samples.back();
  }

  /// Adds what was chosen to `copies`, one entry a template.
  void read(std::vector<int64_t> &copies) const {
    for (size_t state = samples.size() - 1; choices[state] != nothing;) {
      ++copies[choices[state]];
      const Template &made = problem.templates[choices[state]];
      ClassCounts needs = problem.needsOf(made);
      for (auto [count, stride] : llvm::zip_equal(needs, strides))
        state -= count * stride;
    }
  }

private:
  static constexpr uint16_t nothing = UINT16_MAX;

  // One more of the template, wherever there is room; states rise, so that any
  // number of them is tried.
  void take(size_t dimension, size_t base) {
    if (dimension == 0) {
      for (size_t count = need[0]; count <= counts[0]; ++count) {
        double with = samples[base + count - offset] + gain;
        if (with <= samples[base + count])
          continue;
        samples[base + count] = with;
        choices[base + count] = choice;
      }
      return;
    }
    for (size_t count = need[dimension]; count <= counts[dimension]; ++count)
      take(dimension - 1, base + count * strides[dimension]);
  }

  const MixProblem &problem;
  ClassCounts counts, need;
  std::vector<size_t> strides;
  std::vector<double> samples;
  std::vector<uint16_t> choices;
  double gain = 0;
  size_t offset = 0;
  uint16_t choice = nothing;
};

class MixSolver {
public:
  explicit MixSolver(const MixProblem &problem)
      : problem(problem), remaining(problem.rooms()),
        fixed(problem.templates.size()), best(fixed) {}

  TemplateMix run() {
    // Each template alone is a mix.
    for (size_t index = 0; index < fixed.size(); ++index) {
      std::vector<int64_t> copies(fixed.size());
      copies[index] = copiesLeft(index);
      keep(copies);
    }
    if (best_s == never)
      return {};
    double low = problem.least_s, high = std::min(best_s, problem.limit_s);
    if (relax(low, high))
      askWhole(low, high);
    if (best_s >= problem.limit_s)
      return {};
    return mixOf(best);
  }

private:
  /// How many more of a template there is room for.
  int64_t copiesLeft(size_t index) const {
    int64_t copies = std::numeric_limits<int64_t>::max();
    ClassCounts needs = problem.needsOf(problem.templates[index]);
    for (auto [used, there] : llvm::zip_equal(needs, remaining))
      if (used)
        copies = std::min<int64_t>(copies, there / used);
    return copies;
  }

  TemplateMix mixOf(llvm::ArrayRef<int64_t> copies) const {
    TemplateMix mix;
    for (auto [count, made] : llvm::zip_equal(copies, problem.templates))
      if (count)
        mix.push_back({made, count});
    return mix;
  }

  /// Whether fractions of replicas are done before `high`; `low` then rises to
  /// where they are not.
  bool relax(double &low, double high) {
    // The first question is whether there is anything to find.
    for (double asked = (1 - timeTolerance) * high;
         high - low > timeTolerance * high; asked = (low + high) / 2) {
      MixRelaxation fractions = relaxMix(problem, asked);
      if (fractions.samples < wanted()) {
        low = asked;
        continue;
      }
      relaxed = std::move(fractions.replicas);
      high = asked;
    }
    return !relaxed.empty();
  }

  // The same with whole replicas.
  void askWhole(double low, double high) {
    fixWholeParts();
    Knapsack knapsack(problem, remaining);
    for (double asked = (1 - timeTolerance) * high;
         high - low > timeTolerance * high && !problem.deadline.isOver();
         asked = (low + high) / 2) {
      double fixedSamples = 0;
      for (auto [count, made] : llvm::zip_equal(fixed, problem.templates))
        fixedSamples += static_cast<double>(count) *
                        static_cast<double>(made.microbatch_size) *
                        static_cast<double>(made.microbatchesWithin(asked));
      // What a template loses, any mix with it loses.
      MixRelaxation fractions = relaxMix(problem, asked);
      std::vector<Knapsack::Candidate> candidates;
      for (auto [index, loss] : llvm::enumerate(fractions.losses)) {
        double most = fractions.samples * (1 + 1e-9) - loss;
        if (most >= wanted())
          candidates.push_back(
              {static_cast<unsigned>(index), most - fixedSamples});
      }
      llvm::sort(candidates, [](const auto &a, const auto &b) {
        return a.most != b.most ? a.most > b.most : a.index < b.index;
      });
      double samples = fixedSamples + knapsack.fill(asked, candidates);
      if (samples < wanted()) {
        low = asked;
        continue;
      }
      std::vector<int64_t> copies = fixed;
      knapsack.read(copies);
      keep(copies);
      high = std::min(asked, best_s);
    }
  }

  double wanted() const { return static_cast<double>(problem.global_batch); }

  void keep(llvm::ArrayRef<int64_t> copies) {
    double seconds = secondsOfMix(mixOf(copies), problem.global_batch);
    if (seconds >= best_s)
      return;
    best_s = seconds;
    best = copies.vec();
  }

  void fix(size_t index, int64_t count) {
    fixed[index] += count;
    ClassCounts needs = problem.needsOf(problem.templates[index]);
    for (auto [left, used] : llvm::zip_equal(remaining, needs))
      left -= count * used;
  }

  size_t states() const {
    return Knapsack::statesOf(remaining, problem.max_states);
  }

  // As few of the relaxation's replicas as leave a knapsack that can be solved.
  void fixWholeParts() {
    if (states() <= problem.max_states)
      return;
    const ClassCounts all = remaining;
    for (unsigned part = 1; part <= 16; ++part) {
      remaining = all;
      std::fill(fixed.begin(), fixed.end(), 0);
      for (auto [index, count] : llvm::enumerate(relaxed))
        fix(index,
            std::min<int64_t>(count * (part / 16.0) + 1e-6, copiesLeft(index)));
      if (states() <= problem.max_states)
        return;
    }
    // Then what is next to whole, or any template that does most.
    std::vector<size_t> order(fixed.size());
    std::iota(order.begin(), order.end(), 0);
    auto part = [&](size_t index) {
      return relaxed[index] - std::floor(relaxed[index]);
    };
    llvm::sort(order, [&](size_t a, size_t b) {
      return part(a) != part(b) ? part(a) > part(b) : a < b;
    });
    for (bool isAny = true; isAny;) {
      isAny = false;
      for (size_t index : order) {
        if (copiesLeft(index) < 1)
          continue;
        if (states() <= problem.max_states)
          return;
        fix(index, 1);
        isAny = true;
      }
    }
    // Nothing fits into what is left of all classes; most of it stays idle.
    for (unsigned &count : remaining)
      while (states() > problem.max_states && count > 1)
        count /= 2;
  }

  const MixProblem &problem;
  ClassCounts remaining;
  std::vector<int64_t> fixed, best;
  std::vector<double> relaxed; ///< replicas of each template
  double best_s = never;
};

void tryAllMixes(const MixProblem &problem, size_t index, ClassCounts &left,
                 TemplateMix &mix, TemplateMix &best, double &best_s) {
  if (index == problem.templates.size()) {
    if (!problem.verify(mix).empty())
      return;
    double seconds = secondsOfMix(mix, problem.global_batch);
    if (seconds >= best_s)
      return;
    best_s = seconds;
    best = mix;
    return;
  }
  const Template &made = problem.templates[index];
  tryAllMixes(problem, index + 1, left, mix, best, best_s);
  auto fits = [&] {
    return llvm::all_of(llvm::zip_equal(made.devices, left), [](auto pair) {
      return std::get<0>(pair) <= std::get<1>(pair);
    });
  };
  ClassCounts before = left;
  for (int64_t count = 1; fits(); ++count) {
    for (auto [there, used] : llvm::zip_equal(left, made.devices))
      there -= used;
    mix.push_back({made, count});
    tryAllMixes(problem, index + 1, left, mix, best, best_s);
    mix.pop_back();
  }
  left = before;
}

} // namespace

TemplateMix solveMix(const MixProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  return MixSolver(problem).run();
}

TemplateMix solveMixByBruteForce(const MixProblem &problem) {
  assert(problem.check().empty() && "check() the input first");
  ClassCounts left = problem.available;
  TemplateMix mix, best;
  double best_s = never;
  tryAllMixes(problem, 0, left, mix, best, best_s);
  return best;
}

} // namespace autohet
