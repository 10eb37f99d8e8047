//===- ReplicaSearch.h - the best pipelines of a set of devices -*- C++ -*-===//
//
// For one set of devices and one microbatch size: which devices share a stage,
// in which order the stages stand, and where the model is cut. Answers are
// kept, since groupings ask for the same sets again and again.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_REPLICASEARCH_H
#define AUTOHET_LIB_PLANNER_REPLICASEARCH_H

#include "UnitRanges.h"
#include "autohet/Planner/BatchProblem.h"
#include "autohet/Planner/StageProblem.h"

#include <map>
#include <tuple>

namespace autohet {

struct ReplicaShape {
  double period_s = 0, way_s = 0;
  std::vector<ResolvedStage> stages;

  double seconds(int64_t microbatches) const {
    return static_cast<double>(microbatches - 1) * period_s + way_s;
  }
};

/// Undominated shapes: the best for any number of microbatches is among them.
/// Empty where nothing fits.
using ReplicaFront = std::vector<ReplicaShape>;

class ReplicaSearch {
public:
  /// Replicas own equal parts of the optimizer's state, or where they
  /// `sharesState`, any.
  ReplicaSearch(const CostModel &costs, double memoryFraction, bool sharesState)
      : costs(costs), ranges(costs), memoryFraction(memoryFraction),
        sharesState(sharesState) {}

  /// `devices` ascending; `replicas` that share the optimizer state. `thorough`
  /// tries every order of few stages, instead of those by speed and memory, and
  /// cuts more finely.
  const ReplicaFront &solve(std::vector<unsigned> devices,
                            int64_t microbatchSize, unsigned replicas,
                            bool thorough);

  const UnitRanges &unitRanges() const { return ranges; }

private:
  /// Devices that share one stage.
  struct Row {
    std::vector<unsigned> devices;
    std::vector<int64_t> weights;
    double rate = 0; ///< FLOP/s
    double memory = 0;
  };
  using Rows = std::vector<Row>;

  Row makeRow(llvm::ArrayRef<unsigned> devices) const;
  std::vector<Rows> rowChoices(llvm::ArrayRef<unsigned> devices) const;
  std::vector<Rows> orders(const Rows &rows, bool thorough) const;
  void cut(const Rows &rows, int64_t microbatchSize, unsigned replicas,
           double tolerance, ReplicaFront &front) const;

  const CostModel &costs;
  UnitRanges ranges;
  double memoryFraction;
  bool sharesState;
  std::map<std::tuple<std::vector<unsigned>, int64_t, unsigned, bool>,
           ReplicaFront>
      known;
};

} // namespace autohet

#endif
