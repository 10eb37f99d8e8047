//===- Work.h - what a device is asked to do --------------------*- C++ -*-===//
//
// The quantities that time on a device depends on. Units, kernels and commands
// are all described by them, and DeviceKind::seconds is the only place that
// turns them into time: planner, simulator and profiler cannot disagree.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_CLUSTER_WORK_H
#define AUTOHET_CLUSTER_WORK_H

#include "llvm/ADT/StringRef.h"
#include <utility>

namespace autohet {

struct Work {
  /// Commands that are started: kernels, products, sums.
  double commands = 0;
  /// Operations of matrix products, 2 for a multiply-add: those that are
  /// commands of their own, and those inside kernels, which is attention.
  double flops = 0, attention_flops = 0;
  /// All other arithmetic.
  double elementwise_flops = 0;
  /// What goes through the device's memory.
  double traffic_bytes = 0;

  double productFlops() const { return flops + attention_flops; }

  Work &operator+=(const Work &other) {
    commands += other.commands;
    flops += other.flops;
    attention_flops += other.attention_flops;
    elementwise_flops += other.elementwise_flops;
    traffic_bytes += other.traffic_bytes;
    return *this;
  }
  friend Work operator*(Work work, double factor) {
    work.commands *= factor;
    work.flops *= factor;
    work.attention_flops *= factor;
    work.elementwise_flops *= factor;
    work.traffic_bytes *= factor;
    return work;
  }
  bool operator==(const Work &other) const {
    return commands == other.commands && flops == other.flops &&
           attention_flops == other.attention_flops &&
           elementwise_flops == other.elementwise_flops &&
           traffic_bytes == other.traffic_bytes;
  }
};

/// By the names that files give them.
inline constexpr std::pair<llvm::StringLiteral, double Work::*>
    kWorkQuantities[] = {{"commands", &Work::commands},
                         {"flops", &Work::flops},
                         {"attention_flops", &Work::attention_flops},
                         {"elementwise_flops", &Work::elementwise_flops},
                         {"traffic_bytes", &Work::traffic_bytes}};

} // namespace autohet

#endif
