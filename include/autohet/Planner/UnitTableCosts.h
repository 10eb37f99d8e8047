//===- UnitTableCosts.h - costs from facts of model and machines -*- C++-*-===//
//
// PlanCosts of CostModel: operations, bytes and rates.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_UNITTABLECOSTS_H
#define AUTOHET_PLANNER_UNITTABLECOSTS_H

#include "autohet/Planner/PlanCosts.h"
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace autohet {

class UnitRanges;

class UnitTableCosts : public PlanCosts {
public:
  /// A device may be filled up to `memoryFraction` of its memory. Stages have
  /// `extent` devices each; 0: any number.
  UnitTableCosts(const UnitTable &table, const Cluster &cluster,
                 OptimizerKind optimizer, double memoryFraction = 1,
                 PlanObjective objective = PlanObjective::Latency,
                 unsigned extent = 0);
  ~UnitTableCosts() override;

  bool mayOffload(unsigned shape) const override;
  PassSeconds unitSeconds(unsigned shape, unsigned unit,
                          int64_t microbatchSize) const override;
  PassSeconds transferSeconds(unsigned fromClass, unsigned toClass,
                              unsigned cut, int64_t microbatchSize,
                              bool areApart = false) const override;
  double transferPeriod(unsigned fromClass, unsigned toClass, unsigned cut,
                        int64_t microbatchSize,
                        bool areApart = false) const override;
  int64_t mostInFlight(const StageQuery &stage, double owned) const override;
  double firstMessage(const StageQuery &stage) const override;
  PassSeconds updateSeconds(const StageQuery &stage,
                            double owned) const override;
  ExchangeWays exchangeWays(const StageQuery &stage,
                            const StageHolders &holders) const override;
  PlanEvaluation evaluate(const ResolvedPlan &plan, Schedule schedule,
                          llvm::StringRef stateOwner) const override;

  double memoryRoom(unsigned device) const override {
    return memoryFraction * machines().kindOf(device).memory_bytes;
  }
  const CostModel *costModel() const override { return &costs; }
  // Searches over named devices know no rule for extents.
  bool mayNameDevices() const override { return !extent; }
  PlanObjective planObjective() const override { return costs.planObjective(); }

protected:
  PassSeconds offloadedSeconds(unsigned shape, unsigned unit,
                               int64_t microbatchSize) const override;

private:
  /// A class's links at best, and the devices of its nodes.
  struct Reach {
    double near = 0, far = 0; ///< bytes/s: no less inside nodes than between
    unsigned per_node = 0;
  };

  /// Devices that a shape stands for, and their shares.
  struct Example {
    std::vector<unsigned> devices;
    std::vector<int64_t> weights;
  };

  void addExamples(const StageShape &shape);
  /// In whichever order the devices are.
  PassSeconds secondsAtBest(unsigned shape, unsigned unit,
                            int64_t microbatchSize, bool onHost = false) const;
  void findReach();
  /// For a gradient of one byte.
  ExchangeWays exchangeRates(unsigned machineClass, unsigned extent,
                             const StageHolders &holders) const;
  Link linkBetween(unsigned fromClass, unsigned toClass, bool areApart) const {
    return areApart ? classes().link(fromClass, toClass, false)
                    : classes().bestLink(fromClass, toClass);
  }

  CostModel costs;
  unsigned extent;
  std::unique_ptr<UnitRanges> ranges;
  double memoryFraction;
  std::vector<Reach> reaches; ///< of each class
  double largestNode = 0;     ///< devices
  /// Of each shape, one for each order of its classes: others cost the same.
  std::vector<std::vector<Example>> examples;
  std::vector<std::vector<double>> shares; ///< of each shape's devices
  /// Of each unit the first one that takes as long on all shapes.
  std::vector<unsigned> alike;
  /// Of a microbatch size: every unit on every shape.
  const std::vector<PassSeconds> &secondsOf(int64_t microbatchSize) const;

  /// What was asked for. Searches on several threads share it.
  mutable std::mutex asked;
  mutable std::map<int64_t, std::vector<PassSeconds>> known;
  /// Of them small sizes, which are asked for again and again: found without a
  /// lock once they are there.
  static constexpr size_t smallSizes = 128;
  mutable std::array<std::atomic<const std::vector<PassSeconds> *>, smallSizes>
      ofSmallSize = {};
  /// [shape, unit, microbatch size], with activations on the host.
  mutable std::map<std::tuple<unsigned, unsigned, int64_t>, PassSeconds>
      offloaded;
};

} // namespace autohet

#endif
