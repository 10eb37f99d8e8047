//===- SailorCosts.h - our search under Sailor's simulator ------*- C++ -*-===//
//
// PlanCosts of published layer profiles: times, memory and network fits as they
// are, plans judged by Sailor's formulas in their extension to unlike replicas
// (judgeReplicas()). So the whole search, with its numbers of microbatches and
// cuts of each replica, stands beside planners that were compared under that
// simulator.
//
// A size or extent that was not measured is no stage: it fits nowhere.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PROFILES_SAILORCOSTS_H
#define AUTOHET_PROFILES_SAILORCOSTS_H

#include "autohet/Planner/PlanCosts.h"
#include "autohet/Profiles/SailorJudge.h"

namespace autohet {

class JudgeTerms;

/// One unit a layer: embed, block0, …, head.
UnitTable unitsOfSailorModel(const SailorModel &model);

/// GPUs of one kind.
struct SailorPool {
  std::string kind;
  int64_t gpus = 0;
};
/// Whole nodes of each kind, and one that is not full. Memory, and peak rates
/// of links, are those of the data.
llvm::Expected<Cluster> clusterOfSailorPools(llvm::ArrayRef<SailorPool> pools,
                                             llvm::StringRef zone,
                                             const SailorData &data);

class SailorCosts : public PlanCosts {
public:
  /// The cluster's kinds must be profiled for the model: check() says so.
  SailorCosts(const UnitTable &table, const Cluster &cluster,
              const SailorModel &model, const SailorData &data,
              llvm::StringRef zone, const JudgeOptions &options);
  ~SailorCosts() override;

  /// Kinds without a profile, with what there is; nothing where all is well.
  static llvm::Error check(const Cluster &cluster, const SailorModel &model,
                           const SailorData &data, llvm::StringRef zone);

  PassSeconds unitSeconds(unsigned shape, unsigned unit,
                          int64_t microbatchSize) const override;
  PassSeconds transferSeconds(unsigned fromClass, unsigned toClass,
                              unsigned cut, int64_t microbatchSize,
                              bool areApart = false) const override;
  bool transfersOverlap() const override { return false; }
  int64_t mostInFlight(const StageQuery &stage, double owned) const override;
  ExchangeWays exchangeWays(const StageQuery &stage,
                            const StageHolders &holders) const override;
  bool syncOverlaps() const override { return false; }
  PlanEvaluation evaluate(const ResolvedPlan &plan, Schedule schedule,
                          llvm::StringRef stateOwner) const override;

  std::vector<JudgedReplica> replicasOf(const ResolvedPlan &plan) const;

private:
  SailorGroup groupOf(unsigned machineClass, unsigned extent) const;
  const std::vector<LayerSeconds> *secondsOf(unsigned shape,
                                             int64_t microbatchSize) const;

  const SailorModel &model;
  const SailorData &data;
  std::string zone;
  JudgeOptions options;
  std::unique_ptr<JudgeTerms> terms;
};

/// As Sailor writes plans, which it can where all replicas have the same cuts,
/// microbatch size and number of microbatches; the error names what differs.
llvm::Expected<SailorPlan> exportToSailor(const SailorCosts &costs,
                                          const ResolvedPlan &plan,
                                          int64_t globalBatch);

} // namespace autohet

#endif
