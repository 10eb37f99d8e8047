//===- Ownership.cpp - who holds and owns which slice ---------------------===//

#include "Ownership.h"
#include "autohet/Support/SplitExtent.h"

#include "llvm/ADT/DenseSet.h"
#include <algorithm>
#include <numeric>

namespace autohet {

// Cuts of shares such as thirds meet up to this.
static constexpr double sameCut = 1e-9;

Ownership::Ownership(const ResolvedPlan &plan, llvm::StringRef stateOwner,
                     const CostModel &costs)
    : plan(plan), costs(costs), stateOwner(stateOwner),
      areEven(stateOwner == "spread"), gridOf(costs.units().parameters.size()) {
  if (stateOwner != "spread" && stateOwner != "first")
    pinned = costs.machines().findDevice(stateOwner);
  // Most parameters are one unit's; tied ones are held wherever one of their
  // units is.
  const UnitTable &table = costs.units();
  std::vector<llvm::SmallVector<unsigned, 2>> unitsOf(gridOf.size());
  for (auto [unit, data] : llvm::enumerate(table.units))
    for (unsigned parameter : data.parameters)
      unitsOf[parameter].push_back(unit);
  std::vector<Holders> ofUnit = holdersOfUnits();
  std::map<llvm::SmallVector<unsigned, 2>, unsigned> ofUnits;
  std::map<Holders, unsigned> known;
  std::map<std::tuple<unsigned, bool, int64_t>, unsigned> knownGrids;
  for (auto [parameter, units] : llvm::enumerate(unitsOf)) {
    const UnitParameter &data = table.parameters[parameter];
    if (!data.trained)
      continue;
    auto [place, isNew] = ofUnits.try_emplace(units);
    if (isNew) {
      Holders all;
      for (unsigned unit : units)
        llvm::append_range(all, ofUnit[unit]);
      llvm::sort(all);
      all.erase(llvm::unique(all), all.end());
      auto [same, isFirst] = known.try_emplace(all, groups.size());
      if (isFirst)
        addGroup(std::move(all));
      place->second = same->second;
    }
    const Group &group = groups[place->second];
    int64_t extent = 0;
    if (data.divided && !units.empty()) {
      extent = table.units[units.front()].divided_extent;
      // Most are divided just as shares say.
      if (llvm::all_of(group.cuts, [&](llvm::ArrayRef<int64_t> weights) {
            int64_t all =
                std::accumulate(weights.begin(), weights.end(), int64_t(0));
            return llvm::all_of(weights, [&](int64_t weight) {
              return extent * weight % all == 0;
            });
          }))
        extent = 0;
    }
    auto [grid, isNewGrid] = knownGrids.try_emplace(
        {place->second, data.divided, extent}, grids.size());
    if (isNewGrid)
      addGrid(place->second, data.divided, extent);
    gridOf[parameter] = grid->second;
  }
}

std::vector<Ownership::Holders> Ownership::holdersOfUnits() const {
  std::vector<Holders> ofUnit(costs.units().units.size());
  for (auto [r, replica] : llvm::enumerate(plan.replicas))
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      for (unsigned unit : stage.units)
        ofUnit[unit].push_back(
            {static_cast<unsigned>(r), static_cast<unsigned>(s)});
  return ofUnit;
}

void Ownership::addGroup(Holders holders) {
  Group &group = groups.emplace_back();
  for (const Holder &holder : holders) {
    llvm::ArrayRef<int64_t> weights = stageOf(holder).weights;
    auto same = llvm::find(group.cuts, weights);
    group.cut_of.push_back(same - group.cuts.begin());
    if (same == group.cuts.end())
      group.cuts.push_back(weights);
  }
  areEven &=
      llvm::all_equal(llvm::map_range(holders, [&](const Holder &holder) {
        return stageOf(holder).state_share;
      }));
  group.holders = std::move(holders);
}

namespace {

/// What a device has of what is divided, all of it being from 0 to 1.
struct Span {
  double begin = 0, end = 1;
};

std::vector<Span> spansOf(llvm::ArrayRef<int64_t> weights, bool isDivided,
                          int64_t extent) {
  if (!isDivided)
    return std::vector<Span>(weights.size());
  std::vector<double> shares;
  if (extent > 0 && weights.size() > 1) {
    for (int64_t part : splitExtent(extent, weights))
      shares.push_back(static_cast<double>(part) / static_cast<double>(extent));
    // No rank may be without a head: all have all of it.
    if (llvm::is_contained(shares, 0))
      return std::vector<Span>(weights.size());
  } else {
    shares = sharesOf(weights);
  }
  std::vector<Span> spans;
  double end = 0;
  for (double share : shares) {
    spans.push_back({end, end + share});
    end += share;
  }
  return spans;
}

} // namespace

void Ownership::addGrid(unsigned number, bool isDivided, int64_t extent) {
  const Group &group = groups[number];
  std::vector<std::vector<Span>> spans;
  std::vector<double> cuts = {0, 1};
  for (llvm::ArrayRef<int64_t> weights : group.cuts) {
    for (const Span &span :
         spans.emplace_back(spansOf(weights, isDivided, extent)))
      cuts.push_back(span.end);
  }
  llvm::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end(),
                         [](double a, double b) { return b - a < sameCut; }),
             cuts.end());
  Grid grid;
  grid.group = number;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    GridCell &cell = grid.cells.emplace_back();
    cell.width = cuts[i + 1] - cuts[i];
    double middle = cuts[i] + cell.width / 2;
    for (const std::vector<Span> &ofCut : spans) {
      Positions &positions = cell.positions.emplace_back();
      for (auto [position, span] : llvm::enumerate(ofCut))
        if (span.begin < middle && middle < span.end)
          positions.push_back(position);
    }
    cell.cell_class = addClass(number, cell.positions);
  }
  grids.push_back(std::move(grid));
}

