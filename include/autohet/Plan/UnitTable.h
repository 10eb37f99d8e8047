//===- UnitTable.h - what a plan may distribute -----------------*- C++ -*-===//
//
// The model as planning sees it: units in topological order, what each costs
// for one sample, and what flows between them. The Model phase fills it from
// the IR; planner and plan verifier know nothing else of the model.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PLAN_UNITTABLE_H
#define AUTOHET_PLAN_UNITTABLE_H

#include "autohet/Cluster/Work.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace autohet {

struct UnitParameter {
  std::string name;
  double bytes = 0;
  /// Has a gradient and optimizer state.
  bool trained = true;

  bool operator==(const UnitParameter &other) const {
    return name == other.name && bytes == other.bytes &&
           trained == other.trained;
  }
};

/// A value that a later unit needs. Backward sends as much the other way.
struct UnitEdge {
  unsigned to = 0; ///< into UnitTable::units, behind the unit itself
  double bytes_per_sample = 0;

  bool operator==(const UnitEdge &other) const {
    return to == other.to && bytes_per_sample == other.bytes_per_sample;
  }
};

/// A forward, or a backward, of b samples: once + b × per_sample.
struct PassWork {
  Work per_sample, once;

  Work of(double samples) const {
    Work all = per_sample * samples;
    return all += once;
  }
  bool operator==(const PassWork &other) const {
    return per_sample == other.per_sample && once == other.once;
  }
};

struct Unit {
  std::string id; ///< "block3.attn"
  /// Into UnitTable::parameters. A tied parameter stands in several units.
  std::vector<unsigned> parameters;
  PassWork forward, backward;
  // For one sample.
  /// Kept from the forward to the backward of a microbatch.
  double activation_bytes = 0;
  /// Temporaries, gone when the unit is done.
  double workspace_bytes = 0;
  /// The largest gradient that is made whole before it is added up, whatever
  /// the number of samples: an embedding's table, not a product's.
  double gradient_workspace_bytes = 0;
  // Under tensor parallelism: the part of the arithmetic (and parameters) that
  // is divided, 0 to 1, and the bytes all-reduced in forward; backward as many.
  double divisible = 1;
  double all_reduce_bytes = 0;
  std::vector<UnitEdge> successors;

  /// Of products, forward and backward of a sample: what utilisation counts.
  double productFlops() const {
    return forward.per_sample.productFlops() +
           backward.per_sample.productFlops();
  }
  bool operator==(const Unit &other) const;
};

struct UnitTable {
  uint64_t structure_hash = 0;
  /// Of a model that is only computed: nothing goes back through the units.
  bool is_forward_only = false;
  std::vector<UnitParameter> parameters;
  std::vector<Unit> units;

  std::optional<unsigned> find(llvm::StringRef id) const;
  /// Of all the unit's parameters; tied ones count in each of their units.
  double parameterBytes(const Unit &unit) const;
};

/// `--emit=units`: JSON that parseUnitTable reads back.
std::string formatUnitTable(const UnitTable &table);
llvm::Expected<UnitTable> parseUnitTable(llvm::StringRef text,
                                         llvm::StringRef file);

/// The units that `spec` names, ascending: an id ("block3.attn"), a prefix of
/// ids ("block3"), or a range of either ("block0..block5", also with "-").
llvm::Expected<std::vector<unsigned>> expandUnits(llvm::StringRef spec,
                                                  const UnitTable &table);
/// The shortest specs that name these ascending units.
std::vector<std::string> compressUnits(llvm::ArrayRef<unsigned> units,
                                       const UnitTable &table);

} // namespace autohet

#endif
