//===- CostModel.h - seconds and bytes of units on devices ------*- C++ -*-===//
//
// The one place that turns facts of the model (UnitTable) and of the machines
// (Cluster) into time and memory. Solvers, evaluator and verifier all ask it,
// so they cannot disagree about what a stage costs.
//
// A unit's work is that of the kernels and products that it will be run as
// (UnitTable.h); a kind's rates turn it into seconds (Work.h). It includes
// weights, once a microbatch, which is what makes very small microbatches dear.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_COSTMODEL_H
#define AUTOHET_PLANNER_COSTMODEL_H

#include "autohet/Plan/Plan.h"
#include "autohet/Planner/MachineClasses.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <limits>

namespace autohet {

struct PassSeconds {
  double forward_s = 0;
  double backward_s = 0;

  double total() const { return forward_s + backward_s; }
  PassSeconds &operator+=(const PassSeconds &other) {
    forward_s += other.forward_s;
    backward_s += other.backward_s;
    return *this;
  }
};

/// What one device needs for its part of a stage.
struct MemoryNeed {
  double parameter_bytes = 0;
  double gradient_bytes = 0;
  double state_bytes = 0;
  double activation_bytes = 0; ///< of all microbatches in flight
  double transfer_bytes = 0;   ///< values from and to other stages
  /// Gradients that others send for what is owned here, as far as they do not
  /// come in place of activations.
  double exchange_bytes = 0;
  double workspace_bytes = 0;

  double total() const {
    return parameter_bytes + gradient_bytes + state_bytes + activation_bytes +
           transfer_bytes + exchange_bytes + workspace_bytes;
  }
};

/// What a stage has to do with others.
struct StageTies {
  /// The part of the stage's optimizer state that lies here.
  double owned = 0;
  /// What others send for what is owned here, and copies of parameters that
  /// are cut between owners: of one byte of gradients.
  double exchanged = 0;
  // Of one sample, from and to other stages.
  double received_bytes = 0, sent_bytes = 0;
};

/// Of a microbatch that is passed between stages there is one more than is
/// computed with: it arrives, or leaves, meanwhile. So it is of the gradient
/// of what is sent, of which one is computed with.
constexpr double kSlotsBesideReceived = 1, kSlotsOfSent = 3;
/// All gradients for a device to add up come before it adds any; the memory of
/// a single microbatch's activations is free for them by then, that of several
/// is not.
inline double exchangeBytes(double bytes, double activationBytes,
                            int64_t inFlight) {
  return inFlight > 1 ? bytes : std::max(0.0, bytes - activationBytes);
}

/// What a plan's step is.
enum class PlanObjective {
  /// One global batch from its first input to the end: of training, or of a
  /// model that is only computed.
  Latency,
  /// Of a model that is only computed: what each global batch takes where they
  /// follow one another without a pause.
  Throughput
};

/// Parameters and gradients are float32.
constexpr double kBytesPerElement = 4;

/// Microbatches whose activations lie on a stage's devices: those that come
/// from the host need room while the one before is computed.
inline int64_t keptMicrobatches(Keeping keeping, int64_t inFlight) {
  switch (keeping) {
  case Keeping::All:
    return inFlight;
  case Keeping::Inputs:
    return 1;
  case Keeping::OnHost:
    return std::min<int64_t>(inFlight, 2);
  }
  llvm_unreachable("unknown keeping");
}

class CostModel {
public:
  CostModel(const UnitTable &table, const Cluster &cluster,
            OptimizerKind optimizer,
            PlanObjective objective = PlanObjective::Latency);

  /// One unit for one microbatch, on `devices` together.
  PassSeconds unitSeconds(unsigned unit, llvm::ArrayRef<unsigned> devices,
                          llvm::ArrayRef<int64_t> weights,
                          int64_t microbatchSize) const;
  /// The same where its activations go to the host behind forward, and come
  /// back for backward: a pass takes as long as they do, if that is longer. All
  /// devices must have a link to their host.
  PassSeconds offloadedSeconds(unsigned unit, llvm::ArrayRef<unsigned> devices,
                               llvm::ArrayRef<int64_t> weights,
                               int64_t microbatchSize) const;
  /// As a unit of `stage`, which may do more for it.
  PassSeconds unitSeconds(unsigned unit, const ResolvedStage &stage,
                          int64_t microbatchSize) const;
  PassSeconds stageSeconds(const ResolvedStage &stage,
                           int64_t microbatchSize) const;

  /// From one device group to another: every receiver gets the value whole,
  /// from the sender of its own position (modulo their number).
  Link groupLink(llvm::ArrayRef<unsigned> from,
                 llvm::ArrayRef<unsigned> to) const;

  /// Of the device in this position of a stage. Of each microbatch in flight,
  /// what it receives is kept in any case.
  MemoryNeed memory(llvm::ArrayRef<unsigned> units,
                    llvm::ArrayRef<int64_t> weights, unsigned position,
                    int64_t microbatchSize, int64_t inFlight,
                    const StageTies &ties,
                    Keeping keeping = Keeping::All) const;

  /// Adding the squares of so many parameters' gradients to the norm, of
  /// `bytes` together, and applying the optimizer to them.
  Work normWork(double bytes, double parameters) const;
  Work updateWork(double bytes, double parameters) const;
  /// Adding up gradients of so many parameters from `parts` devices.
  static Work sumWork(double bytes, double parameters, double parts);
  static Work copyWork(double bytes, double commands);

  /// Bytes of a sample that flow from units of one set into units of another.
  double bytesBetween(llvm::ArrayRef<unsigned> from,
                      llvm::ArrayRef<unsigned> to) const;

  const Link &link(unsigned from, unsigned to) const {
    if (from == to)
      return itself;
    return classes.link(classes.classOf(from), classes.classOf(to),
                        cluster.devices()[from].node ==
                            cluster.devices()[to].node);
  }
  const UnitTable &units() const { return table; }
  const Cluster &machines() const { return cluster; }
  OptimizerKind optimizerKind() const { return optimizer; }
  PlanObjective planObjective() const { return objective; }
  bool hasBackward() const { return !table.is_forward_only; }
  const MachineClasses &machineClasses() const { return classes; }

  /// Arithmetic of one sample, forward and backward.
  double flopsPerSample() const;

private:
  /// Of tensor-parallel ranks: what a byte that each sends every other keeps
  /// the busiest of their ports for.
  struct RankPorts {
    double seconds_per_byte = 0, latency_s = 0;
  };
  RankPorts rankPorts(llvm::ArrayRef<unsigned> devices) const;

  const UnitTable &table;
  const Cluster &cluster;
  OptimizerKind optimizer;
  PlanObjective objective;
  MachineClasses classes;
  Link itself = {std::numeric_limits<double>::infinity(), 0};
};

/// The part of what is divided that each rank has.
std::vector<double> sharesOf(llvm::ArrayRef<int64_t> weights);
/// The same of one unit, in whole heads; 1 for all ranks where one would have
/// none.
std::vector<double> sharesOf(const Unit &unit, llvm::ArrayRef<int64_t> weights);

/// Microbatches whose activations a stage holds at once.
int64_t microbatchesInFlight(Schedule schedule, unsigned stage,
                             unsigned stageCount, int64_t microbatches);
/// Without a backward: one is computed while the next one arrives.
constexpr int64_t kForwardOnlyInFlight = 2;

} // namespace autohet

#endif
