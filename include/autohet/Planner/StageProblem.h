//===- StageProblem.h - cutting a chain for a row of workers ----*- C++ -*-===//
//
// Given workers in pipeline order, give each a run of consecutive units so that
// the step is shortest and all fit. The problem knows whether an input and a
// solution are legal and how good a solution is; solvers only fill solutions
// in.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_STAGEPROBLEM_H
#define AUTOHET_PLANNER_STAGEPROBLEM_H

#include "autohet/Planner/CostModel.h"
#include "autohet/Support/Deadline.h"
#include <functional>

namespace autohet {

/// Where each worker's units end: worker w has [ends[w-1], ends[w]).
using StageCuts = std::vector<unsigned>;

struct StageProblem {
  unsigned unit_count = 0;
  int64_t microbatches = 1;
  /// [worker][unit]: forward and backward of one microbatch.
  std::vector<std::vector<double>> seconds;
  /// [worker][unit]: sending to the next worker, one microbatch, if that one's
  /// units begin with `unit`; and gradients back. All but the last worker.
  std::vector<std::vector<PassSeconds>> transfers;
  /// Microbatches in flight at each worker; 0 is no limit.
  std::vector<int64_t> in_flight;
  /// Bytes that a worker needs for units [begin, end); empty: none.
  std::function<double(unsigned worker, unsigned begin, unsigned end)> memory;
  std::vector<double> memory_limits; ///< of each worker, if `memory`
  /// A partial solution may be dropped for one of no longer period whose way is
  /// longer by at most this fraction. 0: the dynamic program is exact.
  double tolerance = 0;
  /// When the dynamic program gives up, with no solution.
  Deadline deadline;

  unsigned workerCount() const { return seconds.size(); }

  /// What is wrong with the input; empty if nothing.
  std::string check() const;
  /// What is wrong with a solution; empty if nothing.
  std::string verify(const StageCuts &cuts) const;
  /// Seconds of a step of one-forward-one-backward: (M - 1) · period + the way
  /// of one microbatch through all stages. The period is the longest stage or
  /// transfer, or a stage's way to the end and back divided by the microbatches
  /// that it may have in flight.
  double objective(const StageCuts &cuts) const;
};

/// Cuts with their two costs; see objective().
struct StageFrontEntry {
  double period_s = 0, way_s = 0;
  StageCuts cuts;

  double seconds(int64_t microbatches) const {
    return static_cast<double>(microbatches - 1) * period_s + way_s;
  }
};

/// Every solution of which no other has both a shorter period and a shorter
/// way, by rising period: among them is the best one for any number of
/// microbatches. Empty where nothing fits.
std::vector<StageFrontEntry> solveStageFront(const StageProblem &problem);

/// No cuts where no solution fits. The dynamic program and the brute force are
/// exact; the latter is the former's oracle in tests.
std::optional<StageCuts>
solveStagesByDynamicProgram(const StageProblem &problem);
std::optional<StageCuts> solveStagesByBruteForce(const StageProblem &problem);

} // namespace autohet

#endif
