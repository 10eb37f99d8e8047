//===- Plan.h - who computes what -------------------------------*- C++ -*-===//
//
// A plan is data: the planner writes one, people write, diff, edit and pin one,
// and a verifier refuses a wrong one with the reason. docs/formats/plan.md is
// the file's description. Outside the IR this struct is the only form of it.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLAN_PLAN_H
#define AUTOHET_PLAN_PLAN_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Plan/UnitTable.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace autohet {

enum class Schedule { GPipe, OneForwardOneBackward };
enum class OptimizerKind { None, SGD, Adam, AdamW };
/// How gradients get to their owners, and new parameters back.
enum class GradientExchange {
  Direct,      ///< every holder and owner by themselves
  Hierarchical ///< summed in each node first: a slice crosses once a node
};

llvm::StringRef scheduleName(Schedule schedule);        ///< "gpipe", "1f1b"
llvm::StringRef optimizerName(OptimizerKind optimizer); ///< "adamw", …
/// "direct", "hierarchical"
llvm::StringRef gradientExchangeName(GradientExchange exchange);
std::optional<GradientExchange> parseGradientExchange(llvm::StringRef name);
std::optional<Schedule> parseSchedule(llvm::StringRef name);
std::optional<OptimizerKind> parseOptimizer(llvm::StringRef name);
/// Bytes of state for each byte of a trained fp32 parameter.
double stateBytesPerByte(OptimizerKind optimizer);

/// What a stage does with what the backward of a microbatch needs. The others
/// are for planning only: nothing executes them yet.
enum class Keeping {
  All,    ///< stays on its devices
  Inputs, ///< only what comes in stays, and forward is computed again
  OnHost  ///< goes to the host behind forward, comes back for backward
};

/// Consecutive or not: any units that leave the stages in one order.
struct Stage {
  std::vector<std::string> units;   ///< as expandUnits reads them
  std::vector<std::string> devices; ///< "node/index", in rank order
  /// Share of each device in whatever is divided; empty: equal shares.
  std::vector<int64_t> tensor_parallel;
  /// Share in what state is spread over a parameter's holders; 0: owns nothing.
  int64_t state_share = 1;
  Keeping keeping = Keeping::All;

  bool operator==(const Stage &other) const;
};

struct Replica {
  int64_t microbatch_size = 1; ///< samples
  int64_t microbatches = 1;    ///< a step
  std::vector<Stage> stages;   ///< in the order of the data

  bool operator==(const Replica &other) const;
};

/// In samples. Planning and simulation walk every microbatch: with more they
/// would take minutes.
constexpr int64_t kLargestGlobalBatch = int64_t(1) << 16;
/// Shares times elements stay within 64 bits.
constexpr int64_t kLargestStateShare = 1000000;

struct Plan {
  /// Of the model; 0: of any model with these units.
  uint64_t structure_hash = 0;
  int64_t global_batch = 1;
  OptimizerKind optimizer = OptimizerKind::AdamW;
  Schedule schedule = Schedule::OneForwardOneBackward;
  /// "spread": over the holders of each parameter, by bytes and their stages'
  /// `state_share`. "first": the first holder. A device: that one wherever it
  /// is a holder, else spread.
  std::string state_owner = "spread";
  GradientExchange gradient_exchange = GradientExchange::Direct;
  /// In the order of their samples: replica 0 has the first ones.
  std::vector<Replica> replicas;

  bool operator==(const Plan &other) const;
};

/// The one text of a plan: reading it gives an equal plan, and writing that
/// the same bytes.
std::string formatPlan(const Plan &plan);
/// What a plan is read for. Only planning knows what stages keep; whoever runs
/// a plan refuses one where that is not all.
enum class PlanPurpose { Running, Planning };
llvm::Expected<Plan> parsePlan(llvm::StringRef text, llvm::StringRef file,
                               PlanPurpose purpose = PlanPurpose::Running);
llvm::Expected<Plan> loadPlan(llvm::StringRef path,
                              PlanPurpose purpose = PlanPurpose::Running);
/// Of formatPlan's text: what ranks compare at start.
uint64_t planHash(const Plan &plan);

/// Reads the form that passes take on the command line:
///
///   block0-block5@n0/0, block6-head@n1/0+n1/1(2:1) ; 5x4: embed-head@n2/0
///
/// Stages are `units@devices`, units joined by `&`, devices by `+`, with their
/// shares in parentheses; `;` separates replicas, and `5x4:` before one gives
/// it 5 microbatches of 4 samples (default 1x1).
llvm::Expected<std::vector<Replica>> parseStageAssignment(llvm::StringRef text);
std::string formatStageAssignment(llvm::ArrayRef<Replica> replicas);

/// A plan with its names looked up.
struct ResolvedStage {
  std::vector<unsigned> units;   ///< into the table, ascending
  std::vector<unsigned> devices; ///< into the cluster, in rank order
  std::vector<int64_t> weights;  ///< one a device
  int64_t state_share = 1;
  Keeping keeping = Keeping::All;
};
struct ResolvedReplica {
  int64_t microbatch_size = 1, microbatches = 1;
  std::vector<ResolvedStage> stages;
};
struct ResolvedPlan {
  std::vector<ResolvedReplica> replicas;
};

/// Bytes that device `position` of a stage needs, for the verifier.
using MemoryEstimate =
    llvm::function_ref<double(const ResolvedPlan &plan, unsigned replica,
                              unsigned stage, unsigned position)>;

/// Everything that is wrong with the plan, each with its place in it ("replica
/// 1, stage 0: …"); nothing where it is legal. Fills `resolved` if given and
/// if all names are known. Memory is checked if `memory` is given and the rest
/// is legal.
std::vector<std::string> verifyPlan(const Plan &plan, const UnitTable &table,
                                    const Cluster &cluster,
                                    MemoryEstimate memory = nullptr,
                                    ResolvedPlan *resolved = nullptr);

/// For a plan that is legal.
ResolvedPlan resolvePlan(const Plan &plan, const UnitTable &table,
                         const Cluster &cluster);

/// The other way: names and shortest unit specs. Equal shares are left out.
std::vector<Replica> nameReplicas(const ResolvedPlan &plan,
                                  const UnitTable &table,
                                  const Cluster &cluster);

/// The batches nearest to `wanted`, below and above (or equal), that replicas
/// of these microbatch sizes, each with at least one microbatch, can make.
std::pair<std::optional<int64_t>, int64_t>
nearestBatches(llvm::ArrayRef<int64_t> microbatchSizes, int64_t wanted);

} // namespace autohet

#endif
