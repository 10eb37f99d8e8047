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
#include "autohet/Plan/Exchanges.h"
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
  /// Tensor-parallel ranks hold a part each; else each holds it whole.
  bool divided = true;
  /// The parts are rows, which lie one behind the other in the whole.
  bool divided_by_rows = false;

  bool operator==(const UnitParameter &other) const {
    return name == other.name && bytes == other.bytes &&
           trained == other.trained && divided == other.divided &&
           divided_by_rows == other.divided_by_rows;
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
  // Under tensor parallelism: what of them every rank does whole (commands
  // become smaller, not fewer: these count for nothing here), and what ranks
  // exchange.
  Work whole_per_sample, whole_once;
  std::vector<RankExchange> exchanges;

  /// Of a rank that has this share of what is divided; without exchanges.
  Work of(double samples, double share = 1) const {
    Work all = per_sample * samples;
    all += once;
    if (share == 1)
      return all;
    Work whole = whole_per_sample * samples;
    whole += whole_once;
    Work mine = whole * (1 - share);
    mine += all * share;
    mine.commands = all.commands;
    return mine;
  }
  bool operator==(const PassWork &other) const {
    return per_sample == other.per_sample && once == other.once &&
           whole_per_sample == other.whole_per_sample &&
           whole_once == other.whole_once && exchanges == other.exchanges;
  }
};

/// Bytes of which every tensor-parallel rank has `whole`, and its share of the
/// rest.
struct DividedBytes {
  double all = 0, whole = 0;

  double of(double share) const { return whole + (all - whole) * share; }
  DividedBytes &operator+=(const DividedBytes &other) {
    all += other.all;
    whole += other.whole;
    return *this;
  }
  DividedBytes &operator*=(double factor) {
    all *= factor;
    whole *= factor;
    return *this;
  }
  bool operator==(const DividedBytes &other) const {
    return all == other.all && whole == other.whole;
  }
};

struct Unit {
  std::string id; ///< "block3.attn"
  /// Into UnitTable::parameters. A tied parameter stands in several units.
  std::vector<unsigned> parameters;
  PassWork forward, backward;
  // For one sample.
  /// Kept from the forward to the backward of a microbatch.
  DividedBytes activations;
  /// Temporaries, gone when the unit is done.
  DividedBytes workspace;
  /// The largest gradient that is made whole before it is added up, whatever
  /// the number of samples: an embedding's table, not a product's.
  DividedBytes gradient_workspace;
  /// Heads, hidden elements or classes, of which each tensor-parallel rank has
  /// a whole number, and at least one; 0: any share will do.
  int64_t divided_extent = 0;
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
