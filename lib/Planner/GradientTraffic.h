//===- GradientTraffic.h - what an exchange takes ---------------*- C++ -*-===//
//
// What each device sends, receives, adds up and updates once a step, as it
// follows from who holds and owns what.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_GRADIENTTRAFFIC_H
#define AUTOHET_LIB_PLANNER_GRADIENTTRAFFIC_H

#include "Ownership.h"
#include "autohet/Planner/Evaluation.h"
#include <array>

namespace autohet {

/// What passes a node's network card.
struct CardBytes {
  double out = 0, in = 0;

  CardBytes &operator+=(const CardBytes &other) {
    out += other.out;
    in += other.in;
    return *this;
  }
};

/// Seconds that both directions of a device's links are busy.
struct LinkSeconds {
  double out_s = 0, in_s = 0;
};

/// What a device does for each byte of a class that it has.
struct ClassTraffic {
  unsigned cell_class = 0;
  // Gradients: to and from owners of its node, relays and lonely holders; then
  // what relays have added up.
  LinkSeconds first, second;
  // New parameters: from owners; then from relays.
  LinkSeconds back, passed_on;
  double relay_s = 0;  ///< adding gradients up for others
  double sum_s = 0;    ///< adding up, and the norm, of what it owns
  double update_s = 0; ///< of what it owns
  /// Whether it owns something that another one holds, or that takes time: an
  /// optimizer may take none.
  bool isOwners() const { return update_s > 0 || back.out_s > 0; }
};

/// One device's part of the exchange: seconds that its links are busy.
struct Traffic {
  double first_s = 0;  ///< what leaves under the last backward
  double second_s = 0; ///< what relays add up and pass on behind it
  double latency_s = 0;
  CardBytes first_card, second_card; ///< of both, to and from other nodes
  /// What others send, all of which comes before any of it is added up, and
  /// copies of what is cut.
  double buffer_bytes = 0;
  std::vector<ClassTraffic> classes;

  const ClassTraffic &of(unsigned cellClass) const {
    return *llvm::find_if(classes, [&](const ClassTraffic &entry) {
      return entry.cell_class == cellClass;
    });
  }
};

/// What the devices of a plan send and receive. Every holder sends each owner
/// that owner's part of its gradient, itself or through a relay in its node. A
/// device sends and receives at once.
class GradientTraffic {
public:
  GradientTraffic(const Ownership &owners, const CostModel &costs)
      : owners(owners), costs(costs) {}

  /// Replicas of one `make` have equal stages, and extents of these.
  Traffic of(const DeviceEvaluation &entry, unsigned make,
             GradientExchange how);

private:
  /// Bytes that a device has of a class.
  struct HeldBytes {
    unsigned cell_class = 0;
    double bytes = 0;
    double count = 0; ///< of parameters
  };

  struct Held {
    std::vector<HeldBytes> classes;
    double cut_bytes = 0; ///< in no runs of rows
  };

  const Held &heldBy(const DeviceEvaluation &entry, unsigned make);

  const Ownership &owners;
  const CostModel &costs;
  /// What many devices have in common: of a make's stage and position.
  std::map<std::array<unsigned, 3>, Held> held;
};

} // namespace autohet

#endif
