//===- IntervalProgram.h - the cheapest template of one interval -*- C++ -*-===//
//
// Two dynamic programs over the units of a chain, for periods in one interval.
// The first one knows links and charges, but not how many stages are behind
// another, which decides what memory a stage needs. Mostly its answer fits, and
// is then the best. Where it does not, a second one counts stages from the
// last, and uses what the first one says of the units before.
//
// A stage costs its charge and, up to the longest stage, its time; behind that
// one only a part of it. Where batches follow one another, stages cost their
// charge alone. No period is shorter than a stage, so longer stages than the
// interval's least period are charged at their own time; and the longest one is
// the period, which the first microbatch takes as a part of its way, and only
// the others beside it. At the interval's least period as the price of a
// microbatch the cost is what a template takes that does its charge, however
// wide the interval is. Whole microbatches may be more: other prices say how
// much time the templates take that are charged with few, and the other way
// round.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_INTERVALPROGRAM_H
#define AUTOHET_LIB_PLANNER_INTERVALPROGRAM_H

#include "ExchangeLimits.h"
#include "autohet/Planner/TemplateSearch.h"

namespace autohet {

/// The least of keys whose indices lie in a window that only moves on.
class SlidingMinimum {
public:
  struct Entry {
    double key;
    unsigned index;
  };

  /// Empty, with room for all pushes.
  void reset(Entry *room) { first = last = room; }
  void push(unsigned index, double key) {
    while (last > first && last[-1].key >= key)
      --last;
    *last++ = {key, index};
  }
  /// Of the indices from `begin` on; null: there is none.
  const Entry *least(unsigned begin) {
    while (first < last && first->index < begin)
      ++first;
    return first < last ? first : nullptr;
  }

private:
  Entry *first = nullptr, *last = nullptr; ///< keys and indices rise
};

class IntervalProgram {
public:
  IntervalProgram(const TemplateSpace &space, int64_t globalBatch,
                  const DevicePrices &prices);

  /// A bound without stages: the best mixture of rates, or some bound beyond
  /// `cutoff_s`. Infinity where no template of all devices is so fast.
  double fluidBound(StageTables &tables,
                    const TemplateSearch::Interval &interval, double cutoff_s);

  /// A bound of all costs below `cutoff_s`, or infinity. Fills in the stages of
  /// a template of that cost; none where `mayCount` is false and that takes the
  /// second program.
  double run(StageTables &tables, const TemplateSearch::Interval &interval,
             double cutoff_s, bool mayCount,
             std::vector<TemplateStage> &stages);

  /// Leaves out, from now on, stages of the interval that cannot be in a
  /// template that takes less than `cutoff_s`, since what they exchange takes
  /// too long. Whether there are such.
  bool limitExchange(StageTables &tables,
                     const TemplateSearch::Interval &interval, double cutoff_s);
  void allowExchange() { limits.clear(); }

  /// The same for whole microbatches, where those are more than their charge,
  /// but without counting stages. Gives each template that it meets to `visit`.
  double wholeBound(
      StageTables &tables, const TemplateSearch::Interval &interval,
      double cutoff_s,
      llvm::function_ref<void(const std::vector<TemplateStage> &)> visit);

  /// The same, counting stages and with each template's own whole microbatches;
  /// 0 where that would take too long. Fills in the stages of the cheapest one.
  double exactBound(StageTables &tables,
                    const TemplateSearch::Interval &interval, double cutoff_s,
                    std::vector<TemplateStage> &stages);

private:
  /// What is to be least: the sum of times, unless those count for nothing, and
  /// of the microbatches that are charged, at a price each.
  struct Objective {
    bool has_times = true;
    double microbatch_s = 0;
    bool has_rest = true;  ///< what a step takes beside the pipeline
    bool is_close = false; ///< a better bound is worth more time
  };

  /// What a stage costs by its time.
  struct Line {
    double slope = 0, base_s = 0;

    double at(double time_s) const { return slope * time_s + base_s; }
  };
  /// Of one variant. Short stages are below the interval, long ones in it.
  struct StageCosts {
    Line shortOne, longOne; ///< up to the longest stage
    Line longest;           ///< this one
    Line shortOneBehind, longOneBehind;
  };

  /// The cheapest way to run units [unit, …) found so far, by the class of its
  /// first stage and by whether the longest stage is among its stages.
  struct State {
    double cost_s;
    uint16_t end, variant; ///< of the first stage
    uint8_t next_group;
    bool had_longest; ///< of the rest: where it goes on
  };
  /// The cheapest way to run units [0, unit), by the class of its last stage.
  struct Prefix {
    double cost_s;
    uint16_t begin, variant; ///< of the last stage
    bool had_longest;        ///< of the units before it
  };
  /// The same, with what passing on to a class costs.
  struct Arrival {
    double cost_s;
    uint8_t group; ///< of the last stage
    bool had_longest;
  };
  /// What follows a stage: its least cost, and which it is.
  struct Rest {
    double cost_s[2]; ///< by whether it has the longest stage
    uint8_t group[2];
    bool had_longest[2];
    double transfer_s[2];
  };

