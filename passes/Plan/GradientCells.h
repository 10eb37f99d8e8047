//===- GradientCells.h - who sums, updates and holds which slice -*- C++ -*-===//
//
// Devices may cut a parameter differently. All their boxes have a common
// refinement, a grid of *cells*, within which everybody holds all or nothing.
// Each cell has one owner. Cells with equal parties travel together as a
// *bucket*: one message a direction. This file knows no ops; it is a function
// of boxes and ranks, the same on every device.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_PASSES_PLAN_GRADIENTCELLS_H
#define AUTOHET_PASSES_PLAN_GRADIENTCELLS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/MapVector.h"
#include <tuple>

namespace autohet {

/// A part of a parameter: where it starts and how large it is, dim by dim.
struct Box {
  llvm::SmallVector<int64_t> offsets, sizes;

  bool operator==(const Box &other) const {
    return offsets == other.offsets && sizes == other.sizes;
  }
  bool contains(const Box &cell) const;
  int64_t elements() const;
};

/// What a device has to do with a box of a parameter.
struct BoxUse {
  int64_t rank;
  Box box;
};

/// All that the devices together know of one parameter.
struct ParameterUses {
  mlir::Type element;
  llvm::SmallVector<int64_t> globalShape;
  mlir::Location loc;
  llvm::SmallVector<BoxUse> held, contributed;
};

using Parameters = llvm::MapVector<mlir::StringAttr, ParameterUses>;

/// Ranks that the rest of a cell's parties meet only through one of them.
struct RelayGroup {
  int64_t relay;
  llvm::SmallVector<int64_t> members; ///< with the relay, rising

  bool operator<(const RelayGroup &other) const {
    return std::tie(relay, members) < std::tie(other.relay, other.members);
  }
};

/// A cell of the refinement, with who takes part.
struct Cell {
  mlir::StringAttr name;
  Box box;
  mlir::Type element;
  llvm::SmallVector<int64_t> globalShape;
  mlir::Location loc;
  llvm::SmallVector<int64_t> holders, contributors; ///< ranks, rising
  int64_t owner;
  /// All contributors: a relay adds its members' parts and sends the owner one
  /// sum. And all holders but the owner: a relay passes new bytes on.
  llvm::SmallVector<RelayGroup> gathers, spreads;

  mlir::RankedTensorType getType() const {
    return mlir::RankedTensorType::get(box.sizes, element);
  }
  int64_t bytes() const {
    return box.elements() * element.getIntOrFloatBitWidth() / 8;
  }
};

/// Cells of equal holders, contributors, owner and relays, in the order of
/// cells.
struct Bucket {
  llvm::SmallVector<unsigned> cells;
  int64_t bytes = 0;
};

/// In what parts state is spread over holders.
struct StateShares {
  llvm::ArrayRef<int64_t> of_rank; ///< 0 to kLargestStateShare; empty: all 1

  int64_t operator[](int64_t rank) const {
    return of_rank.empty() ? 1 : of_rank[rank];
  }
};

/// The grids that all cuts of all boxes and the wholes make, in the order of
/// `parameters`. A cell that no op reads (positions beyond the sequence) is
/// still a part of its parameter: its gradient is zero, and it has weight
/// decay; a parameter without any gradient has no cells, as to PyTorch it has
/// no gradient to apply. Owners are not chosen yet.
///
/// With `spreadFromBytes`, a cell that is much of a holder's fair share of what
/// its holders hold together is cut into rows, at most a part a holder, so that
/// one table does not make one owner, and few of them no uneven ones. No part
/// has less than so many bytes: a message has to be worth it.
std::vector<Cell> refine(const Parameters &parameters,
                         std::optional<int64_t> spreadFromBytes = std::nullopt,
                         StateShares shares = {});

/// Largest cells first, each to the holder that would own least for its share
/// of what the same ranks hold together, and of all where several own as
/// little: so a rank owns in proportion to what it holds, as the planner takes
/// it to. To `preferred` where that holds the cell; to the first where `spread`
/// is off. A holder without a share owns what nobody else holds.
void chooseOwners(llvm::MutableArrayRef<Cell> cells, bool spread,
                  std::optional<int64_t> preferred, StateShares shares = {});

/// Fills in `gathers` and `spreads`. Direct: everybody is a group of its own.
/// Hierarchical: so are those in the owner's node, and each other node is a
/// group, so that one message of a cell crosses to or from a node. Which member
/// relays goes round with the owners. `nodes` is by rank.
void chooseRelays(llvm::MutableArrayRef<Cell> cells, bool isHierarchical,
                  llvm::ArrayRef<llvm::StringRef> nodes);

/// Buckets of at most `limit_bytes` (or one cell), in the order of their last
/// cells counted from the end: the order in which a backward pass, which goes
/// through parameters last to first, completes their gradients.
std::vector<Bucket> formBuckets(llvm::ArrayRef<Cell> cells,
                                int64_t limit_bytes);

} // namespace autohet

#endif
