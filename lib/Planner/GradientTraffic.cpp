//===- GradientTraffic.cpp - who owns, and what an exchange takes ---------===//

#include "GradientTraffic.h"
#include "autohet/Plan/Exchanges.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace autohet {

Ownership::Ownership(const ResolvedPlan &plan, llvm::StringRef stateOwner,
                     const CostModel &costs)
    : plan(plan), costs(costs), areEven(stateOwner == "spread"),
      groups(costs.units().parameters.size()) {
  std::optional<unsigned> pinned;
  if (stateOwner != "spread" && stateOwner != "first")
    pinned = costs.machines().findDevice(stateOwner);
  // Most parameters are one unit's; tied ones are held wherever one of their
  // units is.
  std::vector<llvm::SmallVector<unsigned, 2>> unitsOf(groups.size());
  for (auto [unit, data] : llvm::enumerate(costs.units().units))
    for (unsigned parameter : data.parameters)
      unitsOf[parameter].push_back(unit);
  std::vector<std::vector<Holder>> ofUnit = holdersOfUnits();
  std::map<llvm::SmallVector<unsigned, 2>, unsigned> ofUnits;
  std::map<std::vector<Holder>, unsigned> known;
  for (auto [units, group] : llvm::zip_equal(unitsOf, groups)) {
    auto [place, isNew] = ofUnits.try_emplace(units);
    if (isNew) {
      std::vector<Holder> all;
      for (unsigned unit : units)
        llvm::append_range(all, ofUnit[unit]);
      llvm::sort(all);
      all.erase(llvm::unique(all), all.end());
      auto [same, isFirst] = known.try_emplace(all, holders.size());
      if (isFirst)
        holders.push_back(std::move(all));
      place->second = same->second;
    }
    group = place->second;
  }
  owners.resize(holders.size());
  for (auto [all, owner] : llvm::zip_equal(holders, owners)) {
    double &share = shares.emplace_back();
    for (const Holder &holder : all)
      share += static_cast<double>(stageOf(holder).state_share);
    areEven &= llvm::all_equal(llvm::map_range(all, [&](const Holder &holder) {
      return stageOf(holder).state_share;
    }));
    are_cut_unlike.push_back(
        llvm::any_of(all, [&, first = all.front()](const Holder &holder) {
          return stageOf(holder).weights != stageOf(first).weights;
        }));
    if (stateOwner == "first")
      owner = firstHolders(all);
    if (!pinned)
      continue;
    auto found = llvm::find_if(all, [&](const Holder &holder) {
      return llvm::is_contained(stageOf(holder).devices, *pinned);
    });
    if (found != all.end())
      owner = {static_cast<unsigned>(found - all.begin())};
  }
}

/// Of each position the holder whose device there has the lowest rank: ranks go
/// with the cluster's devices.
std::vector<unsigned>
Ownership::firstHolders(llvm::ArrayRef<Holder> all) const {
  size_t positions = 0;
  for (const Holder &holder : all)
    positions = std::max(positions, stageOf(holder).devices.size());
  std::vector<unsigned> first;
  for (size_t position = 0; position < positions; ++position) {
    auto deviceOf = [&](const Holder &holder) {
      llvm::ArrayRef<unsigned> devices = stageOf(holder).devices;
      return devices[position % devices.size()];
    };
    first.push_back(std::min_element(all.begin(), all.end(),
                                     [&](const Holder &a, const Holder &b) {
                                       return deviceOf(a) < deviceOf(b);
                                     }) -
                    all.begin());
  }
  return first;
}

std::vector<std::vector<Holder>> Ownership::holdersOfUnits() const {
  std::vector<std::vector<Holder>> ofUnit(costs.units().units.size());
  for (auto [r, replica] : llvm::enumerate(plan.replicas))
    for (auto [s, stage] : llvm::enumerate(replica.stages))
      for (unsigned unit : stage.units)
        ofUnit[unit].push_back(
            {static_cast<unsigned>(r), static_cast<unsigned>(s)});
  return ofUnit;
}