  void start(StageTables &tables, const TemplateSearch::Interval &interval,
             const Objective &objective);
  double leastOf(StageTables &tables, const TemplateSearch::Interval &interval,
                 const Objective &objective, double cutoff,
                 std::vector<TemplateStage> &stages);
  /// Of a stage's time, what a step takes for it.
  double stepPart() const {
    return space.costs.planObjective() == PlanObjective::Throughput ? 0 : 1;
  }
  /// Microbatches.
  double chargeOf(const TemplateSearch::Interval &interval,
                  const std::vector<TemplateStage> &stages) const;
  double shortestPeriod(const StageTables &tables);
  void boundFluid(const StageTables &tables);
  bool findUseful();
  double moreThanFluid(unsigned variant, bool isLongest) const;
  double leastOnAny(const StageTables &tables, unsigned kind,
                    llvm::ArrayRef<double> factors) const;
  void chooseEnds(const StageTables &tables, double usedCharge);
  StageCosts costsOf(double charge_s, double chargeSlope) const;
  double costBefore(unsigned variant, double time) const {
    return (time < low_s ? costs[variant].shortOne : costs[variant].longOne)
        .at(time);
  }
  double costBehind(unsigned variant, double time) const {
    return (time < low_s ? costs[variant].shortOneBehind
                         : costs[variant].longOneBehind)
        .at(time);
  }
  /// Of a stage that may be anywhere but behind its last one's end. The first
  /// unit, which may be short, is not behind another.
  double leastCost(unsigned variant, double time) const {
    return std::min(costBefore(variant, time),
                    costBehind(variant, std::max(time, shortest_s[variant])));
  }
  /// Of a transfer that sets the pace.
  double costOfLongest(const PassSeconds &transfer, double period) const {
    return wayPart * transfer.total() - longestPart * period +
           replicaSlope * (period - low_s);
  }
  int64_t inFlightAt(unsigned depth) const;
  bool findFewestBehind(StageTables &tables);
  void findEarliestBegins(StageTables &tables, int64_t inFlight);

  void boundPrefixes(StageTables &tables, int64_t inFlight);
  bool extendPrefix(StageTables &tables, unsigned end, unsigned variant);
  void passPrefixOn(const StageTables &tables, unsigned cut);
  bool readPrefix(StageTables &tables, std::vector<TemplateStage> &stages);
  Prefix &prefixAt(unsigned unit, unsigned group, bool hasLongest) {
    return prefixes[(unit * groups + group) * 2 + hasLongest];
  }
  Arrival &arrivalAt(unsigned cut, unsigned group, bool hasLongest) {
    return arrivals[(cut * groups + group) * 2 + hasLongest];
  }
  /// What units [0, unit) cost at least, with the longest stage among them
  /// where `hasLongest`.
  double &before(unsigned unit, bool hasLongest) {
    return before_s[unit * 2 + hasLongest];
  }
  /// The same if a stage of a variant ends there.
  double &beforeBy(unsigned unit, unsigned variant, bool hasLongest) {
    return beforeBy_s[(unit * variants + variant) * 2 + hasLongest];
  }

  double countStages(StageTables &tables, std::vector<TemplateStage> &stages);
  bool isReached(unsigned depth, unsigned unit);
  Rest restOf(const StageTables &tables, unsigned depth, unsigned end,
              unsigned group);
  bool extend(StageTables &tables, unsigned depth, unsigned end);
  bool reach(StageTables &tables, unsigned depth, unsigned begin,
             unsigned variant, bool had, bool has, double cost,
             const Rest &rest, unsigned end);
  void readStages(const StageTables &tables,
                  std::vector<TemplateStage> &stages);
  /// A way to run units [begin, …), without what passing on to it costs.
  static constexpr unsigned noLabel = ~0u;
  struct Label {
    double cost_s = 0; ///< with the charge at the least period
    double charge = 0; ///< microbatches
    /// Until there is the longest stage: all times, and those of stages.
    double behind_s = 0, stages_s = 0;
    unsigned behind = noLabel;
    uint16_t begin = 0, variant = 0; ///< of the first stage
    uint16_t depth = 0;              ///< number of stages
    bool has_longest = false;
  };
  /// What ways are compared by, one beside the other.
  struct KeptLabel {
    double charge, time_s, behind_s, stages_s;
    unsigned depth, index;
  };
  bool passOn(StageTables &tables, unsigned cut, unsigned from, unsigned to,
              unsigned index);
  bool addStages(StageTables &tables, unsigned end, unsigned group,
                 const Label &rest, unsigned behind);
  double costOfBehind(const Label &rest) const;
  double costOfEnd(const Label &rest, const StageTables::Variant &longest,
                   unsigned begin, unsigned end) const;
  bool addLabel(StageTables &tables, Label made, unsigned end);
  std::vector<KeptLabel> &labelsOf(unsigned unit, unsigned group,
                                   bool hasLongest) {
    return labelsAt[(unit * groups + group) * 2 + hasLongest];
  }
  /// Whether a stage exchanges for too long.
  bool isExcluded(unsigned variant, unsigned begin, unsigned end,
                  bool isLong) const {
    return limits.isSet() &&
           (limits.ends(variant)[begin] < end ||
            (isLong && limits.endsOfLong(variant)[begin] < end));
  }
  State &stateAt(unsigned depth, unsigned unit, unsigned group,
                 bool hadLongest) {
    return layers[depth][(unit * groups + group) * 2 + hadLongest];
  }

