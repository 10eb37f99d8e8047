//===- Template.h - a pipeline of stage shapes ------------------*- C++ -*-===//
//
// Replicas of equal make are one template, however many there are and on
// whichever devices they run. A template is what the search counts, prices and
// bounds: runs of units on shapes, a microbatch size, and the devices of each
// class that one replica takes.
//
// The time of a replica with M microbatches is bounded from below by
//
//   way + (M - 1) · period - slack
//
// with period = the longest stage or transfer, way = one microbatch through all
// stages and back, and slack = what the stages behind the longest one are
// shorter than it, but no more than the way through them. docs/planner.md has
// the proof. Without the slack it is the recurrence that solvers plan with.
// Where nothing goes back there is no slack, and the recurrence is exact; where
// batches follow one another, way is a period too.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_TEMPLATE_H
#define AUTOHET_PLANNER_TEMPLATE_H

#include "autohet/Planner/PlanCosts.h"

namespace autohet {

struct TemplateStage {
  unsigned begin = 0, end = 0; ///< units
  unsigned shape = 0;          ///< into PlanCosts::shapes()
  Keeping keeping = Keeping::All;

  bool operator==(const TemplateStage &other) const {
    return begin == other.begin && end == other.end && shape == other.shape &&
           keeping == other.keeping;
  }
};

struct Template {
  int64_t microbatch_size = 1;
  std::vector<TemplateStage> stages; ///< in the order of the data
  double period_s = 0, way_s = 0, slack_s = 0;
  /// The period where only as many microbatches are in flight as stages are
  /// behind: what one-forward-one-backward reaches.
  double pace_s = 0;
  /// What a step takes beside the pipeline, at best: exposed gradients and
  /// parameters.
  double rest_s = 0;
  /// As a judge saw it in a plan: it knows of more than templates do.
  bool lacks_memory = false;
  ClassCounts devices;

  double seconds(int64_t microbatches) const {
    return way_s + static_cast<double>(microbatches - 1) * pace_s + rest_s;
  }
  /// Most microbatches within `limit_s`; 0 if none.
  int64_t microbatchesWithin(double limit_s) const;
  bool isSame(const Template &other) const {
    return microbatch_size == other.microbatch_size && stages == other.stages;
  }
};

/// Which templates there are.
struct TemplateSpace {
  const PlanCosts &costs;
  std::vector<int64_t> microbatch_sizes;
  bool allow_recompute = false;
  /// Numbers of replicas of the plans that templates are for: more replicas
  /// share an optimizer's state, fewer exchange less.
  int64_t min_replicas = 1, max_replicas = 1;
  StateParts state_parts = StateParts::Even;
  /// Devices of a stage; nothing: any number.
  std::optional<unsigned> tensor_parallel = std::nullopt;
  /// Counts a stage's messages as a part of its time: near what
  /// one-forward-one-backward reaches, but no bound.
  bool are_transfers_exposed = false;
  /// Takes neighbours to lie in nodes of their own, and no other replicas to
  /// have the same stages: near what placement reaches, but no bound.
  bool are_stages_apart = false;
  /// Whether a shape may be used; empty: all may.
  std::vector<bool> allowed_shapes = {};
  bool allow_offload = false;

  /// What part of the state a replica owns at least.
  double ownedAtBest() const {
    bool mayOwnNone = state_parts == StateParts::Alone ||
                      (state_parts == StateParts::Uneven && max_replicas > 1);
    return mayOwnNone ? 0 : 1 / static_cast<double>(max_replicas);
  }
  bool allows(unsigned shape) const;
  bool allows(Keeping keeping, unsigned shape) const;
  /// At best.
  StageHolders holders() const {
    return {min_replicas, std::nullopt, state_parts};
  }
};

/// What of a stage's exchange nothing hides: new parameters come message by
/// message before its first forward, gradients leave so behind its last
/// backward, and what relays have is passed on behind that. The message that is
/// needed first, and complete last, is a part `first` of all. Stages before it
/// give it `before`, and it computes for `own`.
PassSeconds exposedSeconds(const ExchangeSeconds &exchange, double first,
                           const PassSeconds &before, const PassSeconds &own);
/// Of the way that is seen least.
PassSeconds exposedSeconds(llvm::ArrayRef<ExchangeSeconds> ways, double first,
                           const PassSeconds &before, const PassSeconds &own);

/// Fills in times and devices from sizes and stages.
void measureTemplate(Template &made, const TemplateSpace &space);

/// Replaces the recurrence's times by those of one-forward-one-backward, event
/// by event, near so many microbatches.
void runTemplate(Template &made, const PlanCosts &costs, int64_t microbatches);

/// What a template needs and lacks: empty if its stages cover all units in
/// order and fit into memory with `owned` of the state.
std::string checkTemplate(const Template &made, const TemplateSpace &space,
                          double owned);

} // namespace autohet

#endif
