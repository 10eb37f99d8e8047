//===- ExchangeLimits.h - stages that exchange for too long -----*- C++ -*-===//
//
// New parameters of a stage arrive before its first forward, and its gradients
// leave behind its last backward. Stages in front hide some of that. What they
// do not hide lengthens a step, so where only a little more time is left, long
// stages with little in front of them are out of the question.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_EXCHANGELIMITS_H
#define AUTOHET_LIB_PLANNER_EXCHANGELIMITS_H

#include "StageTables.h"

namespace autohet {

class ExchangeLimits {
public:
  /// For stages of up to `high_s` each, of which nothing that they exchange may
  /// be seen for longer than `left_s`. Stages of `low_s` and more set the pace:
  /// they end a step as well as they begin it.
  void reset(StageTables &tables, double low_s, double high_s, double left_s);
  void clear() { areSet = false; }
  bool isSet() const { return areSet; }

  /// For each first unit, the last `end` of a stage that may be; the unit
  /// itself where there is none. Stages that end before are not looked at.
  llvm::ArrayRef<uint16_t> ends(unsigned variant) const {
    return row(allEnds, variant);
  }
  /// The same of stages that set the pace.
  llvm::ArrayRef<uint16_t> endsOfLong(unsigned variant) const {
    return row(longEnds, variant);
  }

private:
  llvm::ArrayRef<uint16_t> row(const std::vector<uint16_t> &table,
                               unsigned variant) const {
    return llvm::ArrayRef(table).slice(variant * units, units);
  }
  void findHidden(const StageTables &tables, double high_s);
  void limit(StageTables &tables, unsigned variant, double low_s, double high_s,
             double left_s);

  bool areSet = false;
  unsigned units = 0;
  /// What stages of units [0, unit) hide at most.
  std::vector<PassSeconds> hidden;
  std::vector<uint16_t> allEnds, longEnds; ///< of each variant and first unit
};

} // namespace autohet

#endif
