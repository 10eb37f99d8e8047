//===- Programs.h - from a plan to each device's program -------*- C++ -*-===//

#ifndef AUTOHET_TOOLS_OPTIONS_PROGRAMS_H
#define AUTOHET_TOOLS_OPTIONS_PROGRAMS_H

#include "autohet/Cluster/Cluster.h"
#include "autohet/Passes/Model/ModelFile.h"
#include "autohet/Plan/Plan.h"
#include "autohet/Planner/Planner.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/MapVector.h"

namespace autohet {

/// Differentiated models by microbatch size.
using ModelsBySize =
    llvm::MapVector<int64_t, mlir::OwningOpRef<mlir::ModuleOp>>;

/// Adds the models of microbatch sizes that the plan has and `models` lacks,
/// their inputs bound by name. Fails after a diagnostic.
mlir::LogicalResult addModels(ModelsBySize &models, const ModelFile &file,
                              const Plan &plan, mlir::MLIRContext &context);

/// Of one sample: they lie along dim 1 of the first integer input. 0: samples
/// are not of tokens.
int64_t tokensOf(mlir::func::FuncOp model);

/// The function of a module that readModel() made.
mlir::func::FuncOp modelOf(mlir::ModuleOp module);

/// Verifying the IR after each pass takes as long as the passes. Programs that
/// are only timed do without; the phases' own checks stay.
enum class Verifier { EachPass, None };

/// A function a device, for the sizes that the plan uses: the Plan phase. Ranks
/// have the cluster's order.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
placeModels(ModelsBySize &models, const Plan &plan, const Cluster &cluster,
            mlir::MLIRContext &context, Verifier verifier = Verifier::EachPass);

/// A program a device; its memory is not yet planned.
mlir::LogicalResult orderPrograms(mlir::ModuleOp placed, const Plan &plan,
                                  Verifier verifier = Verifier::EachPass);
/// A place for each of its buffers.
mlir::LogicalResult planMemory(mlir::ModuleOp programs,
                               Verifier verifier = Verifier::EachPass);

/// What such a message has that no other one has.
constexpr llvm::StringLiteral kMoreThanItsMemory = " more than its ";
/// Of each device that cannot hold its program: which one, with which units,
/// and what it lacks.
std::vector<std::string> findShortages(mlir::ModuleOp programs,
                                       const Plan &plan,
                                       const Cluster &cluster);

/// Plans that are tried before none is said to fit: each corrects the estimates
/// for the next one.
constexpr unsigned kMaxPlans = 10;

/// How much more memory than estimated plans' programs turned out to need.
class MemoryExcess {
public:
  explicit MemoryExcess(const UnitTable &estimates)
      : factors(estimates.units.size(), 1) {}

  /// Of a plan that was made with the estimates.
  void add(const PlannedStep &planned, mlir::ModuleOp programs,
           const Cluster &cluster);

  /// Units whose stage turned out larger than estimated get the excess in
  /// proportion, so that the search will not choose the same plan again. What
  /// was estimated too large stays: the next plan may be another case.
  void correct(UnitTable &estimates) const;

private:
  std::vector<double> factors; ///< of each unit's activations and temporaries
};

} // namespace autohet

#endif
