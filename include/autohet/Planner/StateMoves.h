//===- StateMoves.h - from one plan's slices to another's -------*- C++ -*-===//
//
// When devices come or go, the new plan's devices need parameters and optimizer
// state that lie elsewhere. This says for every slice where it is and where it
// must be: on the device already, on another one that is left, or nowhere but
// in a checkpoint.
//
// Slices are parts of what tensor parallelism divides, from 0 to 1, as far as
// the unit table knows it: bytes are those of the unit's divisible part.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLANNER_STATEMOVES_H
#define AUTOHET_PLANNER_STATEMOVES_H

#include "autohet/Plan/Plan.h"

namespace autohet {

enum class StateKind { Weights, OptimizerState };

/// A slice that a device of the new plan needs.
struct StateSlice {
  unsigned parameter = 0; ///< into the table
  StateKind kind = StateKind::Weights;
  double begin = 0, end = 1;
  double bytes = 0;
  unsigned to = 0; ///< into the new cluster
  /// The device itself where it is there; nothing: only a checkpoint has it.
  std::optional<unsigned> from;

  bool isThere() const { return from && *from == to; }
};

struct StateMoves {
  std::vector<StateSlice> slices;       ///< by device, parameter and part
  double there_bytes = 0;               ///< need not move
  double near_bytes = 0, far_bytes = 0; ///< within a node, between nodes
  double checkpoint_bytes = 0;
  /// Each device sends and receives one slice at a time, checkpoints are read
  /// over the link between nodes.
  double seconds = 0;

  double movedBytes() const {
    return near_bytes + far_bytes + checkpoint_bytes;
  }
};

/// Devices are the same where their names are.
StateMoves findStateMoves(const Plan &before, const Cluster &clusterBefore,
                          const Plan &after, const Cluster &clusterAfter,
                          const UnitTable &table);

/// All parameters and their optimizer state, once.
double stateBytesOf(const UnitTable &table, OptimizerKind optimizer);

} // namespace autohet

#endif