bool Ownership::isCutByOthers(unsigned group, const Holder &holder) const {
  if (!are_cut_unlike[group])
    return false;
  // Where what is divided is cut, between 0 and 1.
  auto cutsOf = [&](const Holder &of) {
    std::vector<double> cuts;
    double end = 0;
    for (double share : sharesOf(stageOf(of).weights))
      cuts.push_back(end += share);
    return cuts;
  };
  std::vector<double> own = cutsOf(holder);
  constexpr double same = 1e-6;
  return llvm::any_of(holders[group], [&](const Holder &other) {
    return llvm::any_of(cutsOf(other), [&](double cut) {
      return llvm::none_of(
          own, [&](double mine) { return std::abs(mine - cut) < same; });
    });
  });
}

void Ownership::setShares(const Holder &holder, unsigned position,
                          StageTies &ties) const {
  double held = 0, owned = 0, exchanged = 0;
  llvm::SmallDenseSet<unsigned, 16> seen;
  for (unsigned unit : stageOf(holder).units)
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || !seen.insert(parameter).second)
        continue;
      held += data.bytes;
      unsigned group = groupOf(parameter);
      double mine = data.bytes * share(group, holder, position);
      owned += mine;
      double count = static_cast<double>(holders[group].size());
      exchanged += mine * (count - 1);
      // As SynchronizeGradients cuts slices out and puts them together where
      // devices cut a parameter differently; rows of one cut stay in place.
      if (count > 1 && data.divided && are_cut_unlike[group])
        exchanged += data.bytes;
    }
  ties.owned = held > 0 ? owned / held : 0;
  ties.exchanged = held > 0 ? exchanged / held : 0;
}

//===-- Traffic -----------------------------------------------------------===//

llvm::ArrayRef<GradientTraffic::SharedBytes>
GradientTraffic::sharedBytesOf(const DeviceEvaluation &entry, unsigned make) {
  auto [place, isNew] = shared.try_emplace({make, entry.stage, entry.position});
  if (!isNew)
    return place->second;
  const ResolvedStage &stage = owners.stageOf({entry.replica, entry.stage});
  double share = sharesOf(stage.weights)[entry.position];
  std::map<unsigned, SharedBytes> found; // of each group
  llvm::DenseSet<unsigned> seen;
  for (unsigned unit : stage.units)
    for (unsigned parameter : costs.units().units[unit].parameters) {
      const UnitParameter &data = costs.units().parameters[parameter];
      if (!data.trained || !seen.insert(parameter).second)
        continue;
      SharedBytes &group = found[owners.groupOf(parameter)];
      group.group = owners.groupOf(parameter);
      group.bytes += data.bytes * (data.divided ? share : 1);
      group.count += 1;
    }
  for (const auto &[number, group] : found)
    place->second.push_back(group);
  return place->second;
}

// Its own device in that place is the one that a holder meets itself with: so
// all devices in one place meet the same.
llvm::ArrayRef<GradientTraffic::NodeParties>
GradientTraffic::partiesOf(unsigned group, unsigned position) {
  auto [place, isNew] = met.try_emplace({group, position});
  if (!isNew)
    return place->second;
  std::map<unsigned, std::vector<Party>> ofNode;
  for (auto [turn, holder] : llvm::enumerate(owners.holdersOf(group))) {
    llvm::ArrayRef<unsigned> devices = owners.stageOf(holder).devices;
    unsigned device = devices[position % devices.size()];
    ofNode[costs.machines().devices()[device].node].push_back(
        {holder, device, static_cast<unsigned>(turn)});
  }
  for (auto &[node, parties] : ofNode)
    place->second.push_back({node, std::move(parties)});
  return place->second;
}

namespace {

/// What one device sends and receives in one hop.
struct Hop {
  double out_s = 0, in_s = 0, latency_s = 0;
  CardBytes card;

  double seconds() const { return std::max(out_s, in_s) + latency_s; }
};

} // namespace

