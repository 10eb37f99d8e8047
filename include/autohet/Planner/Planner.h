//===- Planner.h - the best plan for a cluster ------------------*- C++ -*-===//
//
// Groups devices into replicas of different shape, cuts each replica's pipeline
// by speed and memory, shares the batch in proportion, proves how far from the
// best plan that can be, and shows beside it what restricted planners reach.
// docs/planner.md has the formulas.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_PLANNER_H
#define AUTOHET_PLANNER_PLANNER_H

#include "autohet/Planner/PlanCosts.h"
#include "autohet/Support/Deadline.h"
#include <functional>

namespace autohet {

/// Restrictions of one space, after the systems that search them.
enum class PlannerMode {
  Joint,      ///< all of it
  Symmetric,  ///< Megatron-style: a grid of equal parts, equal batches
  Whale,      ///< a grid, its layers and batches balanced by speed
  HeteroAuto, ///< equal replicas, one kind of device a stage
  Cephalo,    ///< every device a replica with its own share of the batch
  AutoHet     ///< replicas by effective power, one tensor-parallel extent
};

llvm::StringRef plannerModeName(PlannerMode mode); ///< "joint", "symmetric", …
std::optional<PlannerMode> parsePlannerMode(llvm::StringRef name);
std::vector<PlannerMode> allPlannerModes(); ///< ours first

struct PlannedStep {
  Plan plan;
  ResolvedPlan resolved;
  PlanEvaluation evaluation;
};

/// Whether there are programs of a plan: they keep all activations.
bool hasPrograms(const Plan &plan);

struct PlannerOptions {
  int64_t global_batch = 1;
  OptimizerKind optimizer = OptimizerKind::AdamW;
  /// Throughput: of models that are only computed.
  PlanObjective objective = PlanObjective::Latency;
  PlannerMode mode = PlannerMode::Joint;
  /// Of every replica; else chosen for each.
  std::optional<int64_t> microbatch_size;
  int64_t max_microbatch_size = 64;
  /// Looked at besides divisors of the batch and powers of two, ascending.
  std::vector<int64_t> more_microbatch_sizes;
  /// Else the better one.
  std::optional<Schedule> schedule;
  std::string state_owner = "spread";
  /// Whether spread state may lie in unlike parts, where equal ones do not fit.
  /// Nothing: with few devices, and wherever no other plan fits.
  std::optional<StateParts> state_parts;
  /// Of each device's memory; the rest is for what estimates do not see.
  double memory_fraction = 0.95;
  bool allow_idle = true;
  /// All stages have as many devices: of the joint search only, since modes
  /// have rules of their own.
  bool has_one_extent = false;
  /// Stages that compute forward twice, or whose activations wait on the host:
  /// no runtime does that yet.
  bool allow_recompute = false, allow_offload = false;
  /// Devices that a plan may use.
  std::optional<unsigned> max_devices;
  /// When the best plan so far is given. Without it the search ends where its
  /// gap is small or its moves are used up, so that every run gives the same
  /// plan.
  Deadline deadline;
  /// Gap to the lower bound at which the search is content.
  double target_gap = 0.002;
  /// Other plans to show beside the best one.
  unsigned max_alternatives = 3;
  /// Modes whose plans to show beside it.
  std::vector<PlannerMode> compare = {PlannerMode::Symmetric};
  /// Groupings looked at before the search becomes a local one.
  unsigned max_groupings = 20000;
  /// Modes to compare with are searched beside the plan itself on so many
  /// threads, unless a deadline shares out the time. The result is the same.
  unsigned threads = 1;
  /// Says which of the best plan and its alternatives to take, by a closer look
  /// than estimates allow: its number. Without it the first, the best estimate.
  std::function<size_t(llvm::ArrayRef<PlannedStep>)> choose_finalist;
};

/// What one mode reaches, or why it has no plan.
struct ModeResult {
  PlannerMode mode = PlannerMode::Joint;
  std::optional<PlannedStep> step;
  std::string why_not;
  double seconds = 0; ///< that its search took
};

/// Devices of one kind that the plan leaves out.
struct IdleDevices {
  std::vector<unsigned> devices; ///< into the cluster
  std::string reason;
};

/// Where a search's time went: other modes have their own.
struct SearchEffort {
  double seconds = 0;
  uint64_t priced_templates = 0, evaluated_plans = 0;
  bool is_cut_short = false; ///< by the deadline
};

struct PlannerResult {
  PlannedStep best;
  /// None where no symmetric plan fits.
  std::optional<PlannedStep> symmetric;
  /// Of `compare`, in its order.
  std::vector<ModeResult> modes;
  /// The nearest plans of another shape, by rising time.
  std::vector<PlannedStep> alternatives;
  std::vector<IdleDevices> idle;
  /// No plan of the whole space is faster, whatever mode was asked for.
  double lower_bound_s = 0;
  /// Where the plan is from, if not from the search of the whole space.
  std::string origin;
  /// Why the plan is as it is, one sentence each.
  std::vector<std::string> reasons;
  SearchEffort effort;

  /// How much slower than the bound the plan is, as a fraction of the bound.
  double gap() const {
    return lower_bound_s > 0 ? best.evaluation.step_s / lower_bound_s - 1 : 0;
  }
  /// "this one is within 1.5 % of the best", or what is left to say.
  std::string gapText() const;
};

/// The same input gives the same plan. The error says what is wrong with the
/// input, or which device lacks how many bytes where nothing fits.
llvm::Expected<PlannerResult> planCluster(const UnitTable &table,
                                          const Cluster &cluster,
                                          const PlannerOptions &options);

/// With other costs; their optimizer and memory limits count.
llvm::Expected<PlannerResult> planCluster(const PlanCosts &costs,
                                          const PlannerOptions &options);

/// What a legal plan of `origin` costs, beside the bound of its whole space:
/// the one that a search for its batch and optimizer would print.
PlannerResult judgePlan(const Plan &plan, llvm::StringRef origin,
                        const UnitTable &table, const Cluster &cluster,
                        std::optional<int64_t> microbatchSize,
                        PlanObjective objective = PlanObjective::Latency);

} // namespace autohet

#endif
