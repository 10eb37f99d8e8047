//===- GradientCells.cpp - who sums, updates and holds which slice ----------===//

#include "GradientCells.h"

#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace autohet;

bool Box::contains(const Box &cell) const {
  for (auto [o, s, co, cs] :
       llvm::zip_equal(offsets, sizes, cell.offsets, cell.sizes))
    if (co < o || co + cs > o + s)
      return false;
  return true;
}

int64_t Box::elements() const {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

namespace {

/// Where dim 0 of parameters is cut beside the ends of their boxes.
using RowCuts = llvm::MapVector<StringAttr, SmallVector<int64_t>>;

/// Walks the grid of one parameter.
class Refinement {
public:
  Refinement(StringAttr name, const ParameterUses &parameter,
             ArrayRef<int64_t> rowCuts, std::vector<Cell> &cells)
      : name(name), parameter(parameter), cells(cells) {
    unsigned rank = parameter.globalShape.size();
    cuts.resize(rank);
    for (unsigned dim = 0; dim < rank; ++dim)
      cuts[dim] = {0, parameter.globalShape[dim]};
    for (auto *uses : {&parameter.held, &parameter.contributed})
      for (const BoxUse &use : *uses)
        for (unsigned dim = 0; dim < rank; ++dim) {
          cuts[dim].push_back(use.box.offsets[dim]);
          cuts[dim].push_back(use.box.offsets[dim] + use.box.sizes[dim]);
        }
    if (rank > 0)
      llvm::append_range(cuts[0], rowCuts);
    for (auto &dim : cuts) {
      llvm::sort(dim);
      dim.erase(llvm::unique(dim), dim.end());
    }
    Box cell;
    cell.offsets.resize(rank);
    cell.sizes.resize(rank);
    visit(0, cell);
  }

private:
  void visit(unsigned dim, Box &cell) {
    if (dim == cuts.size())
      return add(cell);
    for (unsigned i = 0; i + 1 < cuts[dim].size(); ++i) {
      cell.offsets[dim] = cuts[dim][i];
      cell.sizes[dim] = cuts[dim][i + 1] - cuts[dim][i];
      visit(dim + 1, cell);
    }
  }

  void add(const Box &box) {
    auto ranksOf = [&](ArrayRef<BoxUse> uses) {
      SmallVector<int64_t> ranks;
      for (const BoxUse &use : uses)
        if (use.box.contains(box) && !llvm::is_contained(ranks, use.rank))
          ranks.push_back(use.rank);
      llvm::sort(ranks);
      return ranks;
    };
    Cell cell{name,
              box,
              parameter.element,
              parameter.globalShape,
              parameter.loc,
              ranksOf(parameter.held),
              ranksOf(parameter.contributed),
              -1,
              {},
              {}};
    if (cell.holders.empty())
      cell.holders = {parameter.held.front().rank};
    cells.push_back(std::move(cell));
  }

  StringAttr name;
  const ParameterUses &parameter;
  std::vector<Cell> &cells;
  SmallVector<SmallVector<int64_t>> cuts;
};

} // namespace

static std::vector<Cell> refineWith(const Parameters &parameters,
                                    const RowCuts &rowCuts) {
  std::vector<Cell> cells;
  for (auto &[name, parameter] : parameters)
    if (!parameter.held.empty() && !parameter.contributed.empty())
      Refinement(name, parameter, rowCuts.lookup(name), cells);
  return cells;
}

/// The shares of a cell's holders that have one, the largest first.
static SmallVector<int64_t> sharesOf(const Cell &cell, StateShares shares) {
  SmallVector<int64_t> found;
  for (int64_t holder : cell.holders)
    if (shares[holder] > 0)
      found.push_back(shares[holder]);
  llvm::sort(found, std::greater<>());
  return found;
}

static double sumOf(ArrayRef<int64_t> shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

/// A part for each holder of each cell would be as many messages. Equal holders
/// are even to a part of this part of their share, which is even enough.
static constexpr double kPartOfShare = 0.25;

/// Cuts cells that are more than a part of their holders' fair share of what
/// these hold together into parts by these shares, of rows of dim 0.
static RowCuts cutLargeCells(ArrayRef<Cell> cells, int64_t leastBytes,
                             StateShares shares) {
  std::map<SmallVector<int64_t>, double> sharedBytes;
  for (const Cell &cell : cells)
    sharedBytes[cell.holders] += cell.bytes();
  RowCuts cuts;
  for (const Cell &cell : cells) {
    SmallVector<int64_t> all = sharesOf(cell, shares);
    ArrayRef<int64_t> parts = all;
    if (cell.box.sizes.empty() || parts.empty())
      continue;
    double bytes = static_cast<double>(cell.bytes());
    double share = sharedBytes[cell.holders] * parts.front() / sumOf(parts);
    if (bytes <= kPartOfShare * share)
      continue;
    parts = parts.take_front(cell.box.sizes.front());
    if (llvm::all_equal(parts))
      parts = parts.take_front(std::ceil(bytes / (kPartOfShare * share)));
    while (parts.size() > 1 && bytes * parts.back() / sumOf(parts) < leastBytes)
      parts = parts.drop_back();
    if (parts.size() < 2)
      continue;
    for (int64_t offset :
         partOffsets(splitExtent(cell.box.sizes.front(), parts)))
      cuts[cell.name].push_back(cell.box.offsets.front() + offset);
  }
  return cuts;
}

std::vector<Cell> autohet::refine(const Parameters &parameters,
                                  std::optional<int64_t> spreadFromBytes,
                                  StateShares shares) {
  std::vector<Cell> cells = refineWith(parameters, {});
  if (!spreadFromBytes)
    return cells;
  // A new grid of the whole parameter: who assembles a box from cells relies on
  // cuts that go through.
  RowCuts cuts = cutLargeCells(cells, *spreadFromBytes, shares);
  return cuts.empty() ? cells : refineWith(parameters, cuts);
}

void autohet::chooseOwners(MutableArrayRef<Cell> cells, bool spread,
                           std::optional<int64_t> preferred,
                           StateShares shares) {
  SmallVector<Cell *> order;
  for (Cell &cell : cells)
    order.push_back(&cell);
  llvm::sort(order, [](Cell *a, Cell *b) {
    int64_t sizeA = a->box.elements(), sizeB = b->box.elements();
    return sizeA != sizeB ? sizeA > sizeB : a < b; // equal ones in their order
  });
  // Of those who hold the same, and of all that a rank holds.
  using OwnedElements = llvm::DenseMap<int64_t, int64_t>;
  std::map<SmallVector<int64_t>, OwnedElements> ownedOfSets;
  OwnedElements ownedOfAll;
  for (Cell *cell : order) {
    int64_t elements = cell->box.elements();
    OwnedElements &ownedOfSet = ownedOfSets[cell->holders];
    // For its share: less than 0 where `a` would own less than `b`.
    auto compare = [&](const OwnedElements &owned, int64_t a, int64_t b) {
      return (owned.lookup(a) + elements) * shares[b] -
             (owned.lookup(b) + elements) * shares[a];
    };
    auto ownsLess = [&](int64_t a, int64_t b) {
      int64_t difference = compare(ownedOfSet, a, b);
      return (difference ? difference : compare(ownedOfAll, a, b)) < 0;
    };
    cell->owner = cell->holders.front();
    if (preferred && llvm::is_contained(cell->holders, *preferred))
      cell->owner = *preferred;
    else if (spread)
      for (int64_t holder : cell->holders)
        if (ownsLess(holder, cell->owner))
          cell->owner = holder;
    ownedOfSet[cell->owner] += elements;
    ownedOfAll[cell->owner] += elements;
  }
}

/// `ranks` in groups, those of a node at the place of the first of them.
static SmallVector<RelayGroup> groupByNode(const Cell &cell,
                                           ArrayRef<int64_t> ranks,
                                           bool isHierarchical,
                                           ArrayRef<StringRef> nodes) {
  SmallVector<RelayGroup> groups;
  for (int64_t rank : ranks) {
    RelayGroup *found = nullptr;
    if (isHierarchical && nodes[rank] != nodes[cell.owner])
      found = llvm::find_if(groups, [&](RelayGroup &group) {
        return nodes[group.members.front()] == nodes[rank];
      });
    if (found && found != groups.end())
      found->members.push_back(rank);
    else
      groups.push_back({rank, {rank}});
  }
  size_t turn = llvm::find(cell.holders, cell.owner) - cell.holders.begin();
  for (RelayGroup &group : groups)
    group.relay = group.members[turn % group.members.size()];
  return groups;
}

void autohet::chooseRelays(MutableArrayRef<Cell> cells, bool isHierarchical,
                           ArrayRef<StringRef> nodes) {
  for (Cell &cell : cells) {
    SmallVector<int64_t> others(cell.holders);
    llvm::erase(others, cell.owner);
    cell.gathers = groupByNode(cell, cell.contributors, isHierarchical, nodes);
    cell.spreads = groupByNode(cell, others, isHierarchical, nodes);
  }
}

std::vector<Bucket> autohet::formBuckets(ArrayRef<Cell> cells,
                                         int64_t limit_bytes) {
  using Parties =
      std::tuple<int64_t, SmallVector<int64_t>, SmallVector<int64_t>,
                 SmallVector<RelayGroup>, SmallVector<RelayGroup>>;
  std::vector<Bucket> buckets;
  std::map<Parties, size_t> open; // the bucket that may still grow
  for (unsigned c = cells.size(); c-- > 0;) {
    const Cell &cell = cells[c];
    Parties parties(cell.owner, cell.holders, cell.contributors, cell.gathers,
                    cell.spreads);
    auto [it, isNew] = open.try_emplace(parties, buckets.size());
    if (!isNew && buckets[it->second].bytes + cell.bytes() > limit_bytes) {
      it->second = buckets.size();
      isNew = true;
    }
    if (isNew)
      buckets.emplace_back();
    Bucket &bucket = buckets[it->second];
    bucket.cells.insert(bucket.cells.begin(), c);
    bucket.bytes += cell.bytes();
  }
  return buckets;
}
