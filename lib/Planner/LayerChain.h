//===- LayerChain.h - what other planners cut: whole layers -----*- C++ -*-===//
//
// The planners that the modes follow cut between layers and run each stage on
// devices of one kind in one node (a *row* of so many devices). This gives them
// the model as a chain of layers, with what is before the first and behind the
// last layer counted to these, and the rows that the machines have.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_LAYERCHAIN_H
#define AUTOHET_LIB_PLANNER_LAYERCHAIN_H

#include "Judge.h"
#include "Placement.h"
#include "autohet/Planner/StageProblem.h"
#include <map>

namespace autohet {

/// Rows of one shape that there is room for in the nodes of a class.
struct RowKind {
  unsigned shape = 0;
  unsigned machine_class = 0;
  unsigned count = 0;
};

class LayerChain {
public:
  /// Stage problems end with the deadline.
  LayerChain(const PlanCosts &costs, Deadline deadline);

  unsigned layerCount() const { return begins.size(); }
  unsigned beginOf(unsigned layer) const {
    return layer < begins.size() ? begins[layer] : unitCount;
  }
  /// Forward and backward of one microbatch.
  double layerSeconds(unsigned shape, unsigned layer, int64_t microbatchSize);
  double modelSeconds(unsigned shape, int64_t microbatchSize);

  /// Rows of `extent` devices of one kind; at most `maxDevices` together, the
  /// quickest ones first.
  std::vector<RowKind> rows(unsigned extent,
                            std::optional<unsigned> maxDevices);
  /// Extents that some class has rows of, ascending.
  std::vector<unsigned> extents() const;

  struct Query {
    std::vector<unsigned> shapes; ///< of the stages
    int64_t microbatch_size = 1, microbatches = 1;
    int64_t replicas = 1;
    double owned = 1; ///< of the optimizer's state
  };
  StageProblem problem(const Query &query);
  /// Cuts into as equal numbers of layers as can be, without a look at memory;
  /// the longer stages first or last.
  StageCuts equalCuts(unsigned stages, bool isFirstLonger) const;
  Template makeTemplate(const Query &query, const StageCuts &cuts,
                        llvm::ArrayRef<bool> recompute = {}) const;
  /// Empty if the template fits.
  bool fits(const Template &made, double owned) const;

private:
  const std::vector<double> &secondsOf(unsigned shape, int64_t microbatchSize);

  const PlanCosts &costs;
  Deadline deadline;
  unsigned unitCount;
  std::vector<unsigned> begins; ///< first unit of each layer
  std::map<std::pair<unsigned, int64_t>, std::vector<double>> known;
};

/// How many of `few` promising candidates a mode judges: judging takes longer
/// the more devices there are.
size_t candidatesToJudge(size_t few, const PlanCosts &costs);

/// Places the replicas, near one another or with equal stages near one another,
/// and brings both plans to the judge. `microbatches` of each replica, or as
/// many as its speed asks for.
void judgeReplicas(const TemplateMix &mix, std::optional<int64_t> microbatches,
                   Judge &judge);

} // namespace autohet

#endif