  const TemplateSpace &space;
  int64_t globalBatch;
  const DevicePrices &prices;
  std::vector<double> shapePrices; ///< of each shape's devices

  double low_s = 0, high_s = 0, fixed_s = 0;
  bool overlap = true;
  bool drainsEarly = true; ///< stages behind the longest one may be done soon
  bool hasTimes = true, hasRest = true; ///< of the objective
  bool isLegal = false;    ///< whether leastOf() has read a template
  double wayPart = 1;      ///< of a stage's time that the objective has
  double longestPart = 1;  ///< of the period that it has not
  double replicaSlope = 0; ///< what a replica is charged at longer periods
  unsigned units = 0, groups = 0, variants = 0;
  double cheapestCharge = 0; ///< microbatches of the cheapest shape
  double replicaCharge = 0;  ///< microbatches of any replica
  /// Of the time behind the longest stage, whose forward is no longer than
  /// that: see chooseEnds().
  double bothEnds = 1, oneEnd = 0, forward_s = 0;
  std::vector<double> charges;    ///< of each variant, in microbatches
  std::vector<double> shortest_s; ///< of each variant: but for the first unit
  std::vector<double> charge_s;   ///< the same at the price of one
  std::vector<StageCosts> costs;  ///< of each variant
  std::vector<std::pair<const StageTables *, double>> shortestPeriods;
  /// What units [unit, …) cost at least, in any stages.
  std::vector<double> fluid_s;
  std::vector<double> kind_s; ///< of a unit of each kind
  /// Of each variant.
  std::vector<StageTables::ExtremeTimes> extremes;
  /// Of each variant: see moreThanFluid(). Below 0: no unit fits.
  std::vector<double> dearest;
  /// What the longest stage or transfer costs more than its units, at least.
  double leastEnd_s = 0;
  /// Variants whose stages may be in a template below the best one.
  std::vector<unsigned> useful;

  /// Stages behind a stage that ends at a unit, at least.
  std::vector<unsigned> fewestBehind;
  /// Of each variant and end: no stage that ends there or later, and has memory
  /// for what its depth has in flight at least, begins before that.
  std::vector<uint16_t> earliestBegins;

  /// Of one variant in boundPrefixes().
  struct Window {
    const double *total_s = nullptr;    ///< as in StageTables::Variant
    const uint16_t *earliest = nullptr; ///< as earliestBegins
    /// As ExchangeLimits, or none.
    const uint16_t *ends = nullptr, *endsOfLong = nullptr;
    unsigned group = 0;
    /// Begins of stages are from the one on, of long ones before the other.
    unsigned first = 0, firstShort = 0;
    SlidingMinimum shortOnes, longOnes, longest, shortBehind, longBehind;
  };
  std::vector<Window> windows;
  std::vector<SlidingMinimum::Entry> windowRoom;
  ExchangeLimits limits;
  std::vector<Prefix> prefixes;
  std::vector<Arrival> arrivals;
  std::vector<double> before_s, beforeBy_s;

  std::vector<Rest> rests; ///< of one end
  /// Of one depth.
  std::vector<llvm::ArrayRef<uint16_t>> furthest, earliest;
  std::vector<std::vector<State>> layers; ///< by the number of stages
  double best_s = 0;
  unsigned bestDepth = 0;
  /// As State::cost_s, of as many stages as were counted so far or fewer.
  std::vector<double> leastAt_s;
  size_t tried = 0; ///< stages since units in front were looked at
  State first = {};

  std::vector<Label> labels;
  std::vector<std::vector<KeptLabel>> labelsAt; ///< those that none is better
  double leastWhole_s = 0;
  unsigned firstLabel = noLabel;
};

} // namespace autohet

#endif
