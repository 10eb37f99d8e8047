//===- GradientCells.cpp - who sums, updates and holds which slice ----------===//

#include "GradientCells.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
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

/// Walks the grid of one parameter.
class Refinement {
public:
  Refinement(StringAttr name, const ParameterUses &parameter,
             std::vector<Cell> &cells)
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
              -1};
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

std::vector<Cell> autohet::refine(const Parameters &parameters) {
  std::vector<Cell> cells;
  for (auto &[name, parameter] : parameters)
    if (!parameter.held.empty() && !parameter.contributed.empty())
      Refinement(name, parameter, cells);
  return cells;
}

void autohet::chooseOwners(MutableArrayRef<Cell> cells, bool spread,
                           std::optional<int64_t> preferred) {
  SmallVector<Cell *> order;
  for (Cell &cell : cells)
    order.push_back(&cell);
  llvm::sort(order, [](Cell *a, Cell *b) {
    int64_t sizeA = a->box.elements(), sizeB = b->box.elements();
    return sizeA != sizeB ? sizeA > sizeB : a < b; // equal ones in their order
  });
  llvm::DenseMap<int64_t, int64_t> owned;
  for (Cell *cell : order) {
    cell->owner = cell->holders.front();
    if (preferred && llvm::is_contained(cell->holders, *preferred))
      cell->owner = *preferred;
    else if (spread)
      for (int64_t holder : cell->holders)
        if (owned.lookup(holder) < owned.lookup(cell->owner))
          cell->owner = holder;
    owned[cell->owner] += cell->box.elements();
  }
}

std::vector<Bucket> autohet::formBuckets(ArrayRef<Cell> cells,
                                         int64_t limit_bytes) {
  using Parties =
      std::tuple<int64_t, SmallVector<int64_t>, SmallVector<int64_t>>;
  std::vector<Bucket> buckets;
  std::map<Parties, size_t> open; // the bucket that may still grow
  for (unsigned c = cells.size(); c-- > 0;) {
    const Cell &cell = cells[c];
    Parties parties(cell.owner, cell.holders, cell.contributors);
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