Traffic GradientTraffic::of(const DeviceEvaluation &entry, unsigned make,
                            GradientExchange how) {
  Holder self = {entry.replica, entry.stage};
  unsigned ownNode = costs.machines().devices()[entry.device].node;
  const DeviceKind &kind = costs.machines().kindOf(entry.device);
  bool relays = how == GradientExchange::Hierarchical;
  Traffic traffic;
  Hop first, second;
  auto isOutside = [&](unsigned device) {
    return costs.machines().devices()[device].node != ownNode;
  };
  auto sendingSeconds = [&](unsigned device, double bytes) {
    return bytes / costs.link(entry.device, device).bandwidth_bytes_per_s;
  };
  auto receivingSeconds = [&](unsigned device, double bytes) {
    return bytes / costs.link(device, entry.device).bandwidth_bytes_per_s;
  };
  auto meet = [&](Hop &hop, unsigned device) {
    hop.latency_s =
        std::max(hop.latency_s, costs.link(entry.device, device).latency_s);
  };
  auto send = [&](Hop &hop, unsigned device, double bytes) {
    hop.out_s += sendingSeconds(device, bytes);
    hop.card.out += isOutside(device) ? bytes : 0;
    meet(hop, device);
  };
  auto receive = [&](Hop &hop, unsigned device, double bytes) {
    hop.in_s += receivingSeconds(device, bytes);
    hop.card.in += isOutside(device) ? bytes : 0;
    meet(hop, device);
  };
  for (const SharedBytes &data : sharedBytesOf(entry, make)) {
    double share = owners.share(data.group, self, entry.position);
    double mine = share * data.bytes;
    llvm::ArrayRef<NodeParties> nodes = partiesOf(data.group, entry.position);
    llvm::ArrayRef<Party> inside =
        llvm::find_if(nodes, [&](const NodeParties &node) {
          return node.node == ownNode;
        })->parties;
    unsigned turn = 0; // this device's, as owner
    for (const Party &party : inside)
      if (party.holder == self)
        turn = party.turn;
    GroupTraffic &group = traffic.groups.emplace_back();
    group.group = data.group;
    Hop before = first;
    // Those of its node, and of each other node the relay's sum.
    size_t parts = relays ? inside.size() + nodes.size() - 1
                          : owners.holdersOf(data.group).size();
    Work sums = costs.normWork(mine, share * data.count);
    sums += CostModel::sumWork(mine, share * data.count,
                               static_cast<double>(parts));
    for (const auto &[node, others] : nodes)
      for (const Party &party : others) {
        if (party.holder == self)
          continue;
        double theirShare =
            owners.share(data.group, party.holder, entry.position);
        double theirs = theirShare * data.bytes;
        bool areLonely = inside.size() == 1 && others.size() == 1;
        if (node == ownNode || !relays || areLonely) {
          send(first, party.device, theirs);
          receive(first, party.device, mine);
          group.back_out_s += sendingSeconds(party.device, mine);
          group.back_in_s += receivingSeconds(party.device, theirs);
          continue;
        }
        // What goes to that owner, through a relay here.
        const Party &relay = inside[party.turn % inside.size()];
        if (relay.device != entry.device) {
          send(first, relay.device, theirs);
        } else {
          for (const Party &member : inside)
            if (member.device != entry.device)
              receive(first, member.device, theirs);
          send(inside.size() > 1 ? second : first, party.device, theirs);
          sums += CostModel::sumWork(theirs, theirShare * data.count,
                                     static_cast<double>(inside.size()));
        }
        // What comes for this owner, through a relay there.
        if (&party == &others[turn % others.size()])
          receive(others.size() > 1 ? second : first, party.device, mine);
      }
    group.out_s = first.out_s - before.out_s;
    group.in_s = first.in_s - before.in_s;
    group.sum_s = kind.seconds(sums);
    group.update_s = kind.seconds(costs.updateWork(mine, share * data.count));
    if (data.bytes > 0)
      for (double GroupTraffic::*seconds :
           {&GroupTraffic::out_s, &GroupTraffic::in_s,
            &GroupTraffic::back_out_s, &GroupTraffic::back_in_s,
            &GroupTraffic::sum_s, &GroupTraffic::update_s})
        group.*seconds /= data.bytes;
  }
  traffic.first_s = first.seconds();
  traffic.second_s = second.seconds();
  traffic.latency_s = first.latency_s;
  traffic.first_card = first.card;
  traffic.second_card = second.card;
  return traffic;
}

} // namespace autohet
