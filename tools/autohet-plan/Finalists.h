//===- Finalists.h - a closer look at the best plans -----------*- C++ -*-===//
//
// The search compares plans by closed formulas. The few best are worth more:
// their programs are made and simulated command by command, and, where this
// machine can be the cluster, run for some steps.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_TOOLS_PLAN_FINALISTS_H
#define AUTOHET_TOOLS_PLAN_FINALISTS_H

#include "Options/Programs.h"
#include "Plan.h"

namespace autohet {

class FinalistJudge {
public:
  /// What would end after the deadline is left out.
  FinalistJudge(const PlanOptions &options, const Cluster &cluster,
                Deadline deadline, mlir::MLIRContext &context);
  ~FinalistJudge();

  /// What keeps the plans of this job from being run here, if they are to be.
  llvm::Error checkMeasuring() const;

  /// How many plans are looked at.
  unsigned count() const;

  /// The number of the plan to take, made with these estimates. After failures,
  /// which are diagnostics, it is any.
  size_t choose(llvm::ArrayRef<PlannedStep> plans, const UnitTable &estimates);

  bool hasFailed() const { return failed; }
  /// What the first plan lacks, a text a device; nothing where it fits.
  llvm::ArrayRef<std::string> shortages() const { return lacking; }
  /// A step of the plan that was chosen, measured or simulated, or as planned
  /// where there are no programs of it; infinity where no plan fits.
  double chosenSeconds() const { return chosen_s; }
  /// By what its programs exceed their estimates then.
  const MemoryExcess &memoryExcess() const { return *excess; }
  /// What was found, for the report.
  PlanTextFacts facts() const;

private:
  /// Whether a plan is as good as one batch, from inputs to outputs, is short.
  bool isOfOneBatch() const;
  mlir::LogicalResult simulatePlans();
  /// How many plans are lowered at a time.
  size_t chooseThreads() const;
  /// What a thread lowers plans with: nothing of it is another one's.
  struct Workbench;
  mlir::LogicalResult simulatePlan(Finalist &finalist, Workbench &bench);
  mlir::LogicalResult measurePlans();
  llvm::Error compilePlan(Finalist &finalist, const std::string &folder);
  llvm::Error runPlan(const std::string &folder, std::vector<double> &step_s);

  const PlanOptions &options;
  const Cluster &cluster;
  Deadline deadline;
  mlir::MLIRContext &context;
  std::vector<Finalist> finalists;
  std::vector<std::unique_ptr<Workbench>> benches;
  std::optional<MemoryExcess> excess;
  std::vector<std::string> lacking;
  double chosen_s = 0;
  double simulating_s = 0, measuring_s = 0;
  bool failed = false;
};

} // namespace autohet

#endif