unsigned Ownership::addClass(unsigned number,
                             const std::vector<Positions> &positions) {
  auto [place, isNew] =
      classOf.try_emplace({number, positions}, classes.size());
  if (!isNew)
    return place->second;
  const Group &group = groups[number];
  CellClass &made = classes.emplace_back();
  double all = 0;
  for (auto [holder, cut] : llvm::zip_equal(group.holders, group.cut_of)) {
    const ResolvedStage &stage = stageOf(holder);
    auto share = static_cast<double>(stage.state_share);
    for (unsigned position : positions[cut]) {
      made.parties.push_back({stage.devices[position], share});
      all += share;
    }
  }
  llvm::sort(made.parties, [](const Party &a, const Party &b) {
    return a.device < b.device;
  });
  // A device whose stage has two uses of a tied parameter is one party, since
  // holders are stages.
  std::optional<unsigned> only;
  if (stateOwner == "first") {
    only = made.parties.front().device;
  } else if (pinned && made.shareOf(*pinned)) {
    only = pinned;
  } else if (all == 0) {
    areOwned = false;
    only = made.parties.front().device;
  }
  for (Party &party : made.parties)
    party.share = only ? party.device == *only : party.share / all;
  for (auto [i, party] : llvm::enumerate(made.parties))
    if (i == 0 || nodeOf(party.device) != nodeOf(made.parties[i - 1].device))
      made.nodes.push_back(i);
  made.nodes.push_back(made.parties.size());
  return place->second;
}

bool Ownership::isCutByOthers(unsigned parameter, const Holder &holder,
                              unsigned position) const {
  if (costs.units().parameters[parameter].divided_by_rows)
    return false;
  unsigned cells = 0;
  visitCells(parameter, holder, position, [&](unsigned, double) { ++cells; });
  return cells > 1;
}

void Ownership::setShares(const Holder &holder, unsigned position,
                          StageTies &ties) const {
  const ResolvedStage &stage = stageOf(holder);
  double held = 0, owned = 0, exchanged = 0;
  llvm::SmallDenseSet<unsigned, 16> seen;
  for (unsigned unit : stage.units)
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || !seen.insert(parameter).second)
        continue;
      double whole = 0;
      visitCells(
          parameter, holder, position, [&](unsigned number, double width) {
            const CellClass &cells = classes[number];
            double bytes = data.bytes * width;
            double mine = bytes * *cells.shareOf(stage.devices[position]);
            whole += bytes;
            owned += mine;
            exchanged += mine * static_cast<double>(cells.parties.size() - 1);
          });
      held += whole;
      // As SynchronizeGradients cuts slices out and puts them together.
      if (isCutByOthers(parameter, holder, position))
        exchanged += whole;
    }
  ties.owned = held > 0 ? owned / held : 0;
  ties.exchanged = held > 0 ? exchanged / held : 0;
}

double Ownership::stageShare(const Holder &holder) const {
  double largest = 0;
  for (unsigned position = 0; position < stageOf(holder).devices.size();
       ++position) {
    StageTies ties;
    setShares(holder, position, ties);
    largest = std::max(largest, ties.owned);
  }
  return largest;
}

} // namespace autohet
