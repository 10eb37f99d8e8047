//===- Sums.h - how a tensor-parallel stage sums -----------------*- C++ -*-===//
//
// One rule for the programs and for what the planner thinks that they take.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLAN_SUMS_H
#define AUTOHET_PLAN_SUMS_H

namespace autohet {

/// From so many bytes on, a second round costs less than what it saves.
constexpr double kBytesToSumInSlices = 1 << 16;

/// Whether each rank had better sum a slice and send it to the others: of n
/// ranks, each then sends 2 (n - 1) / n of the value in two rounds, instead of
/// n - 1 times all of it in one.
inline bool sumsInSlices(double bytes, unsigned ranks) {
  return ranks >= 3 && bytes >= kBytesToSumInSlices;
}

} // namespace autohet

#endif
