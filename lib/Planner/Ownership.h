//===- Ownership.h - who holds and owns which slice -------------*- C++ -*-===//
//
// A parameter has holders, the stages that compute with it. Where their devices
// divide it differently, all their cuts together make *cells*, within which a
// device has all or nothing, as the programs' GradientCells.h has them; so one
// owner of a cell's part adds gradients up and updates for all who hold it.
// Cells that the same devices hold are one *class*: what a device exchanges is
// a matter of classes and of bytes in them.
//
//===----------------------------------------------------------------------===//

#ifndef AUTOHET_LIB_PLANNER_OWNERSHIP_H
#define AUTOHET_LIB_PLANNER_OWNERSHIP_H

#include "autohet/Planner/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <tuple>

namespace autohet {

/// A stage that holds a parameter.
struct Holder {
  unsigned replica, stage;

  bool operator==(const Holder &other) const {
    return replica == other.replica && stage == other.stage;
  }
  bool operator<(const Holder &other) const {
    return std::tie(replica, stage) < std::tie(other.replica, other.stage);
  }
};

/// A device that has a class's cells, and the part of them that it owns.
struct Party {
  unsigned device = 0;
  double share = 0;
};

/// Devices that have the same cells.
struct CellClass {
  std::vector<Party> parties; ///< in the order of devices, which is ranks'
  /// Those of one node follow one another: where each node's begin, and the
  /// end.
  std::vector<unsigned> nodes;

  size_t nodeCount() const { return nodes.size() - 1; }
  llvm::ArrayRef<Party> ofNode(size_t node) const {
    return llvm::ArrayRef(parties).slice(nodes[node],
                                         nodes[node + 1] - nodes[node]);
  }
  /// The device's part; none if it has no such cells.
  std::optional<double> shareOf(unsigned device) const {
    auto found = llvm::lower_bound(parties, device,
                                   [](const Party &party, unsigned wanted) {
                                     return party.device < wanted;
                                   });
    if (found == parties.end() || found->device != device)
      return std::nullopt;
    return found->share;
  }
  double largestShare() const {
    double largest = 0;
    for (const Party &party : parties)
      largest = std::max(largest, party.share);
    return largest;
  }
};

/// Who holds which parameter, and what part of its state each holder owns.
class Ownership {
public:
  Ownership(const ResolvedPlan &plan, llvm::StringRef stateOwner,
            const CostModel &costs);

  /// Whether all holders of a parameter own equal parts.
  bool isEven() const { return areEven; }
  /// Whether no parameter's holders all have a share of 0.
  bool areAllOwned() const { return areOwned; }

  llvm::ArrayRef<CellClass> cellClasses() const { return classes; }
  /// Calls `visit` with each class that a stage's device in this position has
  /// cells of, and the part of the trained parameter that they are.
  template <typename Visit>
  void visitCells(unsigned parameter, const Holder &holder, unsigned position,
                  Visit visit) const {
    const Grid &grid = grids[gridOf[parameter]];
    unsigned cut = cutOf(grid, holder);
    for (const GridCell &cell : grid.cells)
      if (llvm::is_contained(cell.positions[cut], position))
        visit(cell.cell_class, cell.width);
  }
  /// The same of anybody's cells, which may name a class more than once.
  template <typename Visit>
  void visitAllCells(unsigned parameter, Visit visit) const {
    for (const GridCell &cell : grids[gridOf[parameter]].cells)
      visit(cell.cell_class, cell.width);
  }
  /// Whether a device's part of a parameter is several cells that are no runs
  /// of its rows.
  bool isCutByOthers(unsigned parameter, const Holder &holder,
                     unsigned position) const;

  /// The part of a stage's trained bytes that its device in this position owns,
  /// and what it exchanges for that.
  void setShares(const Holder &holder, unsigned position,
                 StageTies &ties) const;
  /// Of the stage's device that owns most of what it has.
  double stageShare(const Holder &holder) const;

  const ResolvedStage &stageOf(const Holder &holder) const {
    return plan.replicas[holder.replica].stages[holder.stage];
  }

private:
  using Holders = std::vector<Holder>;
  /// Of a grid: stages that divide alike cut alike.
  using Positions = llvm::SmallVector<unsigned, 4>;

  /// A part between two cuts of anybody.
  struct GridCell {
    double width = 0; ///< of the whole
    unsigned cell_class = 0;
    std::vector<Positions> positions; ///< that have it, of each cut
  };
  /// How all holders of some parameters together cut them.
  struct Grid {
    unsigned group = 0;
    std::vector<GridCell> cells;
  };
  /// Parameters with equal holders, and the ways in which these divide.
  struct Group {
    Holders holders; ///< rising
    std::vector<llvm::ArrayRef<int64_t>> cuts;
    std::vector<unsigned> cut_of; ///< of each holder
  };

  std::vector<Holders> holdersOfUnits() const;
  void addGroup(Holders holders);
  void addGrid(unsigned group, bool isDivided, int64_t extent);
  /// Of the devices in these positions of each cut.
  unsigned addClass(unsigned group, const std::vector<Positions> &positions);
  unsigned nodeOf(unsigned device) const {
    return costs.machines().devices()[device].node;
  }
  unsigned cutOf(const Grid &grid, const Holder &holder) const {
    const Group &group = groups[grid.group];
    return group.cut_of[llvm::lower_bound(group.holders, holder) -
                        group.holders.begin()];
  }

  const ResolvedPlan &plan;
  const CostModel &costs;
  llvm::StringRef stateOwner;
  std::optional<unsigned> pinned;
  bool areEven, areOwned = true;
  std::vector<Group> groups;
  std::vector<Grid> grids;
  std::vector<unsigned> gridOf; ///< of each trained parameter
  std::vector<CellClass> classes;
  /// By group and positions.
  std::map<std::pair<unsigned, std::vector<Positions>>, unsigned> classOf;
};

} // namespace autohet

#endif
