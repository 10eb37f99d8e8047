//===- PlanCosts.h - what the search asks of a cost model -------*- C++ -*-===//
//
// The search knows a chain of units, shapes that a stage may have, and these
// questions. UnitTableCosts answers them from the model's facts and the cluster
// file; a profile of measured layers is another answer. Whoever implements it
// also judges whole plans, so that a search and its judge cannot disagree about
// what a stage costs.
//
// Everything that a bound rests on is marked *at best*: no placement of the
// shape on real devices may be cheaper.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_PLANCOSTS_H
#define AUTOHET_PLANNER_PLANCOSTS_H

#include "autohet/Planner/Evaluation.h"
#include "autohet/Planner/MachineClasses.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <optional>

namespace autohet {

/// What a stage runs on: so many devices of each of some classes, all in one
/// node. More than one device share the work as tensor parallelism.
struct StageShape {
  struct Part {
    unsigned machine_class = 0, count = 0;

    bool operator==(const Part &other) const {
      return machine_class == other.machine_class && count == other.count;
    }
  };
  llvm::SmallVector<Part, 2> parts; ///< ascending by class
  /// Share of each device in what is divided, part after part.
  std::vector<int64_t> weights;

  unsigned deviceCount() const;
  /// Of the class with the most devices: whose links the stage has.
  unsigned mainClass() const;
};

/// Units [begin, end) as a stage of the shape number `shape`.
struct StageQuery {
  unsigned begin = 0, end = 0;
  unsigned shape = 0;
  int64_t microbatch_size = 1;
  Keeping keeping = Keeping::All;
};

/// What exchanging a stage's gradients takes; new parameters take as long to
/// come back.
struct ExchangeSeconds {
  double first_s = 0;  ///< what leaves under the last backward
  double second_s = 0; ///< what relays pass on behind it

  double total() const { return first_s + second_s; }
};
using ExchangeWays = llvm::SmallVector<ExchangeSeconds, 4>;

/// What part of a parameter's state each of its holders owns.
enum class StateParts {
  Even,   ///< equal parts
  Uneven, ///< any parts
  Alone   ///< one has all of it
};

/// Who holds a stage's parameters.
struct StageHolders {
  int64_t replicas = 1;
  /// In one node; nothing: as many as there is room for.
  std::optional<int64_t> most_together = std::nullopt;
  StateParts state_parts = StateParts::Even;
};

class PlanCosts {
public:
  PlanCosts(const UnitTable &table, const Cluster &cluster,
            OptimizerKind optimizer)
      : table(table), cluster(cluster), optimizer(optimizer),
        machineClasses(cluster) {}
  virtual ~PlanCosts() = default;

  const UnitTable &units() const { return table; }
  const Cluster &machines() const { return cluster; }
  OptimizerKind optimizerKind() const { return optimizer; }
  bool hasBackward() const { return !table.is_forward_only; }
  /// What the times of plans and templates are of.
  virtual PlanObjective planObjective() const { return PlanObjective::Latency; }
  const MachineClasses &classes() const { return machineClasses; }
  /// All that a stage may run on.
  llvm::ArrayRef<StageShape> shapes() const { return allShapes; }

  /// One unit for one microbatch: a stage takes the sum over its units.
  virtual PassSeconds unitSeconds(unsigned shape, unsigned unit,
                                  int64_t microbatchSize) const = 0;
  /// The same where the stage does not keep all activations.
  PassSeconds secondsKeeping(Keeping keeping, unsigned shape, unsigned unit,
                             int64_t microbatchSize) const;
  /// Whether all devices of a shape have a link to their host.
  virtual bool mayOffload(unsigned shape) const { return false; }
  /// Passing one microbatch on where units from `cut` on are the next stage's,
  /// and its gradient back. At best; between two nodes where `areApart`. A
  /// stage's class is its shape's main one.
  virtual PassSeconds transferSeconds(unsigned fromClass, unsigned toClass,
                                      unsigned cut, int64_t microbatchSize,
                                      bool areApart = false) const = 0;
  /// How long such a message keeps its link from the next one, the longer way:
  /// without the time that it is under way.
  virtual double transferPeriod(unsigned fromClass, unsigned toClass,
                                unsigned cut, int64_t microbatchSize,
                                bool areApart = false) const {
    PassSeconds transfer =
        transferSeconds(fromClass, toClass, cut, microbatchSize, areApart);
    return std::max(transfer.forward_s, transfer.backward_s);
  }
  /// Whether a stage computes while its messages are under way.
  virtual bool transfersOverlap() const { return true; }

  /// Microbatches whose activations the stage can hold at once; 0 where not
  /// even its parameters fit. `owned` is the part of the optimizer's state that
  /// lies in this replica.
  virtual int64_t mostInFlight(const StageQuery &stage, double owned) const = 0;
  /// Sending the stage's gradients to their owners, directly or through relays.
  /// At best: however a plan exchanges, and wherever the holders are, one of
  /// these is seen for no longer. With `most_together` near what placement
  /// reaches, but no bound.
  virtual ExchangeWays exchangeWays(const StageQuery &stage,
                                    const StageHolders &holders) const = 0;
  /// The quickest of them.
  double syncSeconds(const StageQuery &stage, int64_t replicas) const;
  /// At best, the part of a stage's bytes in the message that is needed first.
  virtual double firstMessage(const StageQuery &stage) const { return 0; }
  /// At best, what updating the stage's parameters takes before the first
  /// forward, and their norm behind the last backward, of the part `owned`.
  virtual PassSeconds updateSeconds(const StageQuery &stage,
                                    double owned) const {
    return {};
  }
  /// Whether gradients leave under the last backward, message by message.
  virtual bool syncOverlaps() const { return true; }

  /// What plans may use of a device's memory.
  virtual double memoryRoom(unsigned device) const {
    return cluster.kindOf(device).memory_bytes;
  }

  /// The facts below, where there are such.
  virtual const CostModel *costModel() const { return nullptr; }
  /// Whether plans of few named devices may be enumerated by those facts.
  virtual bool mayNameDevices() const { return costModel(); }

  /// The judge.
  virtual PlanEvaluation evaluate(const ResolvedPlan &plan, Schedule schedule,
                                  llvm::StringRef stateOwner) const = 0;

  /// Arithmetic of one sample, forward and backward.
  double flopsPerSample() const;

protected:
  /// With activations on the host, for shapes that may.
  virtual PassSeconds offloadedSeconds(unsigned shape, unsigned unit,
                                       int64_t microbatchSize) const {
    llvm_unreachable("no links to hosts");
  }

  /// All shapes within the nodes: any number of devices of a class, and of
  /// several classes that share nodes. `isKnown` leaves shapes out (a profile
  /// may not have them all).
  void makeShapes(llvm::function_ref<bool(const StageShape &)> isKnown =
                      [](const auto &) { return true; });

private:
  const UnitTable &table;
  const Cluster &cluster;
  OptimizerKind optimizer;
  MachineClasses machineClasses;
  std::vector<StageShape> allShapes;
};

} // namespace autohet

#endif
